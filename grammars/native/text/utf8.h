// UTF-8, read and written whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sglite::text {

// Throws Refused, its pointer the position in characters, for what is no UTF-8.
std::u32string decoded(std::string_view text);

// Appends a character.
void write_utf8(uint32_t c, std::string& out);

}  // namespace sglite::text
