// Exact decimal numbers: reading, writing, comparing, dividing without rest.
#include <algorithm>

#include "divisors.h"
#include "numbers.h"

namespace sglite::text {
namespace {

using Wide = unsigned __int128;

size_t digits_from(std::string_view text, size_t at) {
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at;
}

[[noreturn]] void refuse(std::string_view text) {
    throw Refused("'" + std::string(text.substr(0, 40)) + "' is no JSON number");
}

}  // namespace

Decimal decimal(std::string_view text, int64_t most_exponent) {
    Decimal number;
    size_t at = 0;
    if (!text.empty() && text[0] == '-') {
        number.negative = true;
        at = 1;
    }
    size_t end = digits_from(text, at);
    if (end == at || (text[at] == '0' && end > at + 1)) refuse(text);
    number.digits = text.substr(at, end - at);
    if (end < text.size() && text[end] == '.') {
        at = end + 1;
        end = digits_from(text, at);
        if (end == at) refuse(text);
        number.digits += text.substr(at, end - at);
        number.exponent = -static_cast<int64_t>(end - at);
    }
    int64_t exponent = 0;
    if (end < text.size() && (text[end] | 32) == 'e') {
        at = end + 1;
        const bool below = at < text.size() && text[at] == '-';
        if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
        end = digits_from(text, at);
        if (end == at) refuse(text);
        for (; at < end; ++at) {
            exponent = std::min(exponent * 10 + (text[at] - '0'), 2 * most_exponent);
        }
        if (below) exponent = -exponent;
    }
    if (end != text.size()) refuse(text);

    const size_t first = number.digits.find_first_not_of('0');
    if (first == std::string::npos) return {};
    if (exponent > most_exponent || exponent < -most_exponent) {
        throw Refused("a number whose exponent is beyond " + std::to_string(most_exponent));
    }
    const size_t last = number.digits.find_last_not_of('0');
    number.exponent += exponent + static_cast<int64_t>(number.digits.size() - 1 - last);
    number.digits = number.digits.substr(first, last - first + 1);
    return number;
}

std::string Decimal::text() const {
    constexpr int64_t kMostZeros = 20;
    if (digits.empty()) return "0";
    const std::string sign = negative ? "-" : "";
    const auto length = static_cast<int64_t>(digits.size());
    if (exponent >= 0 && exponent <= kMostZeros) {
        return sign + digits + std::string(static_cast<size_t>(exponent), '0');
    }
    if (exponent < 0 && length + exponent > 0) {
        const auto whole = static_cast<size_t>(length + exponent);
        return sign + digits.substr(0, whole) + "." + digits.substr(whole);
    }
    if (exponent < 0 && -exponent - length < kMostZeros) {
        return sign + "0." + std::string(static_cast<size_t>(-exponent - length), '0') + digits;
    }
    const std::string rest = length > 1 ? "." + digits.substr(1) : "";
    return sign + digits[0] + rest + "e" + std::to_string(exponent + length - 1);
}

int compare_magnitudes(const Decimal& a, const Decimal& b) {
    if (a.digits.empty() || b.digits.empty()) return !a.digits.empty() - !b.digits.empty();
    if (order(a) != order(b)) return order(a) < order(b) ? -1 : 1;
    const int compared = a.digits.compare(b.digits);
    return (compared > 0) - (compared < 0);
}

int compare(const Decimal& a, const Decimal& b) {
    const auto sign = [](const Decimal& x) { return x.digits.empty() ? 0 : x.negative ? -1 : 1; };
    if (sign(a) != sign(b)) return sign(a) < sign(b) ? -1 : 1;
    return sign(a) * compare_magnitudes(a, b);
}

bool is_multiple(const Decimal& value, const Decimal& unit) {
    if (value.digits.empty()) return true;
    const int64_t zeros = value.exponent - unit.exponent;
    if (zeros < 0) return false;  // a place behind the last one of the unit
    if (unit.digits.size() > 36) {
        throw Refused("'multipleOf' has more than 36 digits; use a rounder number");
    }
    Wide divisor = 0, rest = 0;
    for (const char digit : unit.digits) divisor = divisor * 10 + static_cast<Wide>(digit - '0');
    for (const char digit : value.digits) {
        rest = (rest * 10 + static_cast<Wide>(digit - '0')) % divisor;
    }
    // After 120 zeros every factor 2 and 5 that the divisor can have is there.
    for (int64_t i = 0; i < std::min<int64_t>(zeros, 120) && rest != 0; ++i) {
        rest = rest * 10 % divisor;
    }
    return rest == 0;
}

}  // namespace sglite::text
