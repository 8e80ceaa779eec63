// Regular expressions as nondeterministic automata over characters.
//
// Nodes are places between characters. Long counted repetitions are loops with counters: a place
// inside one goes with the iterations that it still needs and the ones it has room for. Loops with
// counters do not nest, and hold no conditions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "regex.h"
#include "spelled.h"

namespace sglite::text {

constexpr int32_t kEndless = INT32_MAX;
// Counts above this are as good as endless or out of reach.
constexpr int64_t kMostCount = 1 << 30;

// What the text before a place is: bit 0, nothing; bit i + 1, ends with a character of borders[i].
using Context = uint8_t;
constexpr Context kAtStart = 1;

struct Nfa {
    enum class Kind : uint8_t {
        kAccept,
        kChars,      // a character of `set`, then `next`
        kSplit,      // `next` or `other`
        kStart,      // the conditions: see Regex::Kind
        kEnd,        //
        kAhead,      // of looks[`other`]
        kNotAhead,   //
        kBoundary,   // of borders[`other`]
        kInside,     //
        kBehind,     //
        kNotBehind,  //
        kEnter,      // into loops[`other`]
        kCheck,      // another iteration of loops[`other`], or out of it
    };
    struct Node {
        Kind kind;
        int32_t next = -1, other = -1;
        int32_t set = -1;         // of kChars: a node of Spelled
        int32_t loop = -1;        // that the node is inside of
        Context context = 0;      // of kChars: behind its character
        bool repeats = false;     // of kChars: it is all of the body of an endless loop
        bool everything = false;  // of kChars: every text matches from behind its character
    };
    struct Loop {
        int32_t low, high;  // high: kEndless, too
        int32_t body = -1, exit = -1;
        int32_t characters = 0;  // places inside
        bool single = false;     // no text leads inside with two different counts
    };
    // Least costs from a node to the end of a match; kUnreachable where there is none. Inside a
    // loop: to the end of the iteration.
    struct Costs {
        std::vector<int32_t> weight;      // of bytes
        std::vector<int32_t> characters;  //
        std::vector<int32_t> closed;      // characters such that every higher number is possible
        std::vector<int32_t> free;        // characters without meeting a condition but the end
        std::vector<int32_t> open;        // characters to where every text matches
    };

    std::vector<Node> nodes;
    std::vector<Loop> loops;
    std::vector<Regex> looks;
    std::vector<int32_t> look_nfas;  // filled by the owner, -1 before
    std::vector<Ranges> borders;
    std::vector<int32_t> border_states;  // texts that begin with one; filled by the owner
    Costs costs;
    int32_t start = -1;
    int32_t classes = 0;  // filled by the owner
    bool conditional = false;
    // Marks of the places that a walk between two characters has met.
    std::vector<uint32_t> stamps;
    uint32_t stamp = 0;
    // Over all places, the most of `characters` and of `closed`.
    int32_t deepest = 0, all_closed = 0;

    // A cost from a place that still needs `need` iterations.
    int32_t total(const std::vector<int32_t>& cost, int32_t node, int32_t need) const;
    size_t memory() const;
};

// The sets whose borders the tree asks for, of its looks too.
std::vector<Ranges> borders_of(const Regex& tree);

// Throws Refused for too large ones.
Nfa build_nfa(const Regex& tree, std::vector<Ranges> borders, Spelled& spelled);

// Adds what `nfa` tells apart to the marks of bytes.
void mark_bytes(const Nfa& nfa, const Spelled& spelled, std::array<uint64_t, 256>& marks);

}  // namespace sglite::text
