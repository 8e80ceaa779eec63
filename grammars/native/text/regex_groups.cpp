// Groups, lookahead and lookbehind, flags and comments of patterns.
#include <algorithm>

#include "charset.h"
#include "regex_parser.h"

namespace sglite::text {
namespace {

constexpr int kDeepest = 200;  // some threads have a stack of 512 KiB

struct Unsupported {
    const char *sign, *reason;
};
constexpr Unsupported kUnsupported[] = {
    {"P=", "a backreference is not regular; write the texts that may stand there"},
    {"(", "a conditional group is not supported; write both cases out as alternatives"},
    {">", "an atomic group is not supported; write (?:...) instead"},
};

// Adds what may stand right before a place; false where that is more than one character.
bool add_before(const Regex& tree, Ranges& set, bool& start) {
    switch (tree.kind) {
        case Regex::Kind::kChars:
            set.insert(set.end(), tree.chars.begin(), tree.chars.end());
            return true;
        case Regex::Kind::kStart:
            start = true;
            return true;
        case Regex::Kind::kEither:
            return std::ranges::all_of(
                tree.parts, [&](const Regex& part) { return add_before(part, set, start); });
        default:
            return false;
    }
}

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
        if (take("<=")) return lookbehind(start, false);
        if (take("<!")) return lookbehind(start, true);
        for (const auto& [sign, reason] : kUnsupported) {
            if (follows(sign)) refuse(reason, start);
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

Regex Parser::looked_at(size_t start) {
    const Flags outer = flags_;
    flags_may_come_ = false;
    ++depth_;
    Regex tree = either();
    --depth_;
    close(start);
    flags_ = outer;
    return tree;
}

Regex Parser::lookahead(size_t start, bool negative) {
    Regex tree{.kind = negative ? Regex::Kind::kNotAhead : Regex::Kind::kAhead};
    tree.parts.push_back(looked_at(start));
    return tree;
}

// One character back is part of a state; of more, an automaton would have to keep several readings.
Regex Parser::lookbehind(size_t start, bool negative) {
    Ranges set;
    bool at_start = false;
    if (!add_before(looked_at(start), set, at_start) || (negative && at_start)) {
        refuse(
            "lookbehind of anything but one character is not supported; say it of what stands "
            "before, by lookahead or alternatives",
            start);
    }
    Regex tree = chars(united(std::move(set)));
    tree.kind = negative ? Regex::Kind::kNotBehind : Regex::Kind::kBehind;
    if (!at_start) return tree;
    return {.kind = Regex::Kind::kEither, .parts = {{.kind = Regex::Kind::kStart}, tree}};
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
        } else if (letter == 'm') {
            flags.multiline = on;
        } else if (letter == 'x' && python_) {
            flags.verbose = on;
        } else if (letter == 'a' && python_ && on) {
            flags.ascii_only = true;
        } else if (letter == 'u' && python_ && on) {
            flags.ascii_only = false;
        } else if (letter == 'x' || letter == 'L') {
            refuse("flag '" + std::string(1, static_cast<char>(letter)) + "' is not supported",
                   start);
        } else {
            refuse("an unknown kind of group or flag", start);
        }
    }
}

}  // namespace sglite::text
