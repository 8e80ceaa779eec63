// A lazily built automaton over the sets of stacks of one network, with the token mask of each.
//
// A stack is a node and, below it, the nodes to return to. A state is the set of all stacks that
// are possible after some text, kept only where the next step is a byte. Both are interned, so
// equal positions are one number, whatever text led there, and share transitions and masks.
// Not thread-safe: the owner locks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "network.h"
#include "vocabulary.h"

namespace sglite {

using StateId = int32_t;
constexpr StateId kDead = -1;
constexpr StateId kUnresolved = -2;

class States {
  public:
    States(const Network& network, const Vocabulary& vocabulary);

    // The state before any text; with `prefix`, these bytes must come first.
    StateId start(std::string_view prefix);
    StateId next(StateId state, uint8_t byte);
    // The state after a whole token or text, or kDead.
    StateId after(StateId state, std::string_view text);
    // The same position of another States of the same network.
    StateId adopt(const States& other, StateId state);

    bool complete(StateId state) const { return states_[state].complete; }
    bool can_go_on(StateId state) const {
        return !states_[state].stacks.empty() || !states_[state].prefix.empty();
    }
    // Upper bound on the tokens to a complete state; from 1 up, some token lowers it.
    int32_t cost(StateId state) const { return states_[state].cost; }
    // The only byte that can follow, or -1 where there is a choice (ending is one).
    int forced_byte(StateId state) const;
    // Whether some token that starts with `text` and is longer can follow, `state` being the
    // state after `text`.
    bool extends(StateId state, std::string_view text);

    // Writes the text ids that may follow into `mask`; with `budget` >= 0, only those after which
    // the bound is below it. The eos ids are the caller's.
    void fill(StateId state, std::span<uint32_t> mask, int32_t budget);
    int32_t allowed_count(StateId state) { return mask_of(state).count; }

    // Rough size in bytes without the masks, which are bounded on their own.
    size_t memory() const { return memory_; }

  private:
    struct Stack {
        int32_t node, keys, parent, cost;
    };
    struct State {
        std::vector<int32_t> stacks;
        std::string prefix;  // bytes still to come before the grammar; then there are no stacks
        int32_t cost;
        bool complete;
        // A state whose mask is the same for all tokens of up to `like_for` bytes, or itself.
        StateId like = kUnresolved;
        int32_t like_for = 0;
        // Only in open states: some match of the frame on top ends here.
        bool leaves = false;
    };
    struct Mask {
        std::vector<uint32_t> all;
        std::vector<uint32_t> falling;  // those that lower the bound; empty: the same as `all`
        std::vector<std::pair<int32_t, int32_t>> rising;  // (bound, id), highest bound first
        // Only in open states: where the frame on top can end; nothing below is decided.
        std::vector<uint32_t> exits;
        int32_t count = 0;
        uint64_t used = 0;
    };
    struct KeyHash {
        size_t operator()(const std::vector<int32_t>& key) const;
    };

    int32_t stack(int32_t node, int32_t keys, int32_t parent);
    int32_t key_set(std::vector<uint64_t> keys);
    int32_t missing_cost(int32_t object, int32_t keys) const;
    void visit(int32_t stack);
    void visit(int32_t node, int32_t keys, int32_t parent);
    StateId close();
    StateId intern(std::vector<int32_t> stacks, bool complete, bool leaves = false);
    StateId prefix_state(std::string_view rest);
    int32_t adopt_stack(const States& other, int32_t stack);
    int32_t first_copy(int32_t stack, int32_t& like_for);
    StateId step(StateId state, uint8_t byte);
    const Mask& mask_of(StateId state);
    void evict();
    StateId resolve_likeness(StateId state);
    size_t memory_of(const Mask& mask) const;
    StateId open(StateId state);
    Mask find_mask(StateId state);
    void find_from_alike(StateId state, Mask& mask);
    void find_from_open(StateId state, Mask& mask);
    void add_tokens(Mask& mask, int32_t bound, uint32_t node, int32_t then) const;
    template <typename Visit>
    void walk(StateId state, uint32_t root, size_t longer_than, Visit visit,
              std::vector<uint32_t>* exits = nullptr);

    const Network& network_;
    const Vocabulary& vocabulary_;
    uint8_t class_of_[256];  // bytes that no edge tells apart share a class
    int32_t classes_ = 0;

    std::vector<Stack> stacks_;
    std::vector<std::vector<uint64_t>> key_sets_;
    std::map<std::vector<uint64_t>, int32_t> key_set_ids_;
    std::unordered_map<std::vector<int32_t>, int32_t, KeyHash> stack_ids_;

    std::vector<State> states_;
    std::vector<StateId> table_;  // [states, classes]
    std::unordered_map<std::vector<int32_t>, StateId, KeyHash> state_ids_;
    std::map<std::string, StateId, std::less<>> prefix_ids_;

    std::vector<uint32_t> stamps_;  // per stack: the closure that visited it last
    uint32_t stamp_ = 0;
    std::vector<int32_t> todo_;

    std::unordered_map<StateId, std::unique_ptr<Mask>> masks_;
    size_t mask_memory_ = 0;
    uint64_t clock_ = 0;
    size_t memory_ = 0;
};

}  // namespace sglite
