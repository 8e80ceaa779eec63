// Sets of characters as sequences of byte classes: UTF-8, or the inside of a JSON string.
#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

namespace sglite {

// How a character is written. `kJsonCanonical` is what json.dumps(ensure_ascii=False) writes,
// `kJsonAny` every way that JSON allows; lone surrogates exist in none of them.
enum class Spelling : int { kUtf8 = 0, kJsonCanonical = 1, kJsonAny = 2 };

using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;  // inclusive, sorted, disjoint

struct ByteRange {
    uint8_t low, high;
    auto operator<=>(const ByteRange&) const = default;
};
using ByteClass = std::vector<ByteRange>;
using ByteSequence = std::vector<ByteClass>;

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
Fragment spell(const Ranges& ranges, Spelling spelling);

}  // namespace sglite
