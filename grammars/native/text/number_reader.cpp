#include "number_reader.h"

#include <algorithm>
#include <bit>

#include "exponents.h"
#include "index.h"

namespace sglite::text {
namespace {

constexpr int32_t kSettled = INT32_MAX;
constexpr int8_t kMostZeros = 2;     // at the end of the whole, that a negative exponent takes away
constexpr int32_t kZerosWithin = 6;  // whole digits, with bounds: longer ones are not asked for it
// Where all spellings are asked for: digits of the whole, and zeros behind `0.`.
constexpr int64_t kMostDigits = 64;
constexpr int32_t kMostLeadingZeros = 20;
constexpr int64_t kEndless = Exponents::kEndless;

}  // namespace

uint64_t NumberReader::State::hash() const {
    uint64_t hash = 0;
    for (const uint64_t part : std::bit_cast<std::array<uint64_t, sizeof(State) / 8>>(*this)) {
        hash = mix(hash, part);
    }
    return hash;
}

NumberReader::NumberReader(const NumberSpec& spec, bool any)
    : any_(any),
      with_point_(any || spec.kind != NumberSpec::Kind::kInteger),
      all_spellings_(spec.all_spellings) {
    set_sides(spec);
    if (const std::optional<Decimal> unit = common_unit(spec)) {
        with_unit_ = true;
        divisors_.emplace_back(*unit);
    }
    std::vector<Decimal> others = spec.not_multiples;
    if (spec.kind == NumberSpec::Kind::kFraction) others.push_back(decimal("1"));
    for (const Decimal& other : others) {
        divisors_.emplace_back(other);
        zero_allowed_ = false;
    }
    counts_zeros_ = any && with_unit_ && divisors_[0].states() == 1;
    if (divisors_.size() > kMostDivisors) {
        throw Refused("a number with more than 4 divisors; name fewer in 'not' and 'multipleOf'");
    }
    int64_t rests = 1;
    for (const Divisor& divisor : divisors_) {
        most_places_ = std::max(most_places_, divisor.places());
        rests = std::min<int64_t>(rests * divisor.states(), 1'000'000);
    }
    most_exponent_places_ = rests == 1 ? 17 : rests <= 20 ? 4 : 0;
}

NumberReader::Limit NumberReader::limit(const Bound& bound) {
    return {true, bound.excluded, bound.value.digits, order(bound.value)};
}

void NumberReader::set_sides(const NumberSpec& spec) {
    const auto sign = [](const Decimal& x) { return x.digits.empty() ? 0 : x.negative ? -1 : 1; };
    const auto set = [&](const std::optional<Bound>& bound, Side& beyond, Side& within) {
        // `bound` is the low one of positive numbers, `beyond`; `within` are the negative ones. Or
        // the other way round.
        if (!bound) return;
        const int side = (&beyond == &sides_[0] ? 1 : -1) * sign(bound->value);
        if (side > 0) beyond.low = limit(*bound);
        if (side < 0) within.high = limit(*bound);
        if (side >= 0) within.allowed = false;
        if (side > 0 || (side == 0 && bound->excluded)) zero_allowed_ = false;
    };
    set(spec.low, sides_[0], sides_[1]);
    set(spec.high, sides_[1], sides_[0]);
    bool first = true;
    for (Side& side : sides_) {
        // Integers but 0 are at least 1.
        const Limit& low = side.low;
        const bool below_one =
            low.order < 0 || (low.order == 0 && low.digits == "1" && !low.excluded);
        if (spec.kind == NumberSpec::Kind::kInteger && low.there && below_one) side.low = {};
        for (const Limit* limit : {&side.low, &side.high}) {
            if (!limit->there) continue;
            highest_ = first ? limit->order : std::max(highest_, limit->order);
            lowest_ = first ? limit->order : std::min(lowest_, limit->order);
            first = false;
        }
    }
    most_exponent_digits_ =
        static_cast<int32_t>(all_spellings_ ? std::max(highest_ + 3, kMostDigits)
                                            : std::clamp<int64_t>(highest_ + 2, 3, 20));
    signs_alike_ =
        sides_[0].allowed && sides_[1].allowed && !sides_[0].bounded() && !sides_[1].bounded();
}

NumberReader::State NumberReader::start() const {
    State state;
    state.with_exponent = any_;
    for (size_t i = 0; i < divisors_.size(); ++i)
        state.rests[i] = static_cast<uint16_t>(divisors_[i].start());
    return state;
}

bool NumberReader::sign(State& state) const {
    if (state.place != kBegin || !(sides_[1].allowed || zero_allowed_)) return false;
    state.place = kSign;
    state.negative = !signs_alike_;
    return true;
}

void NumberReader::compare_digit(int32_t& order, const Limit& limit, int digit) {
    if (!limit.there || order < 0) return;
    const bool within = static_cast<size_t>(order) < limit.digits.size();
    const int other = within ? limit.digits[static_cast<size_t>(order)] - '0' : 0;
    if (digit != other) {
        order = digit < other ? kLess : kGreater;
    } else if (within) {
        ++order;
    }
}

bool NumberReader::digit(State& state, int digit) const {
    if (state.place == kZero) return false;
    const bool in_fraction = state.place >= kPoint;
    const Side& side = sides_[static_cast<size_t>(state.negative)];
    if (state.zero && digit != 0 && !side.allowed) return false;
    if (in_fraction) {
        state.place = kFraction;
        if (!divisors_.empty() && state.with_exponent && state.places >= most_exponent_places_) {
            state.with_exponent = false;
        }
        if (!read_fraction(state, side, digit)) return false;
    } else {
        if (!read_whole(state, side, digit)) return false;
        if (state.place != kWhole) state.place = digit == 0 ? kZero : kWhole;
    }
    read_divisors(state, digit);
    if (digit != 0) state.zero = 0;
    // Behind the places of the unit only zeros may follow, if no exponent does.
    return !with_unit_ || state.with_exponent || state.passed[0] != 2;
}

bool NumberReader::read_whole(State& state, const Side& side, int digit) const {
    if (counts_zeros_) {
        state.zeros = digit == 0 && !state.zero ? std::min<int8_t>(state.zeros + 1, kMostZeros) : 0;
    }
    if (!side.bounded() || (state.zero && digit == 0)) return true;
    compare_digit(state.low, side.low, digit);
    compare_digit(state.high, side.high, digit);
    const auto most = static_cast<int32_t>(std::max<int64_t>(highest_, most_exponent_digits_) + 2);
    state.power = std::min(state.power + 1, most);
    if (state.power > most_exponent_digits_) state.with_exponent = false;
    if (state.power > kZerosWithin || !state.with_exponent) state.zeros = 0;
    if (state.with_exponent) return true;
    if (side.low.there && state.power - 1 > side.low.order) state.low = kGreater;
    if (side.high.there) return state.power - 1 <= side.high.order;
    if (state.low == kGreater && state.power - 1 > side.low.order) state.power = most;
    return true;
}

bool NumberReader::point(State& state) const {
    if (!with_point_ || (state.place != kZero && state.place != kWhole)) return false;
    state.place = kPoint;
    if (!divisors_.empty() && most_exponent_places_ == 0) state.with_exponent = false;
    state.zeros = counts_zeros_ && state.with_exponent ? -1 : 0;
    const Side& side = sides_[static_cast<size_t>(state.negative)];
    if (!side.bounded() || state.zero) return true;
    if (state.power != 1 && !all_spellings_) state.with_exponent = false;
    --state.power;
    return state.with_exponent || settle(state, side);
}

bool NumberReader::read_fraction(State& state, const Side& side, int digit) const {
    if (!side.bounded()) return true;
    if (state.zero && digit == 0) {
        const int64_t least =
            std::min<int64_t>(lowest_, all_spellings_ ? -kMostLeadingZeros : 0) - 2;
        state.power = static_cast<int32_t>(std::max<int64_t>(state.power - 1, least));
        return true;
    }
    compare_digit(state.low, side.low, digit);
    compare_digit(state.high, side.high, digit);
    if (state.zero) {
        if (state.power < (all_spellings_ ? -kMostLeadingZeros : 0)) state.with_exponent = false;
        --state.power;
    }
    return state.with_exponent || settle(state, side);
}

// Makes the orders final once the power of ten is known and no exponent can change it.
bool NumberReader::settle(State& state, const Side& side) const {
    const auto one = [&](int32_t& order, const Limit& limit) {
        if (!limit.there || state.power == kSettled || state.power == limit.order) return;
        order = state.power < limit.order ? kLess : kGreater;
    };
    one(state.low, side.low);
    one(state.high, side.high);
    state.power = kSettled;
    return state.low != kLess && state.high != kGreater;
}

void NumberReader::read_divisors(State& state, int digit) const {
    if (divisors_.empty()) return;
    const bool in_fraction = state.place == kFraction;
    const bool with_others = divisors_.size() > (with_unit_ ? 1 : 0);
    state.ends_above = with_others && state.with_exponent && digit != 0;
    for (size_t i = 0; i < divisors_.size(); ++i) {
        int8_t& passed = state.passed[i];
        if (in_fraction && state.places >= divisors_[i].places()) {
            if (passed == 0) passed = divisors_[i].zeros_needed(state.rests[i]) == 0 ? 1 : 2;
            if (digit != 0) passed = 2;
        }
        const bool needed = state.with_exponent || passed == 0;
        const int32_t rest = needed ? divisors_[i].step(state.rests[i], digit) : 0;
        state.rests[i] = static_cast<uint16_t>(rest);
    }
    if (!in_fraction) return;
    if (digit != 0 || !state.with_exponent) state.zeros = 0;
    const int32_t most = state.with_exponent ? most_exponent_places_ : most_places_ + 1;
    state.places =
        static_cast<uint16_t>(std::min(state.places + 1, std::max(most, most_places_ + 1)));
}

bool NumberReader::is_multiple(const State& state, size_t divisor) const {
    if (state.passed[divisor] != 0) return state.passed[divisor] == 1;
    const int32_t places = divisors_[divisor].places() - state.places;
    return divisors_[divisor].zeros_needed(state.rests[divisor]) <= places;
}

bool NumberReader::settled_inside(const State& state, const Side& side) const {
    if (!side.bounded()) return true;
    const int64_t power = state.place == kWhole ? state.power - 1 : state.power;
    const auto compared = [&](int32_t digits, const Limit& limit) {
        if (power != kSettled && power != limit.order) return power < limit.order ? -1 : 1;
        if (digits < 0) return digits == kLess ? -1 : 1;
        return static_cast<size_t>(digits) < limit.digits.size() ? -1 : 0;
    };
    if (side.low.there && compared(state.low, side.low) < side.low.excluded) return false;
    return !side.high.there || compared(state.high, side.high) <= -side.high.excluded;
}

bool NumberReader::accepts(const State& state) const {
    if (state.place == kBegin || state.place == kSign || state.place == kPoint) return false;
    if (state.zero) return zero_allowed_;
    for (size_t i = 0; i < divisors_.size(); ++i) {
        if (is_multiple(state, i) != (with_unit_ && i == 0)) return false;
    }
    return settled_inside(state, sides_[static_cast<size_t>(state.negative)]);
}

NumberReader::Interval NumberReader::exponents(const State& state) const {
    constexpr Interval kNone{1, 0};
    if (!state.with_exponent || state.place == kBegin || state.place == kSign ||
        state.place == kPoint) {
        return kNone;
    }
    Interval found{-kEndless, kEndless};
    if (state.zero) return zero_allowed_ ? found : kNone;
    const Side& side = sides_[static_cast<size_t>(state.negative)];
    const int64_t power = state.place == kWhole ? state.power - 1 : state.power;
    const auto equal = [](int32_t digits, const Limit& limit) {
        return digits >= 0 && static_cast<size_t>(digits) == limit.digits.size();
    };
    if (side.low.there) {
        const bool inside =
            state.low == kGreater || (!side.low.excluded && equal(state.low, side.low));
        found.low = side.low.order - power + !inside;
    }
    if (side.high.there) {
        const bool inside =
            equal(state.high, side.high) ? !side.high.excluded : state.high != kGreater;
        found.high = side.high.order - power - !inside;
    }
    for (size_t i = 0; i < divisors_.size(); ++i) {
        const Divisor& divisor = divisors_[i];
        const int32_t needed = divisor.zeros_needed(state.rests[i]);
        const int64_t least = int64_t{state.places} - divisor.places() + needed;
        if (!with_unit_ || i > 0) {
            if (!state.ends_above) return kNone;
            if (needed != Divisor::kNever) found.high = std::min(found.high, least - 1);
        } else if (needed == Divisor::kNever) {
            return kNone;
        } else if (counts_zeros_) {
            const int64_t counted = state.zeros < 0 ? 0 : state.places - state.zeros;
            found.low = std::max(found.low, counted - divisor.places());
        } else {
            found.low = std::max(found.low, least);
        }
    }
    return found;
}

std::array<bool, 11> NumberReader::classes(const State& state) const {
    std::array<bool, 11> first{};
    first[0] = first[1] = true;
    for (const Divisor& divisor : divisors_) {
        if (divisor.tells_digits()) first.fill(true);
    }
    const Side& side = sides_[static_cast<size_t>(state.negative)];
    const auto cut = [&](int32_t digits, const Limit& limit) {
        if (!limit.there || digits < 0 || static_cast<size_t>(digits) >= limit.digits.size())
            return;
        const int digit = limit.digits[static_cast<size_t>(digits)] - '0';
        first[static_cast<size_t>(digit)] = first[static_cast<size_t>(digit) + 1] = true;
    };
    cut(state.low, side.low);
    cut(state.high, side.high);
    return first;
}

}  // namespace sglite::text
