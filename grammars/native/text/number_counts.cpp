// How many numbers suit, and whether one does.
#include <algorithm>
#include <numeric>

#include "divisors.h"
#include "numbers.h"

namespace sglite::text {
namespace {

using Wide = __int128;

// number / 10^exponent, rounded towards zero. Nothing if it takes more than 36 digits.
std::optional<Wide> scaled(const Decimal& number, int64_t exponent) {
    if (number.digits.empty()) return 0;
    if (order(number) - exponent > 35) return std::nullopt;
    Wide value = 0;
    for (int64_t place = order(number); place >= exponent; --place) {
        const auto at = static_cast<size_t>(order(number) - place);
        value = value * 10 + (at < number.digits.size() ? number.digits[at] - '0' : 0);
    }
    return number.negative ? -value : value;
}

Wide floor_divided(Wide a, Wide b) { return a / b - (a % b < 0); }

// The whole multiples k of the unit with low <= k x unit <= high; nothing if they are too many for
// their length.
std::optional<std::pair<Wide, Wide>> range(const Bound& low, const Bound& high,
                                           const Decimal& unit) {
    int64_t exponent = unit.exponent;
    for (const Bound* bound : {&low, &high}) {
        if (!bound->value.digits.empty()) exponent = std::min(exponent, bound->value.exponent);
    }
    const auto a = scaled(low.value, exponent), b = scaled(high.value, exponent);
    const auto step = scaled(unit, exponent);
    if (!step) return std::pair<Wide, Wide>{0, -1 + (is_multiple(low.value, unit))};
    if (!a || !b) return std::nullopt;
    Wide first = -floor_divided(-*a, *step), last = floor_divided(*b, *step);
    if (low.excluded && first * *step == *a) ++first;
    if (high.excluded && last * *step == *b) --last;
    return std::pair{first, last};
}

bool is_single(const NumberSpec& spec) {
    return spec.low && spec.high && compare(spec.low->value, spec.high->value) == 0;
}

}  // namespace

bool holds(const NumberSpec& spec, const Decimal& value) {
    if (spec.kind == NumberSpec::Kind::kInteger && !value.is_integer()) return false;
    if (spec.kind == NumberSpec::Kind::kFraction && value.is_integer()) return false;
    if (spec.low && compare(value, spec.low->value) < spec.low->excluded) return false;
    if (spec.high && compare(value, spec.high->value) > -spec.high->excluded) return false;
    const auto divides = [&](const Decimal& unit) { return is_multiple(value, unit); };
    return std::all_of(spec.multiples.begin(), spec.multiples.end(), divides) &&
           std::none_of(spec.not_multiples.begin(), spec.not_multiples.end(), divides);
}

int64_t count_values(const NumberSpec& spec, int64_t limit) {
    if (spec.low && spec.high && compare(spec.low->value, spec.high->value) > 0) return 0;
    if (is_single(spec)) return std::min<int64_t>(limit, holds(spec, spec.low->value));
    const std::optional<Decimal> unit = common_unit(spec);
    if (!unit) return limit;
    std::vector<Decimal> others = spec.not_multiples;
    if (spec.kind == NumberSpec::Kind::kFraction) others.push_back(decimal("1"));
    const auto excludes_all = [&](const Decimal& other) { return is_multiple(*unit, other); };
    if (std::any_of(others.begin(), others.end(), excludes_all)) return 0;
    if (!spec.low || !spec.high) return limit;

    const auto between = range(*spec.low, *spec.high, *unit);
    if (!between) return limit;
    const auto [first, last] = *between;
    if (others.empty()) return static_cast<int64_t>(std::clamp<Wide>(last - first + 1, 0, limit));
    // Multiples k x unit that are none of another number: k is no multiple of its step.
    std::vector<uint64_t> steps;
    for (const Decimal& other : others) {
        const Decimal common = common_multiple(*unit, other);
        const auto top = scaled(common, std::min(common.exponent, unit->exponent));
        const auto below = scaled(*unit, std::min(common.exponent, unit->exponent));
        steps.push_back(static_cast<uint64_t>(*top / *below));
    }
    int64_t found = 0;
    for (Wide k = first; k <= last && found < limit; ++k) {
        const auto divides = [&](uint64_t step) { return k % static_cast<Wide>(step) == 0; };
        found += std::none_of(steps.begin(), steps.end(), divides);
    }
    return found;
}

}  // namespace sglite::text
