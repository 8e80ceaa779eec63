// Byte strings as a trie in depth-first order, one small record per node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace sglite {

//   node      0     1    2     3    4        the children of a node follow it; `skip` of a node is
//   spells    ""    a    ab    abc  b        the index behind its subtree, which is also its next
//   depth     0     1    2     3    1        sibling if that has the same depth
//   skip      5     4    4     4    5
struct TrieNode {
    uint32_t skip;
    uint16_t depth;
    uint8_t byte;
    uint8_t strings;  // how many end here: 0, 1, or 2 for more
};

// Sets of letters: a bit per ASCII letter, digit and underscore, and one for all other bytes.
constexpr uint64_t kNoLetter = uint64_t{1} << 63;
constexpr uint64_t letter_bit(uint8_t byte) {
    if (byte >= 'a' && byte <= 'z') return uint64_t{1} << (byte - 'a');
    if (byte >= 'A' && byte <= 'Z') return uint64_t{1} << (byte - 'A' + 26);
    if (byte >= '0' && byte <= '9') return uint64_t{1} << (byte - '0' + 52);
    return byte == '_' ? uint64_t{1} << 62 : kNoLetter;
}

class Trie {
  public:
    Trie() = default;
    // Pairs of a string and its number, in ascending order. Strings may be equal, or empty.
    explicit Trie(std::span<const std::pair<std::string_view, int32_t>> sorted);

    std::span<const TrieNode> nodes() const { return nodes_; }
    size_t size() const { return nodes_.size(); }
    // The greatest depth, of the whole and of the subtree of a node.
    size_t longest() const { return deepest_.empty() ? 0 : deepest_[0]; }
    size_t deepest(uint32_t node) const { return deepest_[node]; }
    // What the subtree of a node is spelled with, the byte of the node included.
    uint64_t letters(uint32_t node) const { return letters_[node]; }
    // The numbers of the strings that end at a node; of those in its whole subtree.
    std::span<const int32_t> at(uint32_t node) const {
        return {numbers_.data() + first_[node], numbers_.data() + first_[node + 1]};
    }
    std::span<const int32_t> below(uint32_t node) const {
        return {numbers_.data() + first_[node], numbers_.data() + first_[nodes_[node].skip]};
    }
    bool has_descendants(uint32_t node) const { return nodes_[node].skip != node + 1; }
    // The child of the root along `value`, or 0 (the root is nobody's child).
    uint32_t begin(uint8_t value) const { return begin_[value]; }
    // The child of `node` along `value`, or 0.
    uint32_t child(uint32_t node, uint8_t value) const;
    // The node that spells `text`, or -1.
    int64_t find(std::string_view text) const;
    size_t memory() const;

  private:
    std::vector<TrieNode> nodes_;
    std::vector<uint16_t> deepest_;
    std::vector<uint64_t> letters_;
    std::vector<uint32_t> first_;  // [nodes + 1]: the numbers of node n are [first[n], first[n+1])
    std::vector<int32_t> numbers_;
    uint32_t begin_[256] = {};
};

}  // namespace sglite
