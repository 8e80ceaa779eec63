// Characters on their way: what may follow, byte by byte, until one character of a set is read.
//
// A node stands for the rests of characters of a set. Nodes are found lazily and interned, so that
// equal rests are one number in all sets. Barred bytes are in no rest.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "../characters.h"
#include "index.h"

namespace sglite::text {

constexpr int32_t kCharacterDone = 0;
constexpr int32_t kAnyCharacter = 1;  // before any character
constexpr uint32_t kLastCharacter = 0x10FFFF;

class Spelled {
  public:
    Spelled(const std::bitset<256>& barred, const std::array<uint8_t, 256>& weight);

    // The node before a character of `set`; surrogates are left out.
    int32_t before(const Ranges& set);
    // kCharacterDone once a character is read, -1 where none of the set goes on so.
    int32_t step(int32_t node, uint8_t byte);
    // The weight of the lightest rest; kUnreachable if there is none.
    int32_t lightest(int32_t node);
    // Of a node before characters.
    const Ranges& set(int32_t node) const { return nodes_[node].rests; }
    size_t memory() const;

  private:
    struct Node {
        int left;      // continuation bytes to come; 0: a whole character
        Ranges rests;  // as numbers made of the bits to come
        int32_t lightest = -1;
        std::vector<int32_t> next{};  // of bytes from 0x80 up, made when first asked for
    };

    int32_t intern(int left, Ranges rests);
    int32_t target(int32_t node, uint8_t byte);

    std::bitset<256> barred_;
    std::array<uint8_t, 256> weight_;
    std::vector<Node> nodes_;
    Index index_;
};

}  // namespace sglite::text
