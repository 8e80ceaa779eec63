// The token masks of States: walks of the token trie, shared between states as far as they agree.
#include <algorithm>
#include <bit>

#include "states.h"

namespace sglite {
namespace {

constexpr size_t kMaskMemory = 64 << 20;

}  // namespace

// Calls `visit(node, state)` for every descendant of `root` in the trie with tokens of more than
// `longer_than` bytes that the grammar can spell from `state` on, until it returns false.
// Where an open state leaves its frame, the node goes into `exits` and nothing below is visited.
template <typename Visit>
void States::walk(StateId state, uint32_t root, size_t longer_than, Visit visit,
                  std::vector<uint32_t>* exits) {
    const Trie& trie = vocabulary_.trie();
    const std::span<const TrieNode> nodes = trie.nodes();
    const uint32_t base = nodes[root].depth;
    std::vector<StateId> path(trie.deepest(root) - base + 1);
    path[0] = state;
    for (uint32_t node = root + 1, end = nodes[root].skip; node < end;) {
        const TrieNode& n = nodes[node];
        if (longer_than > 0 && trie.deepest(node) <= longer_than) {
            node = n.skip;
            continue;
        }
        const StateId to = next(path[n.depth - base - 1], n.byte);
        if (to == kDead) {
            node = n.skip;
            continue;
        }
        if (states_[to].leaves) {
            if (exits != nullptr && n.depth > longer_than) exits->push_back(node);
            node = n.skip;
            continue;
        }
        path[n.depth - base] = to;
        if (n.depth > longer_than && n.strings != 0 && !visit(node, to)) return;
        ++node;
    }
}

bool States::extends(StateId state, std::string_view text) {
    const int64_t node = vocabulary_.trie().find(text);
    if (node < 0) return false;
    bool found = false;
    walk(state, static_cast<uint32_t>(node), 0, [&](uint32_t, StateId) {
        found = true;
        return false;
    });
    return found;
}

void States::add_tokens(Mask& mask, int32_t bound, uint32_t node, int32_t then) const {
    const Trie& trie = vocabulary_.trie();
    for (const int32_t id : trie.at(node)) {
        const uint32_t bit = 1u << (id & 31);
        mask.all[id >> 5] |= bit;
        if (then < bound) mask.falling[id >> 5] |= bit;
        if (then > bound) mask.rising.push_back({then, id});
    }
}

// What the frame on top says by itself is shared by all states that have it on top; what reaches
// below is found for this state.
void States::find_from_open(StateId state, Mask& mask) {
    const StateId top = open(state);
    const Mask& base = mask_of(top);
    const int32_t bound = cost(state), below = bound - cost(top);
    mask.all = base.all;
    mask.falling = base.falling.empty() ? base.all : base.falling;
    for (const auto& [then, id] : base.rising) mask.rising.push_back({add_cost(then, below), id});
    const Trie& trie = vocabulary_.trie();
    for (const uint32_t node : base.exits) {
        const std::string& token = vocabulary_.bytes(trie.below(node)[0]);
        const StateId at =
            after(state, std::string_view(token).substr(0, trie.nodes()[node].depth));
        if (at == kDead) continue;
        add_tokens(mask, bound, node, cost(at));
        walk(at, node, 0, [&](uint32_t inner, StateId to) {
            add_tokens(mask, bound, inner, cost(to));
            return true;
        });
    }
}

// Tokens that are too short to tell the state from its likeness are decided as there.
void States::find_from_alike(StateId state, Mask& mask) {
    size_t known = 0;
    if (const StateId like = resolve_likeness(state); like != state) {
        const Mask& base = mask_of(like);
        known = static_cast<size_t>(states_[state].like_for);
        mask.all = base.all;
        mask.falling = base.falling.empty() ? base.all : base.falling;
        for (const int32_t id : vocabulary_.longer_than(known)) {
            mask.all[id >> 5] &= ~(1u << (id & 31));
            mask.falling[id >> 5] &= ~(1u << (id & 31));
        }
        for (const auto& [then, id] : base.rising) {
            if (vocabulary_.bytes(id).size() <= known) mask.rising.push_back({then, id});
        }
        for (const uint32_t node : base.exits) {
            if (vocabulary_.trie().nodes()[node].depth <= known) mask.exits.push_back(node);
        }
    }
    const int32_t bound = cost(state);
    walk(
        state, 0, known,
        [&](uint32_t node, StateId to) {
            add_tokens(mask, bound, node, cost(to));
            return true;
        },
        &mask.exits);
}

States::Mask States::find_mask(StateId state) {
    Mask mask;
    mask.all.resize(vocabulary_.mask_words(), 0);
    mask.falling.resize(vocabulary_.mask_words(), 0);
    if (open(state) != kDead) {
        find_from_open(state, mask);
    } else {
        find_from_alike(state, mask);
    }
    std::sort(mask.rising.rbegin(), mask.rising.rend());
    if (mask.falling == mask.all) mask.falling = {};
    for (const uint32_t word : mask.all) mask.count += std::popcount(word);
    return mask;
}

size_t States::memory_of(const Mask& mask) const {
    return 4 * (mask.all.size() + mask.falling.size()) + 8 * mask.rising.size() +
           4 * mask.exits.size() + 160;
}

const States::Mask& States::mask_of(StateId state) {
    auto known = masks_.find(state);
    if (known == masks_.end()) {
        const StateId like = resolve_likeness(state);
        const auto far = static_cast<size_t>(states_[state].like_for) >= vocabulary_.longest();
        if (like != state && far) return mask_of(like);
        auto mask = std::make_unique<Mask>(find_mask(state));
        if (mask_memory_ > kMaskMemory) evict();
        mask_memory_ += memory_of(*mask);
        known = masks_.emplace(state, std::move(mask)).first;
    }
    known->second->used = ++clock_;
    return *known->second;
}

// Drops the half of the masks that was used longest ago.
void States::evict() {
    std::vector<uint64_t> used;
    for (const auto& [state, mask] : masks_) used.push_back(mask->used);
    std::nth_element(used.begin(), used.begin() + used.size() / 2, used.end());
    const uint64_t middle = used[used.size() / 2];
    std::erase_if(masks_, [&](const auto& entry) {
        const Mask& mask = *entry.second;
        if (mask.used >= middle) return false;
        mask_memory_ -= memory_of(mask);
        return true;
    });
}

void States::fill(StateId state, std::span<uint32_t> mask, int32_t budget) {
    const int32_t bound = cost(state);
    if (budget >= 0 && budget < bound) {  // only tokens that outrun the bound can still finish
        std::fill(mask.begin(), mask.end(), 0);
        const Trie& trie = vocabulary_.trie();
        walk(state, 0, 0, [&](uint32_t node, StateId to) {
            if (cost(to) >= budget) return true;
            for (const int32_t id : trie.at(node)) mask[id >> 5] |= 1u << (id & 31);
            return true;
        });
        return;
    }
    const Mask& known = mask_of(state);
    const bool falling = budget == bound && !known.falling.empty();
    std::ranges::copy(falling ? known.falling : known.all, mask.begin());
    if (falling || budget < 0) return;
    for (const auto& [then, id] : known.rising) {
        if (then < budget) break;
        mask[id >> 5] &= ~(1u << (id & 31));
    }
}

}  // namespace sglite
