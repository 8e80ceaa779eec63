// Sets of characters, and how they are read byte by byte in UTF-8.
#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

namespace sglite {

using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;  // inclusive, sorted, disjoint

struct ByteRange {
    uint8_t low, high;
    auto operator<=>(const ByteRange&) const = default;
};

// A small automaton that reads exactly one character of a set: node 0 is the entry, 1 the exit.
struct Fragment {
    struct Edge {
        int from;
        ByteRange bytes;
        int to;
    };
    int nodes = 2;
    std::vector<Edge> edges;
};

// `ranges` may hold code points of surrogates; they are left out.
Fragment spell(const Ranges& ranges);

}  // namespace sglite
