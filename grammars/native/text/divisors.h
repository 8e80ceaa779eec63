// Whether digits make a multiple of a number, digit by digit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "numbers.h"

namespace sglite::text {

// The power of ten of the first digit; not of zero.
inline int64_t order(const Decimal& number) {
    return number.exponent + static_cast<int64_t>(number.digits.size()) - 1;
}

int compare_magnitudes(const Decimal& a, const Decimal& b);

// The smallest number above zero that is a multiple of both. Throws Refused if it is too long.
Decimal common_multiple(const Decimal& a, const Decimal& b);
// The one unit whose multiples are the multiples of all that the specification asks for.
std::optional<Decimal> common_unit(const NumberSpec& spec);

// Reads the digits of a number N, without its point. `rest` is the state.
class Divisor {
  public:
    static constexpr int32_t kNever = INT32_MAX;

    // Throws Refused for units that need too many states.
    explicit Divisor(const Decimal& unit);

    int32_t start() const { return by_zeros_ ? modulus_ : 0; }
    int32_t step(int32_t rest, int digit) const {
        if (!by_zeros_) return static_cast<int32_t>((int64_t{rest} * 10 + digit) % modulus_);
        return digit != 0 ? 0 : rest < modulus_ ? rest + 1 : rest;
    }
    // Whether digits tell states apart otherwise than by being zero.
    bool tells_digits() const { return !by_zeros_ && modulus_ > 1; }
    int32_t states() const { return by_zeros_ ? modulus_ + 1 : modulus_; }
    // The least k from 0 up such that N x 10^k is a multiple of the unit x 10^places.
    int32_t zeros_needed(int32_t rest) const;
    // Decimal places of the unit.
    int32_t places() const { return places_; }

  private:
    // Powers of ten: counts the zeros at the end, up to modulus_. Else the rest by modulus_.
    bool by_zeros_ = false;
    int32_t modulus_ = 1;
    int32_t places_ = 0;
};

}  // namespace sglite::text
