#include "formats.h"

#include "format_patterns.h"

namespace sglite::text {
namespace {

const char* const kUuid = "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}";
const char* const kPointer = "(?:/(?:[^/~]|~[01])*)*";
const char* const kRelativePointer = "(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^/~]|~[01])*)*)";

struct Known {
    std::string_view name;
    LangId (*build)(Languages&);
};
using L = Languages;
constexpr Known kKnown[] = {
    {"date", [](L& all) { return full(all, date_pattern()); }},
    {"time", time_format},
    {"date-time", date_time_format},
    {"duration", [](L& all) { return full(all, duration_pattern()); }},
    {"email", [](L& all) { return mailbox(all, false); }},
    {"idn-email", [](L& all) { return mailbox(all, true); }},
    {"hostname", host_name},
    {"idn-hostname", international_host_name},
    {"ipv4", [](L& all) { return full(all, ipv4_pattern()); }},
    {"ipv6", [](L& all) { return full(all, ipv6_pattern()); }},
    {"uri", [](L& all) { return full(all, uri_pattern(false, false)); }},
    {"uri-reference", [](L& all) { return full(all, uri_pattern(false, true)); }},
    {"iri", [](L& all) { return full(all, uri_pattern(true, false)); }},
    {"iri-reference", [](L& all) { return full(all, uri_pattern(true, true)); }},
    {"uri-template", [](L& all) { return full(all, uri_template_pattern()); }},
    {"uuid", [](L& all) { return full(all, kUuid); }},
    {"json-pointer", [](L& all) { return full(all, kPointer); }},
    {"relative-json-pointer", [](L& all) { return full(all, kRelativePointer); }},
    {"regex", [](L& all) { return full(all, regex_pattern()); }},
};

}  // namespace

std::optional<LangId> format(Languages& languages, std::string_view name) {
    for (const Known& known : kKnown) {
        if (known.name != name) continue;
        const LangId language = known.build(languages);
        languages.trust(language);
        return language;
    }
    return std::nullopt;
}

std::vector<std::string_view> format_names() {
    std::vector<std::string_view> names;
    for (const Known& known : kKnown) names.push_back(known.name);
    return names;
}

}  // namespace sglite::text
