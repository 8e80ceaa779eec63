#include "states.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace sglite {
namespace {

uint64_t hash_of(std::span<const int32_t> numbers, uint64_t hash) {
    for (const int32_t number : numbers) hash = text::mix(hash, static_cast<uint32_t>(number));
    return hash;
}

void make_set(std::vector<int32_t>& numbers) {
    std::ranges::sort(numbers);
    const auto rest = std::ranges::unique(numbers);
    numbers.erase(rest.begin(), rest.end());
}

bool only_exit(const Node& node) {
    return node.is_exit && node.bytes.empty() && node.empty.empty() && node.calls.empty();
}

}  // namespace

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
    const int32_t key[] = {node, position, context};
    const uint64_t hash = hash_of(key, 0);
    const int32_t known = stack_index_.find(hash, [&](int32_t id) {
        const Stack& at = stacks_[id];
        return at.node == node && at.context == context && at.position == position;
    });
    if (known >= 0) return known;
    Stack made{node, position, context, network_.nodes[node].cost};
    if (inside_machine(made)) {
        const Inside& inside = machines_[network_.nodes[node].machine];
        made.cost = inside.machine->cost(inside.positions[position]);
    }
    made.cost = add_cost(made.cost, contexts_[context].cost);
    const auto id = static_cast<int32_t>(stacks_.size());
    stack_index_.add(hash, id);
    stacks_.push_back(made);
    stamps_.push_back(0);
    return id;
}

// The context of these stacks; they may hold kBottom and kOpen in negative: -1 and -2. Leaves
// them empty.
int32_t States::context(std::vector<int32_t>& stacks) {
    make_set(stacks);
    int32_t id = stacks.size() == 1 && stacks[0] < 0 ? -1 - stacks[0] : -1;
    const uint64_t hash = hash_of(stacks, 0);
    if (id < 0) {
        id = context_index_.find(hash, [&](int32_t i) { return contexts_[i].stacks == stacks; });
    }
    if (id < 0) {
        Context made{stacks, kUnreachable};
        for (const int32_t s : stacks) {
            made.cost = std::min(made.cost, s < 0 ? 0 : stacks_[s].cost);
        }
        memory_ += 4 * stacks.size();
        id = static_cast<int32_t>(contexts_.size());
        context_index_.add(hash, id);
        contexts_.push_back(std::move(made));
    }
    stacks.clear();
    return id;
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
// something are left at their end; with `put_off`, their contexts are noted instead.
void States::follow(bool has_read, bool put_off) {
    const auto end = [&](int32_t context) {
        if (!put_off) {
            leave(context);
        } else if (std::ranges::find(ended_, context) == ended_.end()) {
            ended_.push_back(context);
        }
    };
    while (!todo_.empty()) {
        const int32_t id = todo_.back();
        todo_.pop_back();
        const auto [at, position, context, cost] = stacks_[id];
        const Node& node = network_.nodes[at];
        if (node.machine >= 0) {
            const Inside& inside = machines_[node.machine];
            const bool begins = at == network_.machines[node.machine].start;
            if (begins || inside.machine->can_go_on(inside.positions[position]))
                kept_.push_back(id);
            if (!begins && inside.machine->complete(inside.positions[position])) end(context);
            continue;
        }
        if (!node.bytes.empty()) kept_.push_back(id);
        for (const int32_t to : node.empty) visit(to, context);
        for (const Call& call : node.calls) {
            return_from(call.rule, call, context);
            const bool can_be_empty = network_.nodes[network_.rules[call.rule].start].cost == 0;
            if (can_be_empty) visit(call.then, context);
        }
        if (node.is_exit && has_read) end(context);
    }
}

// Follows everything from the stacks in `todo_`. A rule is entered once all its calls are known:
// rules begin with rules of higher ranks only.
void States::follow_all() {
    follow(true, false);
    while (!called_.empty()) {
        std::pop_heap(called_.begin(), called_.end());
        const int32_t rule = called_.back().second;
        called_.pop_back();
        visit(network_.rules[rule].start, context(returns_[rule]));
        follow(false, false);
    }
    std::ranges::sort(kept_);
}

// What follows where one rule is done. Most rules that end, end in many states.
const States::Closure& States::behind(int32_t context) {
    const auto [known, fresh] = behind_.try_emplace(context);
    if (!fresh) return known->second;
    std::vector<int32_t> outer = std::exchange(kept_, {});
    const bool complete = std::exchange(complete_, false), leaves = std::exchange(leaves_, false);
    ++stamp_;
    leave(context);
    follow_all();
    known->second = {std::exchange(kept_, std::move(outer)), std::exchange(complete_, complete),
                     std::exchange(leaves_, leaves)};
    memory_ += 4 * known->second.kept.size() + 96;
    return known->second;
}

// The state of the stacks in `todo_`. Where all that is done leaves one context, what follows there
// is known for many states.
StateId States::close() {
    kept_.clear();
    ended_.clear();
    complete_ = leaves_ = false;
    follow(true, true);
    std::vector<int32_t> all;
    if (!called_.empty() || ended_.size() != 1) {
        for (const int32_t context : ended_) leave(context);
        follow_all();
        return intern(kept_, complete_, leaves_);
    }
    std::ranges::sort(kept_);
    const Closure& rest = behind(ended_[0]);
    std::ranges::set_union(kept_, rest.kept, std::back_inserter(all));
    return intern(all, rest.complete, rest.leaves);
}

StateId States::intern(std::span<const int32_t> stacks, bool complete, bool leaves) {
    if (stacks.empty() && !complete && !leaves) return kDead;
    const uint64_t hash = hash_of(stacks, complete + 2 * leaves);
    const StateId known = state_index_.find(hash, [&](StateId id) {
        const State& at = states_[id];
        return at.complete == complete && at.leaves == leaves &&
               std::ranges::equal(at.stacks, stacks);
    });
    if (known >= 0) return known;
    int32_t cost = complete ? 0 : kUnreachable;
    for (const int32_t stack : stacks) cost = std::min(cost, stacks_[stack].cost);
    const auto id = static_cast<StateId>(states_.size());
    state_index_.add(hash, id);
    states_.push_back({{stacks.begin(), stacks.end()}, complete, leaves});
    costs_.push_back(cost);
    stays_.push_back(0);
    table_.resize(states_.size() * classes_, kUnresolved);
    memory_ += 4 * stacks.size();
    return id;
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
    const StateId to = close();
    table_[slot(state, byte)] = to < 0 ? kDead : 2 * to + states_[to].leaves;
    return to;
}

size_t States::memory() const {
    constexpr size_t kPerStack = sizeof(Stack) + sizeof(uint32_t);
    size_t total = memory_ + base_memory_ + stacks_.capacity() * kPerStack +
                   contexts_.capacity() * sizeof(Context) +
                   states_.capacity() * (sizeof(State) + sizeof(int32_t) + 8) +
                   table_.capacity() * sizeof(StateId) + stack_index_.memory() +
                   context_index_.memory() + state_index_.memory();
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
    make_set(stacks);
    if (stacks == states_[state].stacks) return state;
    return intern(stacks, states_[state].complete, states_[state].leaves);
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
    std::ranges::sort(stacks);
    return intern(stacks, false, false);
}

}  // namespace sglite
