// Values and names of a schema as people read them in one line, shortened.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "value.h"

namespace sglite::json {

// As JSON, at most about 60 characters.
std::string shown(const Value& value);
// A text without quotes: control characters and lone surrogates as escapes, whole or shortened.
std::string printable(std::string_view text);
std::string plain(std::string_view text);
// Names in quotes, behind commas; the first few, and how many more there are.
std::string listed(const std::vector<std::string_view>& names);
std::string listed(const std::vector<Value>& names);

}  // namespace sglite::json
