// The formats of JSON Schema, as languages.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "languages.h"

namespace sglite::text {

// The texts of a format of any draft; nothing for a name that none of them defines. Built of
// patterns when asked for, so that unused formats cost nothing.
//
// Where the formats leave a choice, or are not regular:
// - dates have the years 0001 to 9999: common libraries know no year 0;
// - a second is 60 only in the minute that is 23:59 in UTC;
// - letters in durations are upper case;
// - of punycode only what its ends tell is checked, and U-labels have at most 59 characters,
//   whatever they come to as A-labels; the rule for text from right to left is not checked;
// - `regex` knows expressions that are valid both in ECMA-262 (with the flag u) and in Python, with
//   groups nested up to three deep, lookahead outside of groups, and without named groups,
//   backreferences, lookbehind and properties.
std::optional<LangId> format(Languages& languages, std::string_view name);
std::vector<std::string_view> format_names();

}  // namespace sglite::text
