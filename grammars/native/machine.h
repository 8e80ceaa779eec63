// What every compiled constraint is inside: a lazily built deterministic automaton over bytes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "refused.h"
#include "vocabulary.h"

namespace sglite {

// A place in a machine: plain numbers that mean something to that machine only. Equal positions of
// one machine are equal for ever, whatever text led there.
struct Position {
    std::array<int32_t, 6> at{};
    bool operator==(const Position&) const = default;
};

struct PositionHash {
    size_t operator()(const Position& p) const {
        uint64_t hash = 0x9E3779B97F4A7C15u;
        for (const int32_t part : p.at) {
            hash = (hash ^ static_cast<uint32_t>(part)) * 0xBF58476D1CE4E5B9u;
            hash ^= hash >> 29;
        }
        return hash;
    }
};

// The tokens that may come next.
struct Mask {
    std::vector<uint32_t> bits;  // [mask_words], without the eos ids
    // No allowed token leads to a greater bound on the tokens to finish than this, from the
    // position that the mask was found for; kUnreachable where that is not known.
    int32_t highest = 0;
};

// Every position that `step` leaves is live: some text leads from it to a match. Not thread-safe:
// the owner locks. Interned parts only grow; `memory` says when to begin anew.
class Machine {
  public:
    virtual ~Machine() = default;

    virtual Position start() = 0;
    // Goes on by one byte. False where no match begins so; `at` is undefined then.
    virtual bool step(Position& at, uint8_t byte) = 0;
    // Whether the text so far is a match.
    virtual bool complete(const Position& at) = 0;
    // Whether any byte can follow.
    virtual bool can_go_on(const Position& at) = 0;
    // Upper bound on the tokens to a match; from 1 up, some allowed token lowers it.
    virtual int32_t cost(const Position& at) = 0;
    // No position has a greater cost; kUnreachable where that is not known.
    virtual int32_t farthest() { return kUnreachable; }
    // A position that allows the same tokens: the key under which a mask is kept. Where `highest`
    // of a mask is known, costs rise by at most as much from all positions that are alike.
    virtual Position alike(const Position& at) { return at; }
    // A position from which texts of up to the longest token's length lead on, and to matches, in
    // the same way. Called where `farthest` is known.
    virtual Position near(const Position& at) { return at; }
    // A number that is the same for positions with the same mask, or -1 where telling takes as long
    // as finding it. Asked for once `alike` has not helped.
    virtual int32_t same_mask(const Position&) { return -1; }
    // Finds the mask of a position; `mask.bits` comes with mask_words() zeros.
    virtual void find_mask(const Position& at, Mask& mask) = 0;
    // Finds the tokens behind which the cost is below `budget`, and `highest` over all allowed
    // ones. False, and nothing is found, where that takes a look at every token.
    virtual bool find_within(const Position&, int32_t /*budget*/, Mask&) { return false; }
    // Rough size in bytes of what was found lazily.
    virtual size_t memory() const = 0;
};

// Makes the same machine again, empty.
using MakeMachine = std::function<std::unique_ptr<Machine>()>;

}  // namespace sglite
