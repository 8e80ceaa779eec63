#include "regex_parser.h"

#include <algorithm>
#include <cctype>

#include "charset.h"
#include "utf8.h"

namespace sglite::text {
namespace {

constexpr size_t kLongestPattern = 200'000;  // bytes
constexpr size_t kMostRanges = 2'000'000;

bool is_alphanumeric(char32_t code) { return code < 0x80 && std::isalnum(static_cast<int>(code)); }

bool is_digit(char32_t code) { return code >= '0' && code <= '9'; }

}  // namespace

Regex parse(std::string_view pattern, Dialect dialect) { return Parser(pattern, dialect).run(); }

Parser::Parser(std::string_view pattern, Dialect dialect) : python_(dialect == Dialect::kPython) {
    if (pattern.size() > kLongestPattern) {
        throw Refused("a pattern of more than " + std::to_string(kLongestPattern) + " bytes");
    }
    pattern_ = decoded(pattern);
    flags_.ascii_only = !python_;
}

Regex Parser::run() {
    Regex tree = either();
    if (!at_end()) refuse("unmatched ')'", at_);
    return tree;
}

void Parser::refuse(const std::string& reason, size_t at) const {
    throw Refused(reason, "1:" + std::to_string(at + 1));
}

bool Parser::follows(std::string_view text) const {
    if (at_ + text.size() > pattern_.size()) return false;
    return std::equal(text.begin(), text.end(), pattern_.begin() + static_cast<ptrdiff_t>(at_),
                      [](char a, char32_t b) { return static_cast<char32_t>(a) == b; });
}

bool Parser::take(std::string_view text) {
    if (!follows(text)) return false;
    at_ += text.size();
    return true;
}

char32_t Parser::next(const char* inside) {
    if (at_end()) refuse(std::string("the pattern ends inside ") + inside, at_);
    return pattern_[at_++];
}

Regex Parser::either() {
    Regex first = concat();
    if (peek() != '|') return first;
    Regex tree{.kind = Regex::Kind::kEither};
    tree.parts.push_back(std::move(first));
    while (take("|")) {
        flags_may_come_ = false;
        tree.parts.push_back(concat());
    }
    return tree;
}

Regex Parser::concat() {
    Regex tree;
    take_plain(tree);
    for (;;) {
        skip_comments();
        if (at_end() || peek() == '|' || peek() == ')') break;
        const bool in_group = peek() == '(';
        Regex part = atom();
        skip_comments();
        Count count{};
        const size_t place = at_;
        if (quantifier(count)) {
            if (is_condition(part.kind) && !in_group) {
                refuse("an anchor or a word boundary cannot be repeated", place);
            }
            part = repeated(std::move(part), count);
        }
        if (part.kind == Regex::Kind::kConcat && part.parts.empty()) continue;
        flags_may_come_ = false;
        tree.parts.push_back(std::move(part));
        take_plain(tree);
    }
    if (tree.parts.size() != 1) return tree;
    Regex only = std::move(tree.parts[0]);
    return only;
}

// Letters and digits that stand for themselves: most of what patterns hold, so it goes fast.
void Parser::take_plain(Regex& tree) {
    if (flags_.ignore_case || flags_.verbose) return;
    size_t length = 0;
    while (is_alphanumeric(peek(length))) ++length;
    const char32_t behind = peek(length);
    if (behind == '*' || behind == '+' || behind == '?' || behind == '{' || behind == '(') {
        length -= length > 0;  // the last one may be repeated
    }
    if (length == 0) return;
    flags_may_come_ = false;
    if (tree.parts.empty()) tree.parts.reserve(length + 1);
    for (; length > 0; --length, ++at_) {
        Regex& part = tree.parts.emplace_back();
        part.kind = Regex::Kind::kChars;
        part.chars.assign(1, {peek(), peek()});
    }
}

// Python: `(?#...)`, and where the flag x holds whitespace and `#` to the end of the line.
void Parser::skip_comments() {
    for (;;) {
        const bool space = peek() == ' ' || (peek() >= '\t' && peek() <= '\r');
        if (flags_.verbose && space) {
            ++at_;
        } else if (flags_.verbose && peek() == '#') {
            while (!at_end() && peek() != '\n') ++at_;
        } else if (python_ && take("(?#")) {
            while (next("a comment") != ')') {
            }
        } else {
            return;
        }
    }
}

Regex Parser::repeated(Regex part, const Count& count) {
    if (part.kind == Regex::Kind::kConcat && part.parts.empty()) return part;
    if (is_condition(part.kind)) return count.low > 0 ? std::move(part) : Regex{};
    Regex tree{.kind = Regex::Kind::kRepeat, .low = count.low, .high = count.high};
    tree.parts.push_back(std::move(part));
    return tree;
}

bool Parser::quantifier(Count& count) {
    switch (peek()) {
        case '*':
            ++at_, count = {0, -1};
            break;
        case '+':
            ++at_, count = {1, -1};
            break;
        case '?':
            ++at_, count = {0, 1};
            break;
        default:
            if (!braces(count)) return false;
    }
    if (python_ && peek() == '+') {
        refuse("a possessive quantifier is not supported; drop the '+'", at_);
    }
    take("?");  // lazy: the same language
    skip_comments();
    const size_t place = at_;
    Count again{};
    if (peek() == '*' || peek() == '+' || peek() == '?' || braces(again)) {
        refuse("a quantifier of a quantifier; put the inner one into a group", place);
    }
    return true;
}

// `{m}`, `{m,}`, `{m,n}`, in Python also `{,n}` and `{,}`. Other braces are characters, and
// nothing is read then.
bool Parser::braces(Count& count) {
    const size_t start = at_;
    if (peek() != '{') return false;
    ++at_;
    const bool with_low = is_digit(peek());
    const int64_t low = number();
    const bool comma = take(",");
    const bool with_high = comma && is_digit(peek());
    const int64_t high = number();
    const bool good = take("}") && (with_low || (python_ && comma));
    if (!good) {
        at_ = start;
        return false;
    }
    count = {low, with_high ? high : comma ? -1 : low};
    if (count.high >= 0 && count.high < count.low) {
        refuse("a repetition whose maximum is below its minimum", start);
    }
    if (std::max(count.low, count.high) > kMostRepeats) {
        refuse("a repetition of more than " + std::to_string(kMostRepeats), start);
    }
    return true;
}

int64_t Parser::number() {
    int64_t value = 0;
    for (; is_digit(peek()); ++at_) {
        value = std::min(value * 10 + static_cast<int64_t>(peek() - '0'), kMostRepeats + 1);
    }
    return value;
}

Regex Parser::atom() {
    const size_t start = at_;
    const char32_t code = next("the pattern");
    switch (code) {
        case '(':
            return group(start);
        case '[':
            return brackets(start);
        case '.':
            return dot();
        case '^':
            return line_start();
        case '$':
            return line_end();
        case '\\':
            return escape(start);
        case '*':
        case '+':
        case '?':
            refuse("nothing to repeat", start);
        case '{': {
            Count count{};
            --at_;
            if (braces(count)) refuse("nothing to repeat", start);
            ++at_;
            return literal(code);
        }
        default:
            return literal(code);
    }
}

Regex Parser::literal(char32_t code) {
    Ranges one(1, {code, code});
    if (flags_.ignore_case || (code >= 0xD800 && code < 0xE000)) {
        return chars(cased(united(std::move(one))));
    }
    Regex tree{.kind = Regex::Kind::kChars};
    tree.chars = std::move(one);
    return tree;
}

Ranges Parser::line_ends() const {
    if (python_) return {{'\n', '\n'}};
    return {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
}

Regex Parser::dot() const {
    return {.kind = Regex::Kind::kChars, .chars = negated(flags_.dot_all ? Ranges{} : line_ends())};
}

Regex Parser::line_start() const {
    const Regex start{.kind = Regex::Kind::kStart};
    if (!flags_.multiline) return start;
    const Regex line{.kind = Regex::Kind::kBehind, .chars = line_ends()};
    return {.kind = Regex::Kind::kEither, .parts = {start, line}};
}

Regex Parser::line_end() const {
    const Regex end{.kind = Regex::Kind::kEnd};
    if (!flags_.multiline) return end;
    const Regex line_end{.kind = Regex::Kind::kChars, .chars = line_ends()};
    const Regex line{.kind = Regex::Kind::kAhead, .parts = {line_end}};
    return {.kind = Regex::Kind::kEither, .parts = {end, line}};
}

Regex Parser::chars(Ranges ranges) {
    ranges_ += ranges.size();
    if (ranges_ > kMostRanges) {
        refuse("the pattern holds too many large sets of characters", at_);
    }
    Regex tree{.kind = Regex::Kind::kChars};
    tree.chars = std::move(ranges);
    return tree;
}

Ranges Parser::cased(Ranges ranges) const {
    if (!flags_.ignore_case) return ranges;
    return without_case(ranges, python_ && flags_.ascii_only);
}

}  // namespace sglite::text
