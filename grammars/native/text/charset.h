// Sets of characters: union, complement, Unicode properties, variants in case. Never surrogates.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "../characters.h"

namespace sglite::text {

constexpr uint32_t kLastCharacter = 0x10FFFF;

// Sorts and merges ranges given in any order, overlapping or not.
Ranges united(Ranges ranges);
Ranges negated(const Ranges& ranges);

// What \w, \d and \s stand for in Python.
const Ranges& word_characters();
const Ranges& decimal_digits();
const Ranges& space_characters();

// Of U-labels of internationalised host names (RFC 5892), those included that need neighbours.
const Ranges& domain_characters();
const Ranges& viramas();

// By what stands in the braces of \p{...}: a general category ("L", "Letter", "gc=Lu"), a script
// ("Script=Greek", "sc=Grek"; the large ones only, as far as names of characters tell), "Any"
// or "ASCII".
std::optional<Ranges> property(std::string_view name);

// The characters that match one of `ranges` when case is ignored, as Python's `re` does.
Ranges without_case(const Ranges& ranges, bool ascii_only);

}  // namespace sglite::text
