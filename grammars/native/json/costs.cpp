// Bounds on the tokens to the end, from every place of the JSON machine.
#include <algorithm>
#include <bit>

#include "machine.h"

namespace sglite::json {
namespace {

constexpr int kMostTried = 10'000;  // beginnings of a key that is made up to price it
constexpr int32_t kWidest = 6;      // bytes of one character, as it is written

}  // namespace

std::string written(std::string_view text) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string found;
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        const size_t place = std::string_view("\"\\\b\f\n\r\t").find(c);
        if (place != std::string_view::npos) {
            found += {'\\', "\"\\bfnrt"[place]};
        } else if (byte < 0x20) {
            found += "\\u00";
            found += {kDigits[byte >> 4], kDigits[byte & 15]};
        } else {
            found += c;
        }
    }
    return found;
}

// The fewest tokens that spell a text within a string; its bytes, where that is not possible.
int32_t JsonMachine::spell(std::string_view plain) {
    const auto [place, fresh] = spelled_.try_emplace(std::string(plain));
    if (!fresh) return place->second;
    const std::string text = written(plain);
    const Trie& trie = vocabulary_->trie();
    std::vector<int32_t> fewest(text.size() + 1, kUnreachable);
    fewest[0] = 0;
    for (size_t from = 0; from < text.size(); ++from) {
        uint32_t node = 0;
        for (size_t to = from; to < text.size(); ++to) {
            node = trie.child(node, static_cast<uint8_t>(text[to]));
            if (node == 0) break;
            if (trie.at(node).empty()) continue;
            fewest[to + 1] = std::min(fewest[to + 1], fewest[from] + 1);
        }
    }
    const auto bytes = static_cast<int32_t>(text.size());
    return place->second = std::min(fewest.back(), bytes);
}

int32_t JsonMachine::cost(const Position& at) {
    const int32_t id = at.at[kFrame];
    const bool single = style_.whitespace == Style::Whitespace::kSingle;
    const int32_t space = single && spaces_of(at) == 0 ? 1 : 0;
    switch (place_of(at)) {
        case kValue:
            return cost_of_value(id);
        case kSpacedValue:
            return add_cost(cost_of_value(id), space);
        case kLiteral:
            return cost_of_literal(at);
        case kString:
        case kNumber:
            return cost_of_text(at);
        case kObjectBegin:
        case kMemberEnd:
            return cost_of_closing(objects_[at.at[kState]], id);
        case kNextKey:
            return add_cost(
                cost_of_key(objects_.with_keys(at.at[kState]).key, at.at[kState], "", id),
                1 + space);
        case kKey:
            return cost_of_key(at.at[kState], at.at[kObject], keys_.text(at.at[kText]), id);
        case kColon:
            return add_cost(cost_of_value(id), 1 + single);
        case kArrayBegin:
        case kItemEnd:
            return cost_of_closing(arrays_[at.at[kState]], id);
        default:
            return 0;
    }
}

int32_t JsonMachine::cost_of_value(int32_t id) {
    const Frame& of = known(id);
    int32_t best = kUnreachable;
    for (size_t lane = 0; lane < of.goals.size(); ++lane) {
        best = std::min(best, add_cost(goals_.goal(of.goals[lane]).cost, of.below[lane]));
    }
    return best;
}

int32_t JsonMachine::cost_of_literal(const Position& at) {
    const int32_t progress = extra_of(at), which = progress >> 3, done = progress & 7;
    const Frame& of = known(at.at[kFrame]);
    int32_t best = kUnreachable;
    for (size_t lane = 0; lane < of.goals.size(); ++lane) {
        const Goal& goal = goals_.goal(of.goals[lane]);
        const bool fits = which == 0 ? goal.null : which == 1 ? goal.falsity : goal.truth;
        if (fits) best = std::min(best, of.below[lane]);
    }
    return add_cost(best, (which == 1 ? 5 : 4) - done);
}

int32_t JsonMachine::cost_of_text(const Position& at) {
    const Frame& of = known(at.at[kFrame]);
    const auto cost_from = [&](LexId lex) {
        int32_t best = kUnreachable;
        for (const auto& [lane, state] : lexer_.lanes(lexer_.base(lex))) {
            best = std::min(best, add_cost(languages_->distance(state), of.below[lane]));
        }
        return best;
    };
    if (place_of(at) == kNumber) return cost_from(at.at[kState]);
    if (!lexer_.in_escape(at.at[kState])) return add_cost(cost_from(at.at[kState]), 1);
    int32_t best = kUnreachable;
    for (const Lexer::Ending& ending : lexer_.endings(at.at[kState])) {
        best = std::min(best, add_cost(cost_from(ending.lex), ending.bytes + 1));
    }
    return best;
}

template <typename State>
int32_t JsonMachine::cost_of_closing(const State& state, int32_t frame) {
    const std::vector<int32_t>& below = known(frame).below;
    int32_t best = kUnreachable;
    for (const auto& item : state.items)
        best = std::min(best, add_cost(item.close, below[item.lane]));
    return best;
}

// From within a key, `text` so far if that is none of the plan's names, to the end of everything.
int32_t JsonMachine::cost_of_key(LexId lex, int32_t object, const std::string& text,
                                 int32_t frame) {
    const Lexer::Key key = lexer_.key(lexer_.base(lex));
    const KeyPlan& plan = lexer_.plan(objects_.with_keys(object).plan);
    const KeyPlan& near = lexer_.plan_of(lexer_.base(lex));
    const std::string begun = key.low == key.high ? text : near.names[key.low].substr(0, key.depth);
    int32_t best = kUnreachable;
    if (lexer_.in_escape(lex)) {
        for (const auto& [then, taken, content] : lexer_.endings(lex)) {
            const int32_t rest = cost_of_key(then, object, begun + content, frame);
            best = std::min(best, add_cost(rest, taken));
        }
        return best;
    }
    const int32_t bytes = style_.whitespace == Style::Whitespace::kSingle ? 3 : 2;  // `": `
    for (int32_t i = key.low; i < key.high; ++i) {
        if (!near.is_allowed(i)) continue;
        const std::string_view name = near.names[i];
        const int32_t member = member_frame(object, keys_.add(0, name), frame);
        best = std::min(best, add_cost(spell(name.substr(key.depth)), cost_of_value(member)));
    }
    if (key.extra != text::kDeadText) {
        best = std::min(best, cost_of_extra_key(begun, plan, object, frame));
    }
    return add_cost(best, bytes);
}

// The nearest extra key of any kind. Where the used ones are near, or where the key decides about
// further ones, keys are tried one by one.
int32_t JsonMachine::cost_of_extra_key(const std::string& begun, const KeyPlan& plan,
                                       int32_t object, int32_t frame) {
    const ObjectState& state = objects_[object];
    const auto used = std::ranges::lower_bound(state.extras, begun);
    const bool exact = state.scarce || (used != state.extras.end() && used->starts_with(begun));
    const std::vector<int32_t>& below = known(frame).below;
    int32_t best = kUnreachable;
    for (const KeyKind& kind : objects_.kinds_of_keys(object)) {
        const text::TextState at = state_behind(kind.keys, begun);
        if (at == text::kDeadText) continue;
        const int32_t cost =
            exact ? cost_of_key_from(at, begun, plan, object, frame)
                  : add_cost(languages_->distance(at), add_cost(kind.behind, below[kind.lane]));
        best = std::min(best, cost);
    }
    return best;
}

text::TextState JsonMachine::state_behind(text::LangId language, std::string_view text) {
    text::TextState state = languages_->start(language);
    for (const char c : text) {
        if (state == text::kDeadText) break;
        state = languages_->next(state, static_cast<uint8_t>(c));
    }
    return state;
}

// The lightest text from `state`, behind `begun`, that can be the next key, and what follows it.
int32_t JsonMachine::cost_of_key_from(text::TextState state, const std::string& begun,
                                      const KeyPlan& plan, int32_t object, int32_t frame) {
    struct Open {
        int32_t least, bytes;  // of the whole rest; of it so far
        std::string text;
        text::TextState state;
        // Of equal ones, the one that has come further is looked at first.
        bool operator<(const Open& other) const {
            return std::pair(least, -bytes) > std::pair(other.least, -other.bytes);
        }
    };
    if (state == text::kDeadText) return kUnreachable;
    std::vector<Open> heap{{languages_->distance(state), 0, begun, state}};
    for (int tried = 0; !heap.empty() && tried < kMostTried; ++tried) {
        std::pop_heap(heap.begin(), heap.end());
        const Open at = std::move(heap.back());
        heap.pop_back();
        if (at.least == at.bytes && languages_->accepts(at.state) &&
            !std::ranges::binary_search(plan.names, at.text)) {
            const int32_t member = member_frame(object, keys_.add(0, at.text), frame);
            if (!frames_[member].goals.empty()) return add_cost(at.bytes, cost_of_value(member));
        }
        for (int byte = 0; byte < 256; ++byte) {
            const text::TextState to = languages_->next(at.state, static_cast<uint8_t>(byte));
            if (to == text::kDeadText) continue;
            const char c = static_cast<char>(byte);
            const int32_t bytes = at.bytes + static_cast<int32_t>(written({&c, 1}).size());
            heap.push_back({add_cost(bytes, languages_->distance(to)), bytes, at.text + c, to});
            std::push_heap(heap.begin(), heap.end());
        }
    }
    return kUnreachable;
}

// The costs behind tokens that stay within a string or key, from the border of a character to
// another, are among these. Up to kUnreachable where that takes a longer look.
JsonMachine::Span JsonMachine::costs_inside(const Position& at) {
    const auto farthest = [&](text::TextState state) {
        const int32_t characters = languages_->deepest(state);
        return characters >= kUnreachable / kWidest ? kUnreachable : kWidest * characters;
    };
    const BaseId base = lexer_.base(at.at[kState]);
    if (place_of(at) == kString) {
        const Frame& of = known(at.at[kFrame]);
        Span span{kUnreachable, 0};
        for (const auto& [lane, state] : lexer_.lanes(base)) {
            span.least = std::min(span.least, add_cost(of.below[lane], 1));
            span.most = std::max(span.most, add_cost(farthest(state), of.below[lane]));
        }
        return {span.least, add_cost(span.most, 1)};
    }
    const Span unknown{0, kUnreachable};
    const Lexer::Key key = lexer_.key(base);
    const int32_t object = at.at[kObject], frame = at.at[kFrame];
    const KeyPlan& plan = lexer_.plan(objects_.with_keys(object).plan);
    const KeyPlan& near = lexer_.plan_of(base);
    if (objects_[object].scarce || key.extra == text::kDeadText) return unknown;
    const std::vector<int32_t>& below = known(frame).below;
    Span span{kUnreachable, 0};
    const std::string begun =
        key.low == key.high ? keys_.text(at.at[kText]) : near.names[key.low].substr(0, key.depth);
    for (const KeyKind& kind : objects_.kinds_of_keys(object)) {
        const text::TextState state = state_behind(kind.keys, begun);
        if (state == text::kDeadText) continue;
        const int32_t behind = add_cost(kind.behind, below[kind.lane]);
        span.least = std::min(span.least, behind);
        span.most = std::max(span.most, add_cost(behind, farthest(state)));
    }
    // Where the nearest keys are used already, each of them takes one more character.
    span.most = add_cost(span.most, static_cast<int32_t>(plan.names.size()));
    for (int32_t i = key.low; i < key.high; ++i) {
        if (!near.is_allowed(i)) continue;
        const int32_t member = member_frame(object, keys_.add(0, near.names[i]), frame);
        const int32_t rest = cost_of_value(member);
        const auto letters = static_cast<int32_t>(written(near.names[i]).size());
        span.least = std::min(span.least, rest);
        span.most = std::max(span.most, add_cost(letters, rest));
    }
    const int32_t bytes = style_.whitespace == Style::Whitespace::kSingle ? 3 : 2;
    return {add_cost(span.least, bytes), add_cost(span.most, bytes)};
}

}  // namespace sglite::json
