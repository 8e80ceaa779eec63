// Regular expressions that are valid in ECMA-262 with the flag u, and in Python.
#include "format_patterns.h"

namespace sglite::text {
namespace {

constexpr int kDepth = 3;

// `a-[a-z]|b-[b-z]|...`: ranges that do not run backwards.
void add_ranges(std::string& pattern, char first, char last) {
    for (char low = first; low <= last; ++low) {
        pattern += std::string("|") + low + "-[" + low + "-" + last + "]";
    }
}

std::string ranges() {
    std::string pattern;
    add_ranges(pattern, '0', '9');
    add_ranges(pattern, 'A', 'Z');
    add_ranges(pattern, 'a', 'z');
    return pattern;
}

// Braces whose maximum is surely not below the minimum.
std::string quantifier() {
    std::string pattern = R"((?:(?:[*+?]|\{(?:[0-9]{1,3},?|[0-9],[1-9][0-9]{1,2}|[1-9][0-9],)"
                          R"([1-9][0-9]{2})";
    for (char digit = '0'; digit <= '9'; ++digit) {
        pattern += std::string("|") + digit + ",[" + digit + "-9]";
    }
    for (char tens = '1'; tens <= '8'; ++tens) {
        pattern += std::string("|") + tens + "[0-9],[" + static_cast<char>(tens + 1) + "-9][0-9]";
    }
    return pattern + R"()\})\??)?)";
}

}  // namespace

std::string regex_pattern() {
    const std::string escape =
        R"(\\(?:[dDsSwWfnrtv^$\\.*+?()[\]{}|/]|x[0-9A-Fa-f]{2}|u(?:[0-9A-CE-Fa-ce-f][0-9A-Fa-f])"
        R"(|[Dd][0-7])[0-9A-Fa-f]{2}))";
    const std::string in_brackets = "(?:[^\\]\\\\\\-\\[&~|]|" + escape + R"(|\\-)" + ranges() + ")";
    const std::string atom =
        R"((?:[^\^$\\.*+?()[\]{}|/]|\.|)" + escape + R"(|\[\^?)" + in_brackets + R"(+-?\])";
    const std::string count = quantifier();
    const auto choice = [](const std::string& term) { return "(?:" + term + R"(|\|)*)"; };
    std::string inside;
    for (int depth = 0; depth <= kDepth; ++depth) {
        const std::string group = depth == 0 ? "" : R"(|\((?:\?:)?)" + inside + R"(\))";
        const std::string ahead = depth < kDepth ? "" : R"(|\(\?[=!])" + inside + R"(\))";
        inside = choice("(?:" + atom + group + "))" + count + R"(|[\^$]|\\[bB])" + ahead);
    }
    return inside;
}

}  // namespace sglite::text
