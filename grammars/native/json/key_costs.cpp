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
        costs->names.push_back({kUnreachable, &spelled(name)});
    }
    for (const auto& [name, lane, behind] : objects_.prices_of_names(object)) {
        int32_t& least = costs->names[name].behind;
        least = std::min(least, add_cost(behind, below[lane]));
    }
    // Used keys are among the names, or taken out of the plan's language, not out of the kinds'.
    const std::vector<KeyKind>& kinds = objects_.kinds_of_keys(object);
    const text::TextState start = languages_->start(plan.extra);
    costs->by_base = !state.scarce && start != text::kDeadText &&
                     (state.extras.empty() || languages_->reach(start).free == INT32_MAX);
    for (const KeyKind& kind : kinds) {
        const int32_t behind = add_cost(kind.behind, below[kind.lane]);
        costs->by_base =
            costs->by_base && (costs->extra == kUnreachable || costs->extra == behind);
        costs->extra = behind;
    }
    memory_ += sizeof(KeyCosts) + 16 * plan.names.size() + 120;
    return *costs;
}

// From within a key, `text` so far if that is none of the plan's names, to the end of everything.
int32_t JsonMachine::cost_of_key(LexId lex, int32_t object, int32_t text, int32_t frame) {
    if (lexer_.in_escape(lex)) {
        return cost_of_key_behind(lex, object, keys_.text(text), frame);
    }
    const BaseId base = lexer_.base(lex);
    const KeyCosts& costs = key_costs(object, frame);
    if (const auto known = costs.known.find(base); known != costs.known.end()) return known->second;
    const bool told = costs.by_base || lexer_.key(base).low < lexer_.key(base).high;
    return cost_of_key_behind(lex, object, told ? "" : keys_.text(text), frame);
}

int32_t JsonMachine::cost_of_key_behind(LexId lex, int32_t object, const std::string& text,
                                        int32_t frame) {
    const BaseId base = lexer_.base(lex);
    const Lexer::Key key = lexer_.key(base);
    const KeyPlan& plan = lexer_.plan(objects_.with_keys(object).plan);
    const bool is_listed = key.low < key.high;
    const std::string begun = is_listed ? plan.names[key.low].substr(0, key.depth) : text;
    int32_t best = kUnreachable;
    if (lexer_.in_escape(lex)) {
        for (const auto& [then, taken, content] : lexer_.endings(lex)) {
            const int32_t rest = cost_of_key_behind(then, object, begun + content, frame);
            best = std::min(best, add_cost(rest, taken));
        }
        return best;
    }
    KeyCosts& costs = key_costs(object, frame);
    const bool told = is_listed || costs.by_base;
    if (told) {
        const auto known = costs.known.find(base);
        if (known != costs.known.end()) return known->second;
    }
    for (int32_t i = key.low; i < key.high; ++i) {
        const auto& [behind, spelled] = costs.names[i];
        best = std::min(best, add_cost((*spelled)[key.depth], behind));
    }
    if (key.extra != text::kDeadText) {
        best = std::min(best, told && !is_listed
                                  ? add_cost(languages_->distance(key.extra), costs.extra)
                                  : cost_of_extra_key(begun, plan, object, frame));
    }
    // A quote and a colon, with its space.
    best = add_cost(best, style_.whitespace == Style::Whitespace::kSingle ? 3 : 2);
    if (told) {
        costs.known.emplace(base, best);
        memory_ += 48;
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
