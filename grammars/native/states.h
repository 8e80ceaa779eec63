// A lazily built automaton over the sets of stacks of one network, and the token masks in it.
//
// A stack is a node and a context: the set of all stacks to go on with behind its rule. All calls
// of a rule at one place of the text share one context, so ambiguity does not multiply stacks. A
// state is the set of all stacks that are possible after some text, kept only where the next step
// is a byte. All are interned, so equal positions are one number, whatever text led there, and
// share transitions and masks.
// A stack inside of an embedded machine has the number of its position there.
// Not thread-safe: the owner locks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "machine.h"
#include "network.h"
#include "text/index.h"
#include "vocabulary.h"

namespace sglite {

using StateId = int32_t;
constexpr StateId kDead = -1;

// Contexts: below the root rule, and one left open, so that a rule is looked at by itself.
constexpr int32_t kBottom = 0;
constexpr int32_t kOpen = 1;

class States {
  public:
    States(const Network& network, const Vocabulary& vocabulary);

    StateId start();
    StateId next(StateId state, uint8_t byte) {
        const int32_t known = table_[slot(state, byte)];
        return known == kUnresolved ? step(state, byte) : known >> 1;
    }

    bool complete(StateId state) const { return states_[state].complete; }
    bool can_go_on(StateId state) const { return !states_[state].stacks.empty(); }
    // Upper bound on the tokens to a complete state; from 1 up, some token lowers it.
    int32_t cost(StateId state) const { return costs_[state]; }
    // A state with the same mask.
    StateId alike(StateId state);
    void find_mask(StateId state, Mask& mask);
    // Rough size in bytes.
    size_t memory() const;

  private:
    struct Stack {
        int32_t node, position, context, cost;
    };
    // A transition that was not asked for yet. Others are kDead, or twice the state and whether it
    // leaves its frame.
    static constexpr int32_t kUnresolved = -2;
    struct Closure {
        std::vector<int32_t> kept;
        bool complete, leaves;
    };
    struct Context {
        std::vector<int32_t> stacks;
        int32_t cost;
    };
    struct State {
        std::vector<int32_t> stacks;
        bool complete;
        bool leaves;  // only in open states: some match of the rule on top ends here
    };
    // What other states take over.
    struct Base {
        Mask mask;
        // Only in open states: where the rule on top can end; nothing below is decided.
        std::vector<uint32_t> exits;
    };

    size_t slot(StateId state, uint8_t byte) const {
        return static_cast<size_t>(state) * classes_ + class_of_[byte];
    }
    int32_t stack(int32_t node, int32_t position, int32_t context);
    int32_t context(std::vector<int32_t>& stacks);
    // The number of a position inside of an embedded machine.
    int32_t position(int32_t machine, const Position& at);
    void leave(int32_t context);
    void return_from(int32_t rule, const Call& call, int32_t context);
    void follow(bool has_read, bool put_off);
    // The machine that alone decides the mask of a state, or null.
    Machine* sole_machine(StateId state, Position& at);
    void visit(int32_t stack);
    void visit(int32_t node, int32_t context);
    void follow_all();
    const Closure& behind(int32_t context);
    StateId close();
    StateId intern(std::span<const int32_t> stacks, bool complete, bool leaves);
    StateId step(StateId state, uint8_t byte);
    bool inside_machine(const Stack& stack) const;
    StateId near(StateId state);
    StateId open(StateId state);
    const Base& base(StateId state);
    void find(StateId state, Base& found);
    std::pair<int32_t, int32_t> near_costs(StateId state) const;
    void find_from_open(StateId state, StateId top, Base& found);
    void add_tokens(Mask& mask, uint32_t node, StateId then) const;
    void walk(StateId state, uint32_t root, Base& found);

    struct Inside {
        std::unique_ptr<Machine> machine;
        std::vector<Position> positions;
        std::unordered_map<Position, int32_t, PositionHash> ids;
    };

    const Network& network_;
    const Vocabulary& vocabulary_;
    uint8_t class_of_[256];  // bytes that no edge tells apart share a class
    int32_t classes_ = 0;

    std::vector<Inside> machines_;  // per embedded machine of the network
    std::vector<Stack> stacks_;
    std::vector<Context> contexts_;
    text::Index stack_index_, context_index_, state_index_;

    std::vector<State> states_;
    std::vector<int32_t> costs_;   // per state
    std::vector<uint64_t> stays_;  // per state: letters that are known to lead back to it
    std::vector<int32_t> table_;   // [states, classes]

    std::unordered_map<int32_t, Closure> behind_;  // per context

    std::vector<uint32_t> stamps_;  // per stack: the closure that visited it last
    uint32_t stamp_ = 0;
    std::vector<int32_t> todo_, kept_, ended_;
    bool complete_ = false, leaves_ = false;  // of the closure
    // Of the closure: where to go on behind each rule that is called, and the rules, by rank.
    std::vector<std::vector<int32_t>> returns_;
    std::vector<std::pair<int32_t, int32_t>> called_;  // a heap of (-rank, rule)

    std::unordered_map<StateId, Base> bases_;
    size_t base_memory_ = 0;
    size_t memory_ = 0;  // of what the vectors hold
};

}  // namespace sglite
