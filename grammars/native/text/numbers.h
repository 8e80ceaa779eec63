// The texts of JSON numbers under bounds and divisors, as automata over bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "languages.h"

namespace sglite::text {

// A decimal number, exactly: digits x 10^exponent, without zeros at either end of the digits;
// zero has no digits.
struct Decimal {
    bool negative = false;
    std::string digits{};
    int64_t exponent = 0;

    bool operator==(const Decimal&) const = default;
    bool is_integer() const { return exponent >= 0; }
    std::string text() const;  // canonical: the shortest plain JSON number, exponent if too long
};

// Of any JSON number. Throws Refused for another text.
// The exponent, as it is written, is at most `most_exponent`.
constexpr int64_t kMostExponent = 1'000'000;
Decimal decimal(std::string_view text, int64_t most_exponent = kMostExponent);
int compare(const Decimal& a, const Decimal& b);
// Whether `value` is a whole multiple of `unit`, which is above zero.
bool is_multiple(const Decimal& value, const Decimal& unit);

struct Bound {
    Decimal value;
    bool excluded = false;
};

// What a number must be. All parts hold together.
struct NumberSpec {
    enum class Kind { kAny, kInteger, kFraction };  // by value: 1.0 is an integer
    Kind kind = Kind::kAny;
    std::optional<Bound> low{}, high{};
    std::vector<Decimal> multiples{};      // of every one of these
    std::vector<Decimal> not_multiples{};  // and of none of these
    // Of a single value that is to be left out: every spelling that other specs know, as far as
    // divisors or bounds on two sides leave no further digits to make it another number.
    bool all_spellings = false;
};

// The JSON texts of such numbers. `any`: every spelling, also `1.0` and `10e-1` for integers;
// else integers without fraction or exponent. kNoText if there are none. Throws Refused past the
// limits.
//
// Never a wrong value; of the right ones these spellings are left out, since no finite automaton
// knows them all. Each concerns numbers with an exponent only:
// - under bounds: more than one digit before a point, more than one 0 behind `0.`, and a whole
//   longer than the bounds by more than one digit (at least 3 and at most 20 are allowed);
// - of integers and multiples: more than 17 digits behind the point (4 for units other than powers
//   of ten, none for those with more than 20 rests), zeros at the end of those that an exponent
//   does not make up for, and more than two zeros of the whole that a negative exponent takes
//   away;
// - of numbers that must not be multiples, fractions among them: a last digit 0.
LangId numbers(Languages& languages, const NumberSpec& spec, bool any);
// The same before it is a language; nothing if there are no such numbers.
std::optional<Dfa> number_automaton(const NumberSpec& spec, bool any);

// How many different numbers there are, at most `limit`.
int64_t count_values(const NumberSpec& spec, int64_t limit);
bool holds(const NumberSpec& spec, const Decimal& value);

}  // namespace sglite::text
