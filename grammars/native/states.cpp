#include "states.h"

#include <algorithm>
#include <climits>
#include <utility>

namespace sglite {
namespace {

constexpr StateId kUnknown = -2;  // of a transition

bool only_exit(const Node& node) {
    return node.is_exit && node.bytes.empty() && node.empty.empty() && node.calls.empty() &&
           node.takes.empty() && node.all_taken < 0;
}

}  // namespace

size_t States::KeyHash::operator()(const std::vector<int32_t>& key) const {
    uint64_t hash = 0x9E3779B97F4A7C15u;
    for (const int32_t part : key) {
        hash = (hash ^ static_cast<uint32_t>(part)) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
    }
    return hash;
}

States::States(const Network& network, const Vocabulary& vocabulary)
    : network_(network), vocabulary_(vocabulary) {
    for (const Embedded& embedded : network.machines) {
        machines_.push_back({embedded.make(), {}, {}});
    }
    bool begins[257] = {true};
    if (!machines_.empty()) std::fill(begins, begins + 257, true);
    for (const Node& node : network.nodes) {
        for (const ByteEdge& edge : node.bytes) {
            begins[edge.bytes.low] = begins[edge.bytes.high + 1] = true;
        }
    }
    for (int value = 0; value < 256; ++value) {
        classes_ += begins[value];
        class_of_[value] = static_cast<uint8_t>(classes_ - 1);
    }
    key_set({});
    contexts_.push_back({{}, 0, kBottom});
    contexts_.push_back({{}, 0, kOpen});
    returns_.resize(network.rules.size());
}

int32_t States::key_set(std::vector<uint64_t> keys) {
    const auto [it, fresh] = key_set_ids_.try_emplace(keys, key_sets_.size());
    if (fresh) {
        memory_ += 2 * keys.size() * sizeof(uint64_t) + 128;
        key_sets_.push_back(std::move(keys));
    }
    return it->second;
}

int32_t States::missing_cost(int32_t object, int32_t keys) const {
    const FreeObject& shape = network_.objects[object];
    const std::vector<uint64_t>& taken = key_sets_[keys];
    int32_t total = 0;
    for (size_t key = 0; key < shape.required.size(); ++key) {
        const bool used = key / 64 < taken.size() && taken[key / 64] >> (key % 64) & 1;
        if (shape.required[key] && !used) total = add_cost(total, network_.key_cost(shape, key));
    }
    return total;
}

int32_t States::stack(int32_t node, int32_t keys, int32_t context) {
    const auto [it, fresh] = stack_ids_.try_emplace({node, keys, context}, stacks_.size());
    if (fresh) {
        const Node& at = network_.nodes[node];
        int32_t cost = at.cost;
        if (at.machine >= 0 && node == network_.machines[at.machine].inside) {
            const Inside& inside = machines_[at.machine];
            cost = inside.machine->cost(inside.positions[keys]);
        }
        cost = add_cost(cost, contexts_[context].cost);
        if (at.object >= 0 && network_.objects[at.object].first != node) {
            cost = add_cost(cost, missing_cost(at.object, keys));
        }
        stacks_.push_back({node, keys, context, cost});
        stamps_.push_back(0);
        memory_ += 128;
    }
    return it->second;
}

// The context of these stacks; they may hold kBottom and kOpen in negative: -1 and -2.
int32_t States::context(std::vector<int32_t> stacks) {
    std::sort(stacks.begin(), stacks.end());
    stacks.erase(std::unique(stacks.begin(), stacks.end()), stacks.end());
    if (stacks.size() == 1 && stacks[0] < 0) return -1 - stacks[0];
    const auto [it, fresh] = context_ids_.try_emplace(stacks, contexts_.size());
    const int32_t id = it->second;
    if (!fresh) return id;
    Context made{stacks, kUnreachable, id};
    for (const int32_t s : stacks) made.cost = std::min(made.cost, s < 0 ? 0 : stacks_[s].cost);
    memory_ += 8 * stacks.size() + 128;
    contexts_.push_back(std::move(made));
    int32_t like_for = INT32_MAX;
    std::vector<int32_t> like;
    for (const int32_t s : stacks) like.push_back(s < 0 ? s : first_copy(s, like_for));
    const int32_t like_id = like == stacks ? id : context(std::move(like));
    contexts_[id].like = like_id;
    contexts_[id].like_for = like_for;
    return id;
}

// The same stack with every repetition put back to its first copy; lowers `like_for` to the bytes
// for which the two agree.
int32_t States::first_copy(int32_t id, int32_t& like_for) {
    const Stack from = stacks_[id];
    const Node& node = network_.nodes[from.node];
    const Context& below = contexts_[from.context];
    like_for = std::min(like_for, below.like_for);
    if (node.like >= 0) like_for = std::min(like_for, node.like_for);
    return stack(node.like >= 0 ? node.like : from.node, from.keys, below.like);
}

void States::visit(int32_t stack) {
    if (stacks_[stack].cost >= kUnreachable || stamps_[stack] == stamp_) return;
    stamps_[stack] = stamp_;
    todo_.push_back(stack);
}

void States::visit(int32_t node, int32_t keys, int32_t context) {
    visit(stack(node, keys, context));
}

int32_t States::position(int32_t machine, const Position& at) {
    Inside& inside = machines_[machine];
    const auto [it, fresh] = inside.ids.try_emplace(at, inside.positions.size());
    if (fresh) {
        inside.positions.push_back(at);
        memory_ += 128;
    }
    return it->second;
}

// Goes on behind a rule that is done.
void States::leave(int32_t context) {
    if (context == kBottom) complete_ = true;
    if (context == kOpen) leaves_ = true;
    for (const int32_t stack : contexts_[context].stacks) {
        if (stack == -1 - kBottom) {
            complete_ = true;
        } else if (stack == -1 - kOpen) {
            leaves_ = true;
        } else {
            visit(stack);
        }
    }
}

// Notes where to go on behind a call. What comes last in its rule goes on behind that rule, so
// right recursion stays flat.
void States::return_from(int32_t rule, const Call& call, int32_t keys, int32_t context) {
    std::vector<int32_t>& returns = returns_[rule];
    if (returns.empty()) {
        called_.emplace_back(-network_.rules[rule].rank, rule);
        std::push_heap(called_.begin(), called_.end());
    }
    if (!only_exit(network_.nodes[call.then])) {
        returns.push_back(stack(call.then, keys, context));
    } else if (context == kBottom || context == kOpen) {
        returns.push_back(-1 - context);
    } else {
        const std::vector<int32_t>& below = contexts_[context].stacks;
        returns.insert(returns.end(), below.begin(), below.end());
    }
}

// Follows everything that reads no byte from the stacks in `todo_`, and notes calls. Rules that
// match the empty text are passed over where they are called, so only rules that have read
// something are left at their end.
void States::follow(std::vector<int32_t>& kept, bool has_read) {
    while (!todo_.empty()) {
        const int32_t id = todo_.back();
        todo_.pop_back();
        const auto [at, keys, context, cost] = stacks_[id];
        const Node& node = network_.nodes[at];
        if (node.machine >= 0) {
            const Inside& inside = machines_[node.machine];
            const bool begins = at == network_.machines[node.machine].start;
            if (begins || inside.machine->can_go_on(inside.positions[keys])) kept.push_back(id);
            if (!begins && inside.machine->complete(inside.positions[keys])) leave(context);
            continue;
        }
        if (!node.bytes.empty()) kept.push_back(id);
        for (const int32_t to : node.empty) visit(to, keys, context);
        for (const TakeKey& take : node.takes) {
            std::vector<uint64_t> taken = key_sets_[keys];
            const auto word = static_cast<size_t>(take.key) / 64;
            if (taken.size() <= word) taken.resize(word + 1, 0);
            if (taken[word] >> (take.key % 64) & 1) continue;
            taken[word] |= uint64_t{1} << (take.key % 64);
            visit(take.to, key_set(std::move(taken)), context);
        }
        if (node.all_taken >= 0 && missing_cost(node.object, keys) == 0) {
            visit(node.all_taken, keys, context);
        }
        for (const Call& call : node.calls) {
            return_from(call.rule, call, keys, context);
            const bool can_be_empty = network_.nodes[network_.rules[call.rule].start].cost == 0;
            if (can_be_empty) visit(call.then, keys, context);
        }
        if (node.is_exit && has_read) leave(context);
    }
}

// The state of the stacks in `todo_`. A rule is entered once all its calls are known: rules begin
// with rules of higher ranks only.
StateId States::close() {
    std::vector<int32_t> kept;
    complete_ = leaves_ = false;
    follow(kept, true);
    while (!called_.empty()) {
        std::pop_heap(called_.begin(), called_.end());
        const int32_t rule = called_.back().second;
        called_.pop_back();
        const int32_t behind = context(std::exchange(returns_[rule], {}));
        visit(network_.rules[rule].start, 0, behind);
        follow(kept, false);
    }
    std::sort(kept.begin(), kept.end());
    return intern(std::move(kept), complete_, leaves_);
}

StateId States::intern(std::vector<int32_t> stacks, bool complete, bool leaves) {
    if (stacks.empty() && !complete && !leaves) return kDead;
    std::vector<int32_t> key = stacks;
    key.push_back(complete + 2 * leaves);
    const auto [it, fresh] = state_ids_.try_emplace(std::move(key), states_.size());
    if (fresh) {
        int32_t cost = complete ? 0 : kUnreachable;
        for (const int32_t stack : stacks) cost = std::min(cost, stacks_[stack].cost);
        memory_ += classes_ * sizeof(StateId) + 8 * stacks.size() + 160;
        states_.push_back({std::move(stacks), cost, complete});
        states_.back().leaves = leaves;
        table_.resize(states_.size() * classes_, kUnknown);
    }
    return it->second;
}

StateId States::start() {
    ++stamp_;
    visit(network_.rules[network_.root].start, 0, kBottom);
    return close();
}

StateId States::step(StateId state, uint8_t byte) {
    ++stamp_;
    for (const int32_t id : states_[state].stacks) {
        const Stack at = stacks_[id];
        if (const int32_t k = network_.nodes[at.node].machine; k >= 0) {
            const Embedded& embedded = network_.machines[k];
            Machine& machine = *machines_[k].machine;
            Position to =
                at.node == embedded.start ? machine.start() : machines_[k].positions[at.keys];
            if (machine.step(to, byte)) visit(embedded.inside, position(k, to), at.context);
        }
        for (const ByteEdge& edge : network_.nodes[at.node].bytes) {
            if (edge.bytes.low <= byte && byte <= edge.bytes.high) {
                visit(edge.to, at.keys, at.context);
            }
        }
    }
    return close();
}

StateId States::next(StateId state, uint8_t byte) {
    const size_t slot = static_cast<size_t>(state) * classes_ + class_of_[byte];
    if (table_[slot] != kUnknown) return table_[slot];
    const StateId to = step(state, byte);
    table_[slot] = to;
    return to;
}

size_t States::memory() const {
    size_t total = memory_ + base_memory_;
    for (const Inside& inside : machines_) total += inside.machine->memory();
    return total;
}

Machine* States::sole_machine(StateId state, Position& at) {
    const State& from = states_[state];
    if (from.stacks.size() != 1) return nullptr;
    const Stack& stack = stacks_[from.stacks[0]];
    const int32_t k = network_.nodes[stack.node].machine;
    if (k < 0 || stack.context != kBottom) return nullptr;
    Machine& machine = *machines_[k].machine;
    const bool begins = stack.node == network_.machines[k].start;
    at = begins ? machine.start() : machines_[k].positions[stack.keys];
    return &machine;
}

StateId States::resolve_likeness(StateId state) {
    if (states_[state].like != kUnresolved) return states_[state].like;
    int32_t like_for = INT32_MAX;
    std::vector<int32_t> stacks;
    for (const int32_t s : states_[state].stacks) stacks.push_back(first_copy(s, like_for));
    std::sort(stacks.begin(), stacks.end());
    stacks.erase(std::unique(stacks.begin(), stacks.end()), stacks.end());
    StateId like = state;
    if (like_for > 0 && stacks != states_[state].stacks) {
        like = intern(std::move(stacks), states_[state].complete, states_[state].leaves);
    }
    states_[state].like = like;
    states_[state].like_for = like_for;
    return like;
}

// The state of the rule on top alone, if all stacks share what is below it; else kDead.
StateId States::open(StateId state) {
    const State& at = states_[state];
    if (at.complete || at.leaves || at.stacks.empty()) return kDead;
    const int32_t below = stacks_[at.stacks[0]].context;
    if (below == kBottom || below == kOpen) return kDead;
    std::vector<int32_t> stacks;
    for (const int32_t id : at.stacks) {
        const auto [node, keys, context, cost] = stacks_[id];
        if (context != below) return kDead;
        stacks.push_back(stack(node, keys, kOpen));
    }
    std::sort(stacks.begin(), stacks.end());
    return intern(std::move(stacks), false);
}

}  // namespace sglite
