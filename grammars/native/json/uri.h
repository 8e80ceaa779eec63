// Relative references to URIs (RFC 3986, section 5).
#pragma once

#include <string>
#include <string_view>

namespace sglite::json {

// The URI that `reference` means beside `base`.
std::string join(std::string_view base, std::string_view reference);

// Percent-encoded bytes become themselves.
std::string unquote(std::string_view text);

}  // namespace sglite::json
