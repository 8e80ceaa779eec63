// Patterns as languages: what is simpler than an automaton of its own becomes something simpler.
#include <algorithm>
#include <optional>

#include "pool.h"
#include "utf8.h"

namespace sglite::text {
namespace {

using Parts = std::vector<const Regex*>;

constexpr size_t kMostAlternatives = 16;
constexpr size_t kMostWords = 20'000;

Regex any_text() {
    const Regex any{.kind = Regex::Kind::kChars, .chars = {{0, kLastCharacter}}};
    return {.kind = Regex::Kind::kRepeat, .parts = {any}, .low = 0, .high = -1};
}

void flatten(const Regex& tree, Parts& parts, int depth = 0) {
    if (tree.kind == Regex::Kind::kConcat && depth < 100) {
        for (const Regex& part : tree.parts) flatten(part, parts, depth + 1);
    } else {
        parts.push_back(&tree);
    }
}

bool is(const Parts& parts, size_t at, Regex::Kind kind) {
    return at < parts.size() && parts[at]->kind == kind;
}

bool anchored(const Regex& tree) {
    Parts parts;
    flatten(tree, parts);
    return is(parts, 0, Regex::Kind::kStart) || is(parts, parts.size() - 1, Regex::Kind::kEnd);
}

std::optional<std::string> literal(const Regex& tree) {
    Parts parts;
    flatten(tree, parts);
    std::string text;
    for (const Regex* part : parts) {
        if (part->kind != Regex::Kind::kChars || part->chars.size() != 1) return std::nullopt;
        const auto [low, high] = part->chars[0];
        if (low != high) return std::nullopt;
        write_utf8(low, text);
    }
    return text;
}

// The texts of a choice between plain texts.
std::optional<std::vector<std::string>> choice(const Parts& parts) {
    if (parts.size() == 1 && parts[0]->kind == Regex::Kind::kEither &&
        parts[0]->parts.size() <= kMostWords) {
        std::vector<std::string> texts;
        for (const Regex& part : parts[0]->parts) {
            std::optional<std::string> text = literal(part);
            if (!text) return std::nullopt;
            texts.push_back(std::move(*text));
        }
        return texts;
    }
    std::string text;
    for (const Regex* part : parts) {
        const std::optional<std::string> one = literal(*part);
        if (!one) return std::nullopt;
        text += *one;
    }
    return std::vector{text};
}

Regex concat(const Parts& parts) {
    Regex tree;
    for (const Regex* part : parts) tree.parts.push_back(*part);
    return tree;
}

}  // namespace

TextState Pool::tree(const Regex& tree, bool search) {
    Parts parts;
    flatten(tree, parts);
    if (search && parts.size() == 1 && parts[0]->kind == Regex::Kind::kEither &&
        parts[0]->parts.size() <= kMostAlternatives &&
        std::any_of(parts[0]->parts.begin(), parts[0]->parts.end(), anchored)) {
        std::vector<TextState> states;
        for (const Regex& part : parts[0]->parts) states.push_back(this->tree(part, true));
        return either(std::move(states));
    }
    bool from_start = !search, to_end = !search;
    while (is(parts, parts.size() - 1, Regex::Kind::kEnd)) {
        parts.pop_back();
        to_end = true;
    }
    // What stands before the text as a whole is a language of its own.
    std::vector<TextState> also;
    size_t first = 0;
    for (; first < parts.size(); ++first) {
        const Regex::Kind kind = parts[first]->kind;
        if (kind == Regex::Kind::kStart) {
            from_start = true;
            continue;
        }
        if (!from_start) break;
        if (kind != Regex::Kind::kAhead && kind != Regex::Kind::kNotAhead) break;
        const Regex whole{.parts = {parts[first]->parts[0], any_text()}};
        const TextState ahead = this->tree(whole, false);
        also.push_back(kind == Regex::Kind::kAhead ? ahead : complement(ahead));
    }
    parts.erase(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(first));
    also.push_back(whole(parts, from_start, to_end));
    return also.size() == 1 ? also[0] : both(std::move(also));
}

TextState Pool::whole(const std::vector<const Regex*>& parts, bool from_start, bool to_end) {
    if (from_start && to_end) {
        if (auto texts = choice(parts)) return words(std::move(*texts));
        if (parts.size() == 1 && parts[0]->kind == Regex::Kind::kRepeat &&
            parts[0]->parts[0].kind == Regex::Kind::kChars) {
            const Regex& repeat = *parts[0];
            const bool endless = repeat.high < 0 || repeat.high > kMostCount;
            if (repeat.low > kMostCount) throw Refused("the pattern repeats too often");
            const auto need = static_cast<int32_t>(repeat.low);
            const int32_t room = endless ? kEndless : static_cast<int32_t>(repeat.high);
            if (spelled_.before(repeat.parts[0].chars) == kAnyCharacter) return length(need, room);
            // Few characters are cheaper without counts.
            if (need > 1 || (!endless && room > 1)) {
                Regex texts = repeat;
                texts.low = 0;
                texts.high = -1;
                return bounded(begin(nfa(texts, {}), kAtStart), need, room);
            }
        }
    }
    const Regex any = any_text();
    Parts all = parts;
    if (!from_start) all.insert(all.begin(), &any);
    if (!to_end) all.push_back(&any);
    if (!parts.empty() || (from_start && to_end)) {
        const Regex tree = concat(all);
        return begin(nfa(tree, borders_of(tree)), kAtStart);
    }
    return kAll;
}

}  // namespace sglite::text
