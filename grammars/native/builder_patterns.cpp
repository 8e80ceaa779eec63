// Patterns as expressions, and expressions as patterns where an automaton with counters is better.
#include <algorithm>
#include <utility>

#include "builder.h"
#include "text/utf8.h"
#include "text_machine.h"

namespace sglite {
namespace {

using text::Regex;

// Repetitions are written out while that makes no more characters than this.
constexpr int64_t kMostWritten = 64;
constexpr int64_t kLargestBody = 4'000;  // characters

bool conditional(const Regex& tree) {
    return text::is_condition(tree.kind) || std::ranges::any_of(tree.parts, conditional);
}

bool anchored(const Regex& tree) {
    return tree.kind == Regex::Kind::kStart || tree.kind == Regex::Kind::kEnd ||
           std::ranges::any_of(tree.parts, anchored);
}

Regex one(uint32_t code) { return {.kind = Regex::Kind::kChars, .chars = {{code, code}}}; }

}  // namespace

int Builder::pattern(std::string_view pattern) {
    Regex parsed = text::parse(pattern, text::Dialect::kPython);
    if (!conditional(parsed)) return tree(parsed);
    if (anchored(parsed)) {
        throw Refused("an anchor means nothing inside of a text; leave it out");
    }
    const int found = text_machine(std::move(parsed));
    if (expressions_[found].kind == Kind::kMachine) return found;
    throw Refused(
        "the pattern matches nothing: what it asks of the text around it must stand in its own "
        "text, which ends where it ends");
}

// The expression of a tree without conditions.
int Builder::tree(const Regex& tree) {
    std::vector<int> parts;
    switch (tree.kind) {
        case Regex::Kind::kChars:
            return characters(tree.chars, false);
        case Regex::Kind::kConcat:
            return concat(tree.parts);
        case Regex::Kind::kEither:
            for (const Regex& part : tree.parts) parts.push_back(this->tree(part));
            return choice(std::move(parts));
        default:
            return repeat(this->tree(tree.parts[0]), static_cast<int>(tree.low),
                          static_cast<int>(tree.high));
    }
}

// Characters that stand for themselves become literals.
int Builder::concat(const std::vector<Regex>& parts) {
    std::vector<int> made;
    std::string text;
    const auto flush = [&] {
        if (!text.empty()) made.push_back(literal(std::exchange(text, {})));
    };
    for (const Regex& part : parts) {
        const bool plain = part.kind == Regex::Kind::kChars && part.chars.size() == 1 &&
                           part.chars[0].first == part.chars[0].second;
        if (plain) {
            text::write_utf8(part.chars[0].first, text);
        } else {
            flush();
            made.push_back(tree(part));
        }
    }
    flush();
    return made.size() == 1 ? made[0] : sequence(std::move(made));
}

int Builder::text_machine(Regex tree) {
    auto shared = std::make_shared<const Regex>(std::move(tree));
    const auto make = [shared](text::Languages& languages) {
        return languages.regex(*shared, false);
    };
    std::optional<MakeMachine> machines = text_machines_of_any(make, *vocabulary_);
    return machines ? embed(std::move(*machines)) : choice({});
}

// The expression of a repetition that is too long to be written out, or -1.
int Builder::counted(int part, int min, int max) {
    const int64_t copies = std::max(min, max);
    if (copies <= 1) return -1;
    int64_t size = 0;
    std::optional<Regex> body = regular(part, size);
    if (!body || size == 0 || copies * size <= kMostWritten) return -1;
    Regex repeat{.kind = Regex::Kind::kRepeat, .low = min, .high = max};
    repeat.parts.push_back(std::move(*body));
    return text_machine(std::move(repeat));
}

// The tree of an expression without rules and machines; adds to `size` the characters that it
// reads when it is written out.
std::optional<Regex> Builder::regular(int expression, int64_t& size) const {
    const Expression& e = expressions_[expression];
    Regex tree;
    switch (e.kind) {
        case Kind::kLiteral:
            for (const char32_t code : text::decoded(e.text)) tree.parts.push_back(one(code));
            size += static_cast<int64_t>(tree.parts.size());
            break;
        case Kind::kCharacters:
            tree = {.kind = Regex::Kind::kChars, .chars = sets_[e.number]};
            ++size;
            break;
        case Kind::kSequence:
        case Kind::kChoice:
        case Kind::kRepeat: {
            if (e.kind == Kind::kChoice) tree.kind = Regex::Kind::kEither;
            if (e.kind == Kind::kRepeat) {
                tree = {.kind = Regex::Kind::kRepeat, .low = e.min, .high = e.max};
            }
            const int64_t before = size;
            for (const int part : e.parts) {
                std::optional<Regex> inner = regular(part, size);
                if (!inner || size > kLargestBody) return std::nullopt;
                tree.parts.push_back(std::move(*inner));
            }
            if (e.kind == Kind::kRepeat) {
                size = before + (size - before) * std::max({e.min, e.max, 1});
            }
            break;
        }
        default:
            return std::nullopt;
    }
    if (size > kLargestBody) return std::nullopt;
    return tree;
}

}  // namespace sglite
