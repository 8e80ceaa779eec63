// Bounds on the tokens to the end, from within the keys of objects.
#include "key_costs.h"

#include <algorithm>

namespace sglite::json {
namespace {

constexpr int kMostTried = 10'000;  // beginnings of a key that is made up to price it

}  // namespace

JsonMachine::KeyCosts& JsonMachine::key_costs(int32_t object, int32_t frame) {
    const uint64_t key = static_cast<uint64_t>(object) << 32 | static_cast<uint32_t>(frame);
    std::unique_ptr<KeyCosts>& costs = key_costs_[key];
    if (costs) return *costs;
    costs = std::make_unique<KeyCosts>();
    const ObjectState& state = objects_.with_keys(object);
    const KeyPlan& plan = lexer_.plan(state.plan);
    const std::vector<int32_t>& below = known(frame).below;
    for (const std::string& name : plan.names) {
        costs->names.push_back({kUnreachable, &spelling_.rests(name)});
    }
    for (const auto& [name, lane, behind] : objects_.prices_of_names(object)) {
        int32_t& least = costs->names[name].behind;
        least = std::min(least, add_cost(behind, below[lane]));
    }
    // Extra keys of rivals are among the names too.
    for (size_t i = 0; state.watched && i < plan.names.size(); ++i) {
        const std::string& name = plan.names[i];
        if (!plan.is_allowed(i) || !std::ranges::binary_search(state.extras, name)) continue;
        int32_t& least = costs->names[i].behind;
        least = std::min(least, cost_of_value(member_frame(object, keys_.add(0, name), frame)));
    }
    // Used keys are among the names, or taken out of the plan's language, not out of the kinds'.
    const text::TextState start = languages_->start(plan.extra);
    costs->is_told = !state.scarce && start != text::kDeadText &&
                     (state.extras.empty() || languages_->reach(start).free == INT32_MAX);
    std::vector<text::LangId> kinds;
    for (const KeyKind& kind : objects_.kinds_of_keys(object)) {
        kinds.push_back(kind.keys);
        costs->behind.push_back(add_cost(kind.behind, below[kind.lane]));
    }
    if (const LexId lex = lexer_.begin_string(kinds); lex != kDeadLex) {
        costs->kinds = lexer_.base(lex);
    }
    costs->by_base =
        costs->is_told && std::ranges::adjacent_find(costs->behind, std::ranges::not_equal_to()) ==
                              costs->behind.end();
    memory_ += sizeof(KeyCosts) + 16 * plan.names.size() + 8 * kinds.size() + 120;
    return *costs;
}

// With the places of its names in the plan of the object, which stand there in a row.
Lexer::Key JsonMachine::key_of(BaseId base, int32_t object) {
    Lexer::Key key = lexer_.key(base);
    const KeyPlan& plan = lexer_.plan(objects_.with_keys(object).plan);
    const KeyPlan& part = lexer_.plan_of(base);
    if (key.low == key.high || &part == &plan) return key;
    const auto first = std::ranges::lower_bound(plan.names, part.names[key.low]);
    const auto low = static_cast<int32_t>(first - plan.names.begin());
    return {low, low + key.high - key.low, key.depth, key.extra};
}

// From within a key, `text` so far if that is none of the plan's names, to the end of everything.
int32_t JsonMachine::cost_of_key(LexId lex, int32_t object, const std::string& text,
                                 int32_t frame) {
    const KeyCosts& costs = key_costs(object, frame);
    const Lexer::Key key = key_of(lexer_.base(lex), object);
    const KeyPlan& plan = lexer_.plan(objects_.with_keys(object).plan);
    const std::string begun = key.low == key.high ? text : plan.names[key.low].substr(0, key.depth);
    if (costs.is_told) return cost_of_told_key(lex, kinds_behind(costs, begun), object, frame);
    int32_t best = kUnreachable;
    if (lexer_.in_escape(lex)) {
        for (const auto& [then, taken, content] : lexer_.endings(lex)) {
            const int32_t rest = cost_of_key(then, object, begun + content, frame);
            best = std::min(best, add_cost(rest, taken));
        }
        return best;
    }
    best = cost_of_names(key, costs);
    if (key.extra != text::kDeadText) {
        best = std::min(best, cost_of_extra_key(begun, plan, object, frame));
    }
    return add_cost(best, prices_->end_of_key);
}

// Where the kinds of extra keys stand behind a text.
BaseId JsonMachine::kinds_behind(const KeyCosts& costs, std::string_view text) {
    return costs.by_base ? kDeadLex : kinds_behind(costs.kinds, text);
}

BaseId JsonMachine::kinds_behind(BaseId kinds, std::string_view text) {
    for (const char c : text) {
        if (kinds == kDeadLex) break;
        kinds = lexer_.next_content(kinds, static_cast<uint8_t>(c));
    }
    return kinds;
}

int32_t JsonMachine::cost_of_told_key(LexId lex, BaseId kinds, int32_t object, int32_t frame) {
    int32_t best = kUnreachable;
    if (lexer_.in_escape(lex)) {
        for (const auto& [then, taken, content] : lexer_.endings(lex)) {
            const BaseId after = kinds_behind(kinds, content);
            best = std::min(best, add_cost(cost_of_told_key(then, after, object, frame), taken));
        }
        return best;
    }
    const BaseId base = lexer_.base(lex);
    KeyCosts& costs = key_costs(object, frame);
    const uint64_t place = static_cast<uint64_t>(base) << 32 | static_cast<uint32_t>(kinds);
    if (const auto known = costs.known.find(place); known != costs.known.end()) {
        return known->second;
    }
    const Lexer::Key key = key_of(base, object);
    best = cost_of_names(key, costs);
    if (key.low < key.high && key.extra != text::kDeadText) {
        const KeyPlan& plan = lexer_.plan(objects_.with_keys(object).plan);
        const std::string begun = plan.names[key.low].substr(0, key.depth);
        best = std::min(best, cost_of_extra_key(begun, plan, object, frame));
    } else if (key.extra != text::kDeadText && costs.by_base && !costs.behind.empty()) {
        best = add_cost(languages_->distance(key.extra), costs.behind[0]);
    } else if (key.extra != text::kDeadText && kinds != kDeadLex) {
        for (const auto& [kind, state] : lexer_.lanes(kinds)) {
            best = std::min(best, add_cost(languages_->distance(state), costs.behind[kind]));
        }
    }
    best = add_cost(best, prices_->end_of_key);
    costs.known.emplace(place, best);
    memory_ += 48;
    return best;
}

int32_t JsonMachine::cost_of_names(const Lexer::Key& key, const KeyCosts& costs) const {
    int32_t best = kUnreachable;
    for (int32_t i = key.low; i < key.high; ++i) {
        const auto& [behind, spelled] = costs.names[i];
        best = std::min(best, add_cost((*spelled)[key.depth], behind));
    }
    return best;
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

}  // namespace sglite::json
