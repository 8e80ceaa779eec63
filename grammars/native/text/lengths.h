// How many characters the rests of a state may have, exactly.
//
// Only asked where the least rest does not decide. All states that can follow are found; then, for
// 0, 1, 2... characters, the set of states that have a rest of so many. These sets repeat.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

namespace sglite::text {

class Pool;

class Lengths {
  public:
    // Whether some rest of `state`, which is live, has from `low` to `high` characters.
    bool any(Pool& pool, int32_t state, int32_t low, int32_t high);
    // Finds all that `any` can ask of `state` and what follows it, up to `high`. Throws Refused
    // where that is too much.
    void prepare(Pool& pool, int32_t state, int32_t high);
    size_t memory() const;

  private:
    struct Graph {
        // Per state, flat: the states behind a byte that begins a character, and behind another.
        std::vector<uint32_t> first;
        std::vector<uint32_t> next;
        std::vector<bool> begins;  // per edge
        std::vector<bool> accepting;
        std::vector<std::vector<uint64_t>> levels;  // per number of characters, a bit per state
        std::unordered_multimap<uint64_t, size_t> known;
        int64_t period = 0;  // 0: not found yet; then levels end one period behind their first
    };

    std::set<uint32_t> explore(Pool& pool, int32_t state);
    void add_level(Graph& graph, bool limited);

    std::vector<Graph> graphs_;
    std::unordered_map<int32_t, std::pair<uint32_t, uint32_t>> places_;  // graph, number in it
    size_t memory_ = 0;
};

}  // namespace sglite::text
