// The walk of a trie beside an automaton: which strings can be read from a position on.
#pragma once

#include <cstdint>
#include <vector>

#include "trie.h"

namespace sglite {

// Calls `found(node, position)` for every descendant of `root` with strings that `step` can spell
// from `start` on. `step(position, byte)` goes on in place and returns false where it cannot.
// `found` returns false to end the walk.
template <typename At, typename Step, typename Found>
void walk(const Trie& trie, uint32_t root, const At start, Step step, Found found) {
    const TrieNode* const nodes = trie.nodes().data();
    const uint32_t base = nodes[root].depth;
    std::vector<At> path(trie.deepest(root) - base + 1);
    path[0] = start;
    // Goes through [node, end), a run of whole subtrees below what `path` holds.
    const auto run = [&](uint32_t node, uint32_t end) {
        while (node < end) {
            const TrieNode& n = nodes[node];
            At* const at = path.data() + (n.depth - base);
            at[0] = at[-1];
            if (!step(at[0], n.byte)) {
                node = n.skip;
                continue;
            }
            if (n.strings != 0 && !found(node, static_cast<const At&>(at[0]))) return false;
            ++node;
        }
        return true;
    };
    if (root != 0) {
        run(root + 1, nodes[root].skip);
        return;
    }
    // The children of the root lie far apart: where most of them are dead, none of these is read.
    for (int value = 0; value < 256; ++value) {
        const uint32_t node = trie.begin(static_cast<uint8_t>(value));
        if (node == 0) continue;
        path[1] = start;
        if (!step(path[1], static_cast<uint8_t>(value))) continue;
        if (nodes[node].strings != 0 && !found(node, static_cast<const At&>(path[1]))) return;
        if (!run(node + 1, nodes[node].skip)) return;
    }
}

// Sets the bits of all strings of a node.
inline void set_bits(const Trie& trie, uint32_t node, uint32_t* bits) {
    for (const int32_t id : trie.at(node)) bits[id >> 5] |= 1u << (id & 31);
}

}  // namespace sglite
