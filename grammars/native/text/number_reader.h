// Reads JSON numbers character by character under a NumberSpec: the states behind numbers.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "divisors.h"
#include "numbers.h"

namespace sglite::text {

class NumberReader {
  public:
    static constexpr size_t kMostDivisors = 4;

    enum Place : int8_t { kBegin, kSign, kZero, kWhole, kPoint, kFraction };
    // How digits compare with those of a bound: how many were equal so far, or one of these.
    enum Order : int32_t { kLess = -1, kGreater = -2 };

    struct State {
        // With bounds. Whole digits: how many. Behind the point: the power of ten of the first
        // digit, or minus the number of zeros, or kSettled.
        int32_t power = 0;
        int32_t low = 0, high = 0;  // Order
        // With divisors. Digits behind the point; per divisor its rest, and whether its places were
        // passed: 0: not yet, 1: with a multiple, 2: with none.
        uint16_t places = 0;
        std::array<uint16_t, kMostDivisors> rests{};
        std::array<int8_t, kMostDivisors> passed{};
        int8_t zeros = 0;       // at the end of the whole, or -1: all behind the point are 0
        int8_t ends_above = 0;  // whether the last digit is not 0
        int8_t place = kBegin;
        int8_t negative = 0;
        int8_t zero = 1;           // every digit so far is 0
        int8_t with_exponent = 0;  // whether the letter e may still follow

        bool operator==(const State&) const = default;
        uint64_t hash() const;
    };
    // What the exponent must be; none if low > high.
    struct Interval {
        int64_t low, high;
    };

    NumberReader(const NumberSpec& spec, bool any);

    State start() const;
    // False where no number begins so.
    bool sign(State& state) const;
    bool digit(State& state, int digit) const;
    bool point(State& state) const;
    bool accepts(const State& state) const;
    Interval exponents(const State& state) const;
    // Digits between which the state does not tell: first ones of each class.
    std::array<bool, 11> classes(const State& state) const;

  private:
    // What the magnitude of a number is compared with.
    struct Limit {
        bool there = false, excluded = false;
        std::string digits{};
        int64_t order = 0;
    };
    struct Side {
        bool allowed = true;
        Limit low, high;
        bool bounded() const { return low.there || high.there; }
    };

    static Limit limit(const Bound& bound);
    void set_sides(const NumberSpec& spec);
    static void compare_digit(int32_t& order, const Limit& limit, int digit);
    bool read_whole(State& state, const Side& side, int digit) const;
    bool read_fraction(State& state, const Side& side, int digit) const;
    void read_divisors(State& state, int digit) const;
    bool settle(State& state, const Side& side) const;
    bool settled_inside(const State& state, const Side& side) const;
    bool is_multiple(const State& state, size_t divisor) const;

    bool any_, with_point_, all_spellings_, zero_allowed_ = true, signs_alike_ = false;
    std::array<Side, 2> sides_{};
    bool with_unit_ = false;  // divisors_[0] must divide; the others must not
    bool counts_zeros_ = false;
    std::vector<Divisor> divisors_;
    int32_t most_places_ = 0;           // of the divisors
    int32_t most_exponent_places_ = 0;  // behind more of them no exponent follows
    int32_t most_exponent_digits_ = 0;  // the same for the whole, with bounds
    int64_t highest_ = 0, lowest_ = 0;  // orders of limits
};

}  // namespace sglite::text
