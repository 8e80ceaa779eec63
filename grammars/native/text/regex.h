// Regular expressions, parsed: Python's `re` and ECMA-262 syntax as far as they are regular.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "../characters.h"
#include "../refused.h"

namespace sglite::text {

enum class Dialect { kPython, kEcma };

// A tree over sets of characters.
struct Regex {
    enum class Kind {
        kChars,      // one character of `chars`
        kConcat,     // `parts` one after another; of nothing: the empty text
        kEither,     // one of `parts`; of nothing: no text at all
        kRepeat,     // parts[0] from `low` to `high` times; high -1: without end
        kStart,      // the empty text at the start of the whole (^, \A)
        kEnd,        // the empty text at the end of the whole ($, \Z)
        kAhead,      // the empty text before something that begins with a match of parts[0]
        kNotAhead,   // the empty text before something that does not
        kBoundary,   // the empty text between a character of `chars` and one that is none (\b)
        kInside,     // the empty text where there is no such border (\B)
        kBehind,     // the empty text behind a character of `chars`
        kNotBehind,  // the empty text behind none of them, or at the start of the whole
    };
    Kind kind = Kind::kConcat;
    Ranges chars{};
    std::vector<Regex> parts{};
    int64_t low = 0, high = 0;
};

// Whether a tree asks something of the text around a place, rather than reads.
inline bool is_condition(Regex::Kind kind) {
    return kind >= Regex::Kind::kStart && kind <= Regex::Kind::kNotBehind;
}

// The largest count in `{m,n}`.
constexpr int64_t kMostRepeats = 1'000'000;

// The tree of a pattern given as UTF-8. Throws Refused, its pointer the position in characters,
// for bad syntax and for what is not regular or not known (backreferences, long lookbehind, ...).
Regex parse(std::string_view pattern, Dialect dialect);

}  // namespace sglite::text
