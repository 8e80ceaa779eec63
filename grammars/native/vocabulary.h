// The token byte strings as a trie, and what free text makes of them. Knows nothing of grammars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "slices.h"
#include "structure.h"
#include "trie.h"

namespace sglite {

class Vocabulary {
  public:
    // Throws std::invalid_argument for ids out of range and tokens of almost 64 KiB or more.
    Vocabulary(std::vector<std::string> tokens, const std::vector<int32_t>& eos,
               const std::vector<int32_t>& special);

    size_t size() const { return tokens_.size(); }
    size_t mask_words() const { return (tokens_.size() + 31) / 32; }
    const std::string& bytes(int32_t id) const { return tokens_[id]; }
    bool is_text(int32_t id) const { return text_mask_[id >> 5] >> (id & 31) & 1; }
    bool is_eos(int32_t id) const;
    std::span<const int32_t> eos_ids() const { return eos_; }
    void set_eos(std::span<uint32_t> mask) const {
        for (const int32_t id : eos_) mask[id >> 5] |= 1u << (id & 31);
    }
    std::span<const uint32_t> text_mask() const { return text_mask_; }
    bool has_single_byte(uint8_t value) const { return single_[value]; }
    // Whether no text id has this byte anywhere in it: the tokeniser cannot write it at all.
    bool is_unwritable(uint8_t value) const { return !written_[value]; }
    // Of the text ids alone: ids with bytes that are neither special nor end-of-sequence.
    const Trie& trie() const { return trie_; }
    // What can stand outside of JSON strings.
    const Structure& structure() const { return structure_; }
    // The inside of JSON strings, in the spelling of json.dumps(ensure_ascii=False) or in any.
    const StringSlice& string_slice(bool any_spelling) const { return strings_[any_spelling]; }
    // Plain UTF-8.
    const Slice& text_slice() const { return text_; }
    // In bytes.
    size_t memory() const;

    size_t longest() const { return trie_.longest(); }

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
    Structure structure_;
    StringSlice strings_[2];
    Slice text_;
};

}  // namespace sglite
