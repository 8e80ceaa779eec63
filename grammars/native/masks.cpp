// The token masks of States: walks of the token trie, shared between states as far as they agree.
#include <algorithm>

#include "states.h"
#include "walk.h"

namespace sglite {
namespace {

constexpr size_t kBaseMemory = 32 << 20;

}  // namespace

// Adds all descendants of `root` in the trie that the grammar can spell from `state` on. Where an
// open state leaves its frame, the node goes into `exits` and nothing below is added.
void States::walk(StateId state, uint32_t root, Base& found) {
    const Trie& trie = vocabulary_.trie();
    const std::span<const TrieNode> nodes = trie.nodes();
    const uint32_t base = nodes[root].depth;
    uint32_t* const bits = found.mask.bits.data();
    std::vector<StateId> path(trie.deepest(root) - base + 1);
    path[0] = state;
    for (uint32_t node = root + 1, end = nodes[root].skip; node < end;) {
        const TrieNode& n = nodes[node];
        const StateId from = path[n.depth - base - 1];
        if ((trie.letters(node) & ~stays_[from]) == 0) {
            for (const int32_t id : trie.below(node)) bits[id >> 5] |= 1u << (id & 31);
            found.mask.highest = std::max(found.mask.highest, cost(from));
            node = n.skip;
            continue;
        }
        const StateId to = next(from, n.byte);
        if (to == kDead) {
            node = n.skip;
            continue;
        }
        if (table_[slot(from, n.byte)] & 1) {
            found.exits.push_back(node);
            node = n.skip;
            continue;
        }
        if (to == from) stays_[from] |= letter_bit(n.byte) & ~kNoLetter;
        path[n.depth - base] = to;
        if (n.strings != 0) add_tokens(found.mask, node, to);
        ++node;
    }
}

void States::add_tokens(Mask& mask, uint32_t node, StateId then) const {
    set_bits(vocabulary_.trie(), node, mask.bits.data());
    mask.highest = std::max(mask.highest, cost(then));
}

// What the frame on top says by itself is shared by all states that have it on top; what reaches
// below is found for this state.
void States::find_from_open(StateId state, StateId top, Base& found) {
    const Base& shared = base(top);
    found.mask.bits = shared.mask.bits;
    found.mask.highest = add_cost(shared.mask.highest, cost(state) - cost(top));
    const Trie& trie = vocabulary_.trie();
    for (const uint32_t node : shared.exits) {
        const std::string& token = vocabulary_.bytes(trie.below(node)[0]);
        StateId at = state;
        for (size_t i = 0; i < trie.nodes()[node].depth && at != kDead; ++i) {
            at = next(at, static_cast<uint8_t>(token[i]));
        }
        if (at == kDead) continue;
        if (trie.nodes()[node].strings != 0) add_tokens(found.mask, node, at);
        walk(at, node, found);
    }
}

// The costs that tokens can lead to inside of machines: at most the first, beside a state of at
// least the second, for all states that are near; the first is 0 where no costs differ.
std::pair<int32_t, int32_t> States::near_costs(StateId state) const {
    int32_t most = 0, least = kUnreachable;
    for (const int32_t id : states_[state].stacks) {
        const Stack& at = stacks_[id];
        const int32_t below = contexts_[at.context].cost;
        const int32_t k = inside_machine(at) ? network_.nodes[at.node].machine : -1;
        const int32_t far = k < 0 ? kUnreachable : machines_[k].machine->farthest();
        const bool bounded = far < kUnreachable;
        if (bounded) most = std::max(most, add_cost(far, below));
        least = std::min(least, bounded ? below : at.cost);
    }
    return {most, least};
}

void States::find(StateId state, Base& found) {
    if (const StateId other = near(state); other != state) {
        found = base(other);
        found.mask.highest = std::max(found.mask.highest, near_costs(state).first);
    } else if (const StateId top = open(state); top != kDead) {
        find_from_open(state, top, found);
    } else {
        walk(state, 0, found);
    }
}

const States::Base& States::base(StateId state) {
    if (const auto known = bases_.find(state); known != bases_.end()) return known->second;
    Base found;
    found.mask.bits.resize(vocabulary_.mask_words(), 0);
    find(state, found);
    if (base_memory_ > kBaseMemory) {
        bases_.clear();
        base_memory_ = 0;
    }
    base_memory_ += 4 * (found.mask.bits.size() + found.exits.size()) + 160;
    return bases_.emplace(state, std::move(found)).first->second;
}

StateId States::alike(StateId state) {
    Position at;
    if (Machine* machine = sole_machine(state, at)) {
        const Stack stack = stacks_[states_[state].stacks[0]];
        at = machine->alike(at);
        const int32_t k = network_.nodes[stack.node].machine;
        const int32_t inside = network_.machines[k].inside;
        const int32_t only = this->stack(inside, position(k, at), kBottom);
        return intern({&only, 1}, machine->complete(at), false);
    }
    return near(state);
}

void States::find_mask(StateId state, Mask& mask) {
    Position at;
    if (Machine* machine = sole_machine(state, at)) return machine->find_mask(at, mask);
    Base found;
    found.mask = std::move(mask);
    find(state, found);  // there are no exits: only open states leave their frame
    mask = std::move(found.mask);
    if (const auto [most, least] = near_costs(state); most > 0 && mask.highest < kUnreachable) {
        mask.highest = add_cost(cost(state), std::max(mask.highest, most) - least);
    }
}

}  // namespace sglite
