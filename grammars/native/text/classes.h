// Bytes that an automaton cannot tell apart, so that its states keep one edge for all of them.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <vector>

#include "index.h"

namespace sglite::text {

// Class 0 holds the bytes that stand in no text.
struct ByteClasses {
    std::array<uint8_t, 256> of{};
    int count = 1;
    std::array<uint8_t, 256> lightest{};  // per class a byte of the least weight
    // Per class what its lightest byte costs: weight, and characters begun.
    std::array<std::array<uint8_t, 256>, 2> cost{};
};

class ClassTables {
  public:
    // What tells bytes apart: bytes with equal marks are alike.
    using Marks = std::array<uint64_t, 256>;

    ClassTables(const std::bitset<256>& barred, const std::array<uint8_t, 256>& weight);

    // Never coarser than what UTF-8 tells apart.
    int32_t classes(const Marks& marks);
    int32_t common(int32_t a, int32_t b);
    const ByteClasses& operator[](int32_t id) const { return *tables_[id]; }
    size_t memory() const { return tables_.size() * sizeof(ByteClasses); }

  private:
    std::array<uint8_t, 256> utf8_{};
    std::array<uint8_t, 256> weight_;
    std::vector<std::unique_ptr<ByteClasses>> tables_;
    Index index_;
    struct Pair {
        int32_t a, b, result;
    };
    std::vector<Pair> pairs_;
    Index pair_index_;
};

}  // namespace sglite::text
