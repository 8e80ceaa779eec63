// Internet addresses and the URI family: RFC 3986, 3987, 4291 and 6570.
#include "format_patterns.h"

namespace sglite::text {
namespace {

const std::string kEscaped = "%[0-9A-Fa-f]{2}";

std::string ucs() {
    std::string ranges = R"(\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF})";
    for (const char plane : std::string("123456789ABCD")) {
        ranges += std::string(R"(\u{)") + plane + R"(0000}-\u{)" + plane + "FFFD}";
    }
    return ranges + R"(\u{E1000}-\u{EFFFD})";
}

const std::string kPrivate = R"(\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD})";

}  // namespace

const std::string& ipv4_pattern() {
    static const std::string pattern = [] {
        const std::string octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
        return "(?:" + octet + R"(\.){3})" + octet;
    }();
    return pattern;
}

const std::string& ipv6_pattern() {
    static const std::string pattern = [] {
        const std::string group = "[0-9A-Fa-f]{1,4}";
        const auto groups = [&](int count) {
            return "(?:" + group + ":){" + std::to_string(count) + "}";
        };
        const auto up_to = [&](int count) {
            return "(?:(?:" + group + ":){0," + std::to_string(count) + "}" + group + ")?";
        };
        const std::string last = "(?:" + group + ":" + group + "|" + ipv4_pattern() + ")";
        std::string forms = "(?:" + groups(6) + last;
        for (int behind = 0; behind < 6; ++behind) {
            // `::` stands for at least one group of zeros, so many groups and `last` follow.
            forms += "|" + (behind < 5 ? up_to(4 - behind) : "") + "::" + groups(behind) + last;
        }
        return forms + "|" + up_to(5) + "::" + group + "|" + up_to(6) + "::)";
    }();
    return pattern;
}

std::string uri_pattern(bool international, bool reference) {
    const std::string plain = R"(A-Za-z0-9\-._~!$&'()*+,;=)" + (international ? ucs() : "");
    const std::string in_query = international ? kPrivate : "";
    const auto one_of = [&](const std::string& more) {
        return "(?:[" + plain + more + "]|" + kEscaped + ")";
    };
    const std::string character = one_of(":@");
    const std::string future = R"(v[0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+)";
    const std::string authority = "(?:" + one_of(":") + R"(*@)?(?:\[(?:)" + ipv6_pattern() + "|" +
                                  future + R"()\]|)" + one_of("") + "*)(?::[0-9]*)?";
    const std::string path = "(?:/" + character + "*)*";
    const std::string absolute = "/(?:" + character + "+" + path + ")?";
    const std::string tail =
        R"((?:\?)" + one_of(":@/?" + in_query) + "*)?(?:#" + one_of(":@/?") + "*)?";
    // A reference is a relative one where the scheme is missing: then no colon may stand in the
    // first segment.
    const std::string scheme = R"([A-Za-z][A-Za-z0-9+.\-]*:)";
    const std::string hier =
        "(?://" + authority + path + "|" + absolute + "|" + character + "+" + path + "|)";
    if (!reference) return scheme + hier + tail;
    return "(?:" + scheme + hier + "|//" + authority + path + "|" + absolute + "|" + one_of("@") +
           "+" + path + "|)" + tail;
}

std::string uri_template_pattern() {
    const std::string literal =
        R"((?:[!#$&(-;=?-\[\]_a-z~)" + ucs() + kPrivate + "]|" + kEscaped + ")";
    const std::string character = "(?:[A-Za-z0-9_]|" + kEscaped + ")";
    const std::string name = character + R"((?:\.?)" + character + ")*";
    const std::string variable = name + R"((?::[1-9][0-9]{0,3}|\*)?)";
    return "(?:" + literal + R"(|\{[+#./;?&=,!@|]?)" + variable + "(?:," + variable + R"()*\})*)";
}

}  // namespace sglite::text
