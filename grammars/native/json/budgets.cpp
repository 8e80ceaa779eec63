// Masks within budgets, inside of strings and keys: most tokens there lead to a few states, and
// behind equal states the costs are equal.
#include <algorithm>

#include "key_costs.h"

namespace sglite::json {
namespace {

constexpr int32_t kUnfinished = 12;  // bytes that a begun character may lack
constexpr int32_t kWidest = 6;       // bytes of one character, as it is written

// Over all texts that can follow, the bytes that the shortest rest has.
int32_t bytes_at_most(text::Languages& languages, text::TextState state) {
    const int32_t characters = languages.deepest(state);
    return characters >= kUnreachable / kWidest ? kUnreachable : kWidest * characters;
}

}  // namespace

bool JsonMachine::find_within(const Position& at, int32_t budget, Mask& mask) {
    const int32_t place = place_of(at);
    if (place != kString && place != kKey) return false;
    Span span{0, kUnreachable};
    bool is_told = false;
    if (lexer_.at_border(at.at[kState])) {
        span = costs_inside(at);
        is_told = place == kString || key_costs(at.at[kObject], at.at[kFrame]).is_told;
    }
    const bool none = span.least >= budget, all = span.most < budget;
    if ((!none && !all && !is_told) || !fill_string(at, mask, budget)) {
        walk_text(at, mask, budget);
        return true;
    }
    const StringSlice& slice = vocabulary_->string_slice(style_.any_spelling);
    if (!none && !all) {
        price_inside(at, budget, slice, mask);
        return true;
    }
    if (none) {
        for (size_t i = 0; i < mask.bits.size(); ++i) mask.bits[i] &= ~slice.inside[i];
    }
    mask.highest = std::max(mask.highest, add_cost(span.most, kUnfinished));
    if (all && budget <= add_cost(span.most, kUnfinished)) {
        price_unfinished(at, budget, slice, mask);
    }
    return true;
}

// Of tokens that stay inside, all of which are set, leaves those behind which the cost is below
// the budget. Behind a state where any text may follow it is the same for all tokens.
void JsonMachine::price_inside(const Position& at, int32_t budget, const StringSlice& slice,
                               Mask& mask) {
    struct Priced {
        uint32_t node;
        int32_t cost;
    };
    std::vector<Priced> single, whole;  // of nodes, of their subtrees
    struct Text {
        LexId lex;
        BaseId kinds;  // of extra keys
        bool operator==(const Text&) const = default;
    };
    const bool is_key = place_of(at) == kKey;
    Position to = at;
    std::unordered_map<LexId, int32_t> known;
    const auto cost_behind = [&](const Text& text) {
        if (is_key) return cost_of_told_key(text.lex, text.kinds, at.at[kObject], at.at[kFrame]);
        const auto [place, fresh] = known.try_emplace(text.lex);
        if (fresh) {
            to.at[kState] = text.lex;
            place->second = cost_of_text(to);
        }
        return place->second;
    };
    const auto is_settled = [&](const Text& text) {
        return lexer_.at_border(text.lex) && is_free(lexer_.base(text.lex)) &&
               (text.kinds == kDeadLex || is_free(text.kinds));
    };
    const Trie& trie = vocabulary_->trie();
    const auto nodes = trie.nodes();
    std::vector<Text> path(trie.longest() + 1);
    path[0] = {at.at[kState], kDeadLex};
    if (is_key) {
        const KeyCosts& costs = key_costs(at.at[kObject], at.at[kFrame]);
        if (!costs.by_base) path[0].kinds = kinds_behind(costs, keys_.text(key_text(at)));
    }
    Text last{kDeadLex, kDeadLex};  // that was settled
    int32_t last_cost = 0;
    for (size_t node = 1; node < nodes.size();) {
        const TrieNode& n = nodes[node];
        const Text& before = path[n.depth - 1];
        Text text{lexer_.next(before.lex, n.byte), before.kinds};
        if (text.lex < 0) {
            node = n.skip;
            continue;
        }
        if (text.kinds != kDeadLex) {
            char content[4];
            const int count = lexer_.content(before.lex, n.byte, content);
            text.kinds = kinds_behind(text.kinds, {content, static_cast<size_t>(count)});
        }
        if (text != last && is_settled(text)) {
            last = text;
            last_cost = cost_behind(text);
        }
        if (text == last) {
            whole.push_back({static_cast<uint32_t>(node), last_cost});
            node = n.skip;
            continue;
        }
        path[n.depth] = text;
        if (n.strings != 0) single.push_back({static_cast<uint32_t>(node), cost_behind(text)});
        ++node;
    }
    size_t within = 0, beyond = 0;
    bool is_near = false;
    for (const auto& [node, then] : whole) {
        (then < budget ? within : beyond) += trie.below(node).size();
        is_near = is_near || (then < budget && then + kUnfinished >= budget);
        mask.highest = std::max(mask.highest, add_cost(then, kUnfinished));
    }
    const bool begins_empty = beyond > within;
    if (begins_empty) {
        for (size_t i = 0; i < mask.bits.size(); ++i) mask.bits[i] &= ~slice.inside[i];
    }
    const auto set = [&](int32_t id, bool value) {
        const uint32_t bit = 1u << (id & 31);
        uint32_t& word = mask.bits[id >> 5];
        word = value ? word | (bit & slice.inside[id >> 5]) : word & ~(bit & slice.inside[id >> 5]);
    };
    for (const auto& [node, then] : whole) {
        if ((then < budget) != begins_empty) continue;
        for (const int32_t id : trie.below(node)) set(id, begins_empty);
    }
    for (const auto& [node, then] : single) {
        for (const int32_t id : trie.at(node)) set(id, then < budget);
        mask.highest = std::max(mask.highest, then);
    }
    if (is_near) price_unfinished(at, budget, slice, mask);
}

// The same of those that end within a character, as far as they are set.
void JsonMachine::price_unfinished(const Position& at, int32_t budget, const StringSlice& slice,
                                   Mask& mask) {
    for (const int32_t id : slice.unfinished) {
        if (!(mask.bits[id >> 5] >> (id & 31) & 1)) continue;
        Position to = at;
        for (const char c : vocabulary_->bytes(id)) step(to, static_cast<uint8_t>(c));
        if (cost(to) >= budget) mask.bits[id >> 5] &= ~(1u << (id & 31));
    }
}

// The costs behind tokens that stay within a string or key, from the border of a character to
// another, are among these. Up to kUnreachable where that takes a longer look.
JsonMachine::Span JsonMachine::costs_inside(const Position& at) {
    if (place_of(at) == kKey) return costs_of_keys_inside(at);
    const Frame& of = known(at.at[kFrame]);
    Span span{kUnreachable, 0};
    int32_t always = kUnreachable;  // by a lane that no text leaves
    for (const auto& [lane, state] : lexer_.lanes(lexer_.base(at.at[kState]))) {
        const int32_t most = add_cost(bytes_at_most(*languages_, state), of.below[lane]);
        span.least = std::min(span.least, add_cost(of.below[lane], 1));
        span.most = std::max(span.most, most);
        if (languages_->reach(state).free == INT32_MAX) always = std::min(always, most);
    }
    return {span.least, add_cost(std::min(span.most, always), 1)};
}

JsonMachine::Span JsonMachine::costs_of_keys_inside(const Position& at) {
    const int32_t object = at.at[kObject], frame = at.at[kFrame];
    const Lexer::Key key = key_of(lexer_.base(at.at[kState]), object);
    if (objects_[object].scarce || key.extra == text::kDeadText) return {0, kUnreachable};
    const KeyCosts& costs = key_costs(object, frame);
    const KeyPlan& plan = lexer_.plan(objects_.with_keys(object).plan);
    const std::vector<int32_t>& below = known(frame).below;
    // Where the nearest keys are used already, each of them takes one more character.
    const auto used = static_cast<int32_t>(plan.names.size());
    Span span{kUnreachable, 0};
    int32_t always = kUnreachable;  // by a kind that no text leaves
    const bool is_listed = key.low < key.high;
    const std::string begun = is_listed       ? plan.names[key.low].substr(0, key.depth)
                              : costs.by_base ? std::string()
                                              : keys_.text(at.at[kText]);
    for (const KeyKind& kind : objects_.kinds_of_keys(object)) {
        const bool is_known = !is_listed && costs.by_base;
        const text::TextState state = is_known ? key.extra : state_behind(kind.keys, begun);
        if (state == text::kDeadText) continue;
        const int32_t behind = add_cost(kind.behind, below[kind.lane]);
        const int32_t most = add_cost(add_cost(behind, bytes_at_most(*languages_, state)), used);
        span.least = std::min(span.least, behind);
        span.most = std::max(span.most, most);
        if (languages_->reach(state).free == INT32_MAX) always = std::min(always, most);
    }
    for (int32_t i = key.low; i < key.high; ++i) {
        const auto& [behind, spelled] = costs.names[i];
        if (behind >= kUnreachable) continue;
        span.least = std::min(span.least, behind);
        span.most = std::max(span.most, add_cost(spelled->front(), behind));
    }
    const int32_t bytes = prices_->end_of_key;
    return {add_cost(span.least, bytes), add_cost(std::min(span.most, always), bytes)};
}

}  // namespace sglite::json
