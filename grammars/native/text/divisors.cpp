#include "divisors.h"

#include <algorithm>
#include <numeric>

namespace sglite::text {
namespace {

constexpr int64_t kMostRests = 20'000;

Decimal integer(uint64_t value, int64_t exponent) {
    Decimal number = decimal(std::to_string(value));
    number.exponent += exponent;
    return number;
}

uint64_t with_zeros(const Decimal& number, int64_t zeros) {
    if (zeros + static_cast<int64_t>(number.digits.size()) > 18) {
        throw Refused("the common multiple of 'multipleOf' is too long; use rounder numbers");
    }
    return std::stoull(number.digits + std::string(static_cast<size_t>(zeros), '0'));
}

}  // namespace

Decimal common_multiple(const Decimal& a, const Decimal& b) {
    const int64_t exponent = std::min(a.exponent, b.exponent);
    const uint64_t first = with_zeros(a, a.exponent - exponent);
    const uint64_t second = with_zeros(b, b.exponent - exponent);
    const auto product = static_cast<unsigned __int128>(first / std::gcd(first, second)) * second;
    if (product > uint64_t{1'000'000'000'000'000'000}) {
        throw Refused("the common multiple of 'multipleOf' is too long; use rounder numbers");
    }
    return integer(static_cast<uint64_t>(product), exponent);
}

std::optional<Decimal> common_unit(const NumberSpec& spec) {
    std::optional<Decimal> unit;
    if (spec.kind == NumberSpec::Kind::kInteger) unit = decimal("1");
    for (const Decimal& multiple : spec.multiples) {
        if (unit && is_multiple(*unit, multiple)) continue;
        unit = unit && !is_multiple(multiple, *unit) ? common_multiple(*unit, multiple) : multiple;
    }
    return unit;
}

Divisor::Divisor(const Decimal& unit) {
    places_ = static_cast<int32_t>(std::clamp<int64_t>(-unit.exponent, 0, kMostRests));
    const int64_t zeros = std::max<int64_t>(unit.exponent, 0);
    const char* const kTooMany = "'multipleOf' needs more than 20000 states; use a rounder number";
    if (-unit.exponent >= kMostRests) throw Refused(kTooMany);
    if (unit.digits == "1" && zeros > 0) {
        if (zeros > kMostRests) throw Refused(kTooMany);
        by_zeros_ = true;
        modulus_ = static_cast<int32_t>(zeros);
        return;
    }
    if (zeros > 5 || unit.digits.size() > 5) throw Refused(kTooMany);
    const auto modulus = static_cast<int64_t>(with_zeros(unit, zeros));
    if (modulus > kMostRests) throw Refused(kTooMany);
    modulus_ = static_cast<int32_t>(modulus);
}

int32_t Divisor::zeros_needed(int32_t rest) const {
    if (by_zeros_) return modulus_ - rest;
    for (int32_t zeros = 0; zeros < 16; ++zeros) {  // 2^15 is above every modulus
        if (rest == 0) return zeros;
        rest = step(rest, 0);
    }
    return kNever;
}

}  // namespace sglite::text
