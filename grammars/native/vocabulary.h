// The token byte strings as a trie in depth-first order. Knows nothing of grammars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sglite {

// Only text ids are in the trie: ids with bytes that are neither special nor end-of-sequence.
//
//   node      0     1    2     3    4        the children of a node follow it; `skip` of a node is
//   spells    ""    a    ab    abc  b        the index behind its subtree, which is also its next
//   depth     0     1    2     3    1        sibling if that has the same depth
//   skip      5     4    4     4    5
struct Trie {
    std::vector<uint8_t> byte;
    std::vector<uint16_t> depth;
    std::vector<uint32_t> skip;
    std::vector<uint16_t> deepest;  // the greatest depth in the subtree
    std::vector<uint32_t>
        first_token;  // [nodes + 1]: tokens of node n are ids[first[n]..first[n+1])
    std::vector<int32_t> ids;

    size_t size() const { return byte.size(); }
    bool has_token(uint32_t node) const { return first_token[node] != first_token[node + 1]; }
    bool has_descendants(uint32_t node) const { return skip[node] != node + 1; }
    // The child of `node` along `value`, or 0 (the root is nobody's child).
    uint32_t child(uint32_t node, uint8_t value) const;
    // The node that spells `text`, or -1.
    int64_t find(std::string_view text) const;
};

class Vocabulary {
  public:
    // Throws std::invalid_argument for ids out of range and tokens of 64 KiB or more.
    Vocabulary(std::vector<std::string> tokens, const std::vector<int32_t>& eos,
               const std::vector<int32_t>& special);

    size_t size() const { return tokens_.size(); }
    size_t mask_words() const { return (tokens_.size() + 31) / 32; }
    const std::string& bytes(int32_t id) const { return tokens_[id]; }
    bool is_text(int32_t id) const { return text_mask_[id >> 5] >> (id & 31) & 1; }
    bool is_eos(int32_t id) const;
    std::span<const int32_t> eos_ids() const { return eos_; }
    std::span<const uint32_t> text_mask() const { return text_mask_; }
    bool has_single_byte(uint8_t value) const { return single_[value]; }
    // Whether no text id has this byte anywhere in it: the tokeniser cannot write it at all.
    bool is_unwritable(uint8_t value) const { return !written_[value]; }
    const Trie& trie() const { return trie_; }

    // The text ids with more than `length` bytes, in no order.
    std::span<const int32_t> longer_than(size_t length) const;
    size_t longest() const { return trie_.deepest[0]; }

    // Ids whose bytes are a non-empty prefix of `text` or start with it, ascending.
    std::vector<int32_t> tokens_beginning(std::string_view text) const;
    // Whether some text id has `tail` as a strict prefix.
    bool extends(std::string_view tail) const;

  private:
    void build_trie();

    std::vector<std::string> tokens_;
    std::vector<int32_t> eos_;
    std::vector<uint32_t> text_mask_;
    bool single_[256] = {};
    bool written_[256] = {};
    Trie trie_;
    std::vector<int32_t> by_length_;  // text ids, longest first
};

}  // namespace sglite
