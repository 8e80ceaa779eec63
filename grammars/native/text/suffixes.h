// The suffixes of a text in their order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sglite::text {

// The begins of all suffixes of `text`, the least suffix first; in linear time. Of bytes without
// sign; a suffix that begins another one is the lesser.
std::vector<int32_t> sorted_suffixes(std::string_view text);

}  // namespace sglite::text
