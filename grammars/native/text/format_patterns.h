// The parts of formats.cpp.
#pragma once

#include <string>
#include <vector>

#include "languages.h"

namespace sglite::text {

// The texts that match an ECMA-262 pattern as a whole.
inline LangId full(Languages& languages, const std::string& pattern) {
    return languages.pattern(pattern, Dialect::kEcma, false);
}

const std::string& date_pattern();
const std::string& duration_pattern();
LangId time_format(Languages& languages);
LangId date_time_format(Languages& languages);

// RFC 791, 4291, 3986, 3987 and 6570.
const std::string& ipv4_pattern();
const std::string& ipv6_pattern();
std::string uri_pattern(bool international, bool reference);
std::string uri_template_pattern();

// RFC 1123, 5321, 5890 to 5892 and 6531.
LangId host_name(Languages& languages);
LangId international_host_name(Languages& languages);
LangId mailbox(Languages& languages, bool international);

// ECMA-262.
std::string regex_pattern();

}  // namespace sglite::text
