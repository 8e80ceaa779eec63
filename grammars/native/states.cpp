#include "states.h"

#include <algorithm>
#include <utility>

namespace sglite {
namespace {

constexpr StateId kUnknown = -2;  // of a transition

bool only_exit(const Node& node) {
    return node.is_exit && node.bytes.empty() && node.empty.empty() && node.calls.empty();
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
    contexts_.resize(2, {{}, 0});  // kBottom, kOpen
    returns_.resize(network.rules.size());
}

bool States::inside_machine(const Stack& stack) const {
    const int32_t k = network_.nodes[stack.node].machine;
    return k >= 0 && stack.node == network_.machines[k].inside;
}

// `position`: in the machine that `node` is inside of, else 0.
int32_t States::stack(int32_t node, int32_t position, int32_t context) {
    const auto [it, fresh] = stack_ids_.try_emplace({node, position, context}, stacks_.size());
    if (fresh) {
        Stack made{node, position, context, network_.nodes[node].cost};
        if (inside_machine(made)) {
            const Inside& inside = machines_[network_.nodes[node].machine];
            made.cost = inside.machine->cost(inside.positions[position]);
        }
        made.cost = add_cost(made.cost, contexts_[context].cost);
        stacks_.push_back(made);
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
    if (!fresh) return it->second;
    Context made{std::move(stacks), kUnreachable};
    for (const int32_t s : made.stacks) {
        made.cost = std::min(made.cost, s < 0 ? 0 : stacks_[s].cost);
    }
    memory_ += 8 * made.stacks.size() + 128;
    contexts_.push_back(std::move(made));
    return it->second;
}

void States::visit(int32_t stack) {
    if (stacks_[stack].cost >= kUnreachable || stamps_[stack] == stamp_) return;
    stamps_[stack] = stamp_;
    todo_.push_back(stack);
}

void States::visit(int32_t node, int32_t context) { visit(stack(node, 0, context)); }

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
void States::return_from(int32_t rule, const Call& call, int32_t context) {
    std::vector<int32_t>& returns = returns_[rule];
    if (returns.empty()) {
        called_.emplace_back(-network_.rules[rule].rank, rule);
        std::push_heap(called_.begin(), called_.end());
    }
    if (!only_exit(network_.nodes[call.then])) {
        returns.push_back(stack(call.then, 0, context));
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
        const auto [at, position, context, cost] = stacks_[id];
        const Node& node = network_.nodes[at];
        if (node.machine >= 0) {
            const Inside& inside = machines_[node.machine];
            const bool begins = at == network_.machines[node.machine].start;
            if (begins || inside.machine->can_go_on(inside.positions[position])) kept.push_back(id);
            if (!begins && inside.machine->complete(inside.positions[position])) leave(context);
            continue;
        }
        if (!node.bytes.empty()) kept.push_back(id);
        for (const int32_t to : node.empty) visit(to, context);
        for (const Call& call : node.calls) {
            return_from(call.rule, call, context);
            const bool can_be_empty = network_.nodes[network_.rules[call.rule].start].cost == 0;
            if (can_be_empty) visit(call.then, context);
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
        visit(network_.rules[rule].start, behind);
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
    visit(network_.rules[network_.root].start, kBottom);
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
                at.node == embedded.start ? machine.start() : machines_[k].positions[at.position];
            if (machine.step(to, byte)) visit(stack(embedded.inside, position(k, to), at.context));
        }
        for (const ByteEdge& edge : network_.nodes[at.node].bytes) {
            if (edge.bytes.low <= byte && byte <= edge.bytes.high) visit(edge.to, at.context);
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
    at = begins ? machine.start() : machines_[k].positions[stack.position];
    return &machine;
}

// The state with every machine of bounded costs put to a position from which texts of up to a
// token's length go on in the same way.
StateId States::near(StateId state) {
    if (machines_.empty()) return state;
    std::vector<int32_t> stacks = states_[state].stacks;
    for (int32_t& id : stacks) {
        const Stack at = stacks_[id];
        if (!inside_machine(at)) continue;
        const int32_t k = network_.nodes[at.node].machine;
        if (machines_[k].machine->farthest() >= kUnreachable) continue;
        const Position near = machines_[k].machine->near(machines_[k].positions[at.position]);
        id = stack(at.node, position(k, near), at.context);
    }
    std::sort(stacks.begin(), stacks.end());
    stacks.erase(std::unique(stacks.begin(), stacks.end()), stacks.end());
    if (stacks == states_[state].stacks) return state;
    return intern(std::move(stacks), states_[state].complete, states_[state].leaves);
}

// The state of the rule on top alone, if all stacks share what is below it; else kDead.
StateId States::open(StateId state) {
    const State& at = states_[state];
    if (at.complete || at.leaves || at.stacks.empty()) return kDead;
    const int32_t below = stacks_[at.stacks[0]].context;
    if (below == kBottom || below == kOpen) return kDead;
    std::vector<int32_t> stacks;
    for (const int32_t id : at.stacks) {
        const auto [node, position, context, cost] = stacks_[id];
        if (context != below) return kDead;
        stacks.push_back(stack(node, position, kOpen));
    }
    std::sort(stacks.begin(), stacks.end());
    return intern(std::move(stacks), false);
}

}  // namespace sglite
