// Groups, lookahead, flags and comments of patterns.
#include <algorithm>

#include "regex_parser.h"

namespace sglite::text {
namespace {

constexpr int kDeepest = 500;

struct Unsupported {
    const char *sign, *name;
};
constexpr Unsupported kUnsupported[] = {
    {"<=", "lookbehind"},         {"<!", "negative lookbehind"}, {"P=", "a backreference"},
    {"(", "a conditional group"}, {">", "an atomic group"},
};

bool begins_name(char32_t code) {
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || code == '_' ||
           code == '$' || code >= 0x80;
}

}  // namespace

Regex Parser::group(size_t start) {
    if (depth_ == kDeepest) {
        refuse("groups nested deeper than " + std::to_string(kDeepest), start);
    }
    const Flags outer = flags_;
    if (take("?")) {
        if (take("=")) return lookahead(start, false);
        if (take("!")) return lookahead(start, true);
        for (const auto& [sign, name] : kUnsupported) {
            if (follows(sign)) refuse(std::string(name) + " is not supported", start);
        }
        if (take("P<") || take("<")) {
            group_name(start);
        } else if (!take(":") && inline_flags(start)) {
            skip_comments();
            if (peek() == '*' || peek() == '+' || peek() == '?') refuse("nothing to repeat", at_);
            return {};
        }
    }
    flags_may_come_ = false;
    ++depth_;
    Regex tree = either();
    --depth_;
    close(start);
    flags_ = outer;
    return tree;
}

Regex Parser::lookahead(size_t start, bool negative) {
    const Flags outer = flags_;
    flags_may_come_ = false;
    ++depth_;
    Regex tree{.kind = negative ? Regex::Kind::kNotAhead : Regex::Kind::kAhead};
    tree.parts.push_back(either());
    --depth_;
    close(start);
    flags_ = outer;
    return tree;
}

void Parser::close(size_t start) {
    if (!take(")")) refuse("a group is not closed", start);
}

void Parser::group_name(size_t start) {
    std::u32string name;
    while (peek() != '>') {
        const char32_t code = next("a group's name");
        const bool good = begins_name(code) || (!name.empty() && code >= '0' && code <= '9');
        if (!good) refuse("a group's name is no identifier", start);
        name.push_back(code);
    }
    ++at_;
    if (name.empty()) refuse("a group without the name that its brackets promise", start);
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) {
        refuse("a group's name stands twice", start);
    }
    names_.push_back(std::move(name));
}

bool Parser::inline_flags(size_t start) {
    bool on = true, any = false;
    Flags flags = flags_;
    for (;;) {
        const char32_t letter = next("a group's flags");
        if (letter == ':' || letter == ')') {
            if (!any) refuse("a group's flags are missing", start);
            flags_ = flags;
            if (letter == ':') return false;
            if (!on) refuse("flags for the whole pattern cannot be switched off", start);
            if (!flags_may_come_ || depth_ > 0) {
                refuse("flags for the whole pattern must stand at its start", start);
            }
            return true;
        }
        if (letter == '-' && on) {
            on = false;
            any = false;
            continue;
        }
        any = true;
        if (letter == 'i') {
            flags.ignore_case = on;
        } else if (letter == 's') {
            flags.dot_all = on;
        } else if (letter == 'x' && python_) {
            flags.verbose = on;
        } else if (letter == 'a' && python_ && on) {
            flags.ascii_only = true;
        } else if (letter == 'u' && python_ && on) {
            flags.ascii_only = false;
        } else if (letter == 'm' || letter == 'x' || letter == 'L') {
            refuse("flag '" + std::string(1, static_cast<char>(letter)) + "' is not supported",
                   start);
        } else {
            refuse("an unknown kind of group or flag", start);
        }
    }
}

}  // namespace sglite::text
