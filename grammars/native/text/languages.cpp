#include "languages.h"

#include <algorithm>
#include <unordered_map>

#include "pool.h"

namespace sglite::text {

// A language is the state before its texts.
struct Languages::Inside {
    explicit Inside(const Options& options) : pool(options) {
        name(kDeadText);
        name(kAll);
    }

    LangId name(TextState state) {
        const auto [known, fresh] = names.try_emplace(state, static_cast<LangId>(starts.size()));
        if (fresh) starts.push_back(state);
        return known->second;
    }

    // The words of a plain list; null for other languages.
    const std::vector<std::string>* list(LangId language) const {
        const TextState state = starts[language];
        return state >= 0 && pool.kind(state) == Kind::kWords ? &pool.list(state) : nullptr;
    }

    bool contains(LangId language, std::string_view text) {
        TextState state = starts[language];
        if (!pool.live(state)) return false;
        for (const char c : text) {
            state = pool.next(state, static_cast<uint8_t>(c));
            if (state < 0) return false;
        }
        return pool.accepts(state);
    }

    Pool pool;
    std::vector<TextState> starts;  // per language
    std::unordered_map<TextState, LangId> names;
    std::unordered_map<std::string, LangId> patterns;
};

Languages::Languages(const Options& options) : inside_(std::make_unique<Inside>(options)) {}
Languages::~Languages() = default;

LangId Languages::words(std::vector<std::string> texts) {
    return inside_->name(inside_->pool.words(std::move(texts)));
}

LangId Languages::length(int64_t low, int64_t high) {
    if (high >= 0 && low > high) return kNoText;
    if (low > kMostCount) throw Refused("a text of so many characters is out of reach");
    const bool endless = high < 0 || high > kMostCount;
    return inside_->name(inside_->pool.length(static_cast<int32_t>(std::max<int64_t>(low, 0)),
                                              endless ? kEndless : static_cast<int32_t>(high)));
}

LangId Languages::regex(const Regex& tree, bool search) {
    return inside_->name(inside_->pool.tree(tree, search));
}

LangId Languages::pattern(std::string_view pattern, Dialect dialect, bool search) {
    std::string key{static_cast<char>(dialect), static_cast<char>(search)};
    key += pattern;
    const auto known = inside_->patterns.find(key);
    if (known != inside_->patterns.end()) return known->second;
    const LangId language = regex(parse(pattern, dialect), search);
    inside_->patterns.emplace(std::move(key), language);
    return language;
}

LangId Languages::automaton(Dfa dfa) { return inside_->name(inside_->pool.table(std::move(dfa))); }

LangId Languages::quote(std::string_view document, bool whole_words) {
    const TextState start = inside_->pool.quote(document, whole_words);
    if (start == kDeadText) {
        throw Refused(whole_words ? "the document has no word that could be quoted"
                                  : "the document has no character that could be quoted");
    }
    return inside_->name(start);
}

LangId Languages::both(std::vector<LangId> parts) {
    // A list with anything else is the list of those words that are in it.
    for (const LangId part : parts) {
        const std::vector<std::string>* const list = inside_->list(part);
        if (list == nullptr) continue;
        std::vector<std::string> texts = *list;
        std::erase_if(texts, [&](const std::string& text) {
            return !std::all_of(parts.begin(), parts.end(), [&](LangId other) {
                return other == part || inside_->contains(other, text);
            });
        });
        return words(std::move(texts));
    }
    std::vector<TextState> states;
    for (const LangId part : parts) states.push_back(inside_->starts[part]);
    return inside_->name(inside_->pool.both(std::move(states)));
}

LangId Languages::either(std::vector<LangId> parts) {
    std::vector<std::string> texts;
    std::vector<TextState> states;
    for (const LangId part : parts) {
        if (const std::vector<std::string>* const list = inside_->list(part)) {
            texts.insert(texts.end(), list->begin(), list->end());
        } else {
            states.push_back(inside_->starts[part]);
        }
    }
    if (!texts.empty()) states.push_back(inside_->pool.words(std::move(texts)));
    return inside_->name(inside_->pool.either(std::move(states)));
}

LangId Languages::complement(LangId language) {
    return inside_->name(inside_->pool.complement(inside_->starts[language]));
}

bool Languages::contains(LangId language, std::string_view text) {
    return inside_->contains(language, text);
}

int64_t Languages::count(LangId language, int64_t limit) {
    return inside_->pool.count(inside_->starts[language], limit);
}

std::vector<std::string> Languages::examples(LangId language, size_t limit) {
    return inside_->pool.examples(inside_->starts[language], limit);
}

std::bitset<256> Languages::bytes(LangId language) {
    return inside_->pool.bytes(inside_->starts[language]);
}

TextState Languages::start(LangId language) {
    const TextState state = inside_->starts[language];
    return inside_->pool.live(state) ? state : kDeadText;
}

TextState Languages::next(TextState state, uint8_t byte) { return inside_->pool.next(state, byte); }

bool Languages::accepts(TextState state) { return state >= 0 && inside_->pool.accepts(state); }

bool Languages::can_go_on(TextState state) { return state >= 0 && inside_->pool.can_go_on(state); }

int32_t Languages::distance(TextState state) { return inside_->pool.least(state, kWeight); }

std::pair<uint8_t, TextState> Languages::lightest(TextState state) {
    return inside_->pool.lightest(state);
}

int32_t Languages::deepest(TextState state) { return inside_->pool.depth(state).deepest; }

Reach Languages::reach(TextState state) { return inside_->pool.reach(state); }

bool Languages::leaves_out(TextState state, size_t most, std::vector<std::string>& texts) const {
    return inside_->pool.leaves_out(state, most, texts);
}

TextState Languages::clipped(TextState state) { return inside_->pool.clipped(state); }

std::optional<Quoted> Languages::quoted(TextState state) const {
    if (state < 0 || inside_->pool.kind(state) != Kind::kQuote) return std::nullopt;
    return inside_->pool.quoted(state);
}

const uint8_t* Languages::classes(TextState state) const {
    return inside_->pool.classes(state).of.data();
}

bool Languages::allows(TextState state, uint32_t low, uint32_t high) {
    Pool& pool = inside_->pool;
    return state >= 0 && low <= high && pool.allows(state, pool.spelled().before({{low, high}}));
}

void Languages::settle(LangId language) { inside_->pool.settle(inside_->starts[language]); }

void Languages::settle(const std::vector<LangId>& languages) {
    std::vector<TextState> states;
    for (const LangId language : languages) {
        settle(language);
        states.push_back(start(language));
    }
    inside_->pool.settle_together(states);
}

void Languages::trust(LangId language) { inside_->pool.trust(inside_->starts[language]); }

void Languages::lift_limits() { inside_->pool.lift_limits(); }

size_t Languages::memory() const {
    size_t bytes = inside_->pool.memory() + inside_->starts.size() * 64;
    for (const auto& [key, language] : inside_->patterns) bytes += key.size() + 64;
    return bytes;
}

}  // namespace sglite::text
