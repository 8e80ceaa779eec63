// Automata of exponents: what follows the digits of a JSON number when the power of ten must lie
// between two integers.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "index.h"
#include "languages.h"

namespace sglite::text {

class Exponents {
  public:
    static constexpr int64_t kEndless = INT64_MAX / 4;

    // States are added to `dfa`.
    explicit Exponents(Dfa& dfa) : dfa_(dfa) {}

    // The state behind the letter e; -1 if there is no such exponent. -kEndless and kEndless stand
    // for no bound.
    int32_t behind_letter(int64_t low, int64_t high);

  private:
    struct Key {
        int64_t part = 0, low = 0, high = 0, value = 0;
        bool operator==(const Key&) const = default;
        uint64_t hash() const;
    };
    // Behind the sign: digits of an integer from `low` to `high`, zeros before it allowed.
    int32_t first_digit(int64_t low, int64_t high);
    // Behind zeros only, or behind the digits of `value`.
    int32_t behind_digits(int64_t low, int64_t high, int64_t value);
    void add_digits(int32_t state, int64_t low, int64_t high, int64_t value);
    int32_t find(const Key& key) const;
    int32_t add(const Key& key, bool accepting);

    Dfa& dfa_;
    std::vector<std::pair<Key, int32_t>> known_;
    Index index_;
};

}  // namespace sglite::text
