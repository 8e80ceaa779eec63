// The passages of a document: its substrings of whole characters, by the order of its suffixes.
//
// A text that is being read stands in the document at some places; in the order of suffixes they
// are neighbours. To read one byte more keeps some of them. Knows nothing of automata and tokens.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sglite::text {

class Passages {
  public:
    // Bytes of a document.
    static constexpr size_t kMostBytes = 4'000'000;

    // `whole_words`: passages begin and end with no white space and cut no word in two. No passage
    // holds a barred byte. `weight`: per byte. Throws Refused for a document that is too long or
    // no UTF-8.
    Passages(std::string_view document, bool whole_words, const std::bitset<256>& barred,
             const std::array<uint8_t, 256>& weight);

    // The places of a text: `depth` bytes behind the begins `low` to `high` of the order; or the
    // single place `low`, with `high` kSingle.
    struct At {
        int32_t low, high, depth;
    };
    static constexpr int32_t kSingle = -1;
    // How many more characters must and may begin.
    struct Count {
        int32_t need, room;
    };

    At start() const { return settled({0, static_cast<int32_t>(order_.size()), 0}); }
    // The places behind one byte more; `is_empty` if there are none.
    At step(At at, uint8_t byte) const;
    static bool is_empty(At at) { return at.low == at.high; }
    // The same places, in one form only.
    At settled(At at) const;

    // Whether a passage can end here, or behind more text.
    bool is_live(At at, Count count) const;
    // Whether it can end here, if no more characters are needed.
    bool can_end(At at) const;
    // The lightest, or with `characters` the shortest, rest of live places.
    int32_t least(At at, Count count, bool characters) const;
    // No place is further from an end than so many characters.
    int32_t farthest() const { return farthest_; }

    std::string_view document() const { return document_; }
    bool whole_words() const { return whole_words_; }
    const std::bitset<256>& bytes() const { return bytes_; }  // all that passages can hold
    size_t memory() const;

    // For walks. The byte `depth` behind begin number `i` of the order; -1 at the end.
    int byte_at(int32_t i, int32_t depth) const {
        const size_t at = static_cast<size_t>(order_[i]) + depth;
        return at < document_.size() ? static_cast<uint8_t>(document_[at]) : -1;
    }
    // The byte at a place of the document; -1 at the end.
    int byte_of(int32_t place) const {
        const auto at = static_cast<size_t>(place);
        return at < document_.size() ? static_cast<uint8_t>(document_[at]) : -1;
    }
    // The first of [low, high) with a byte there that is not below `byte`; `low` is likely near.
    int32_t not_below(int32_t low, int32_t high, int32_t depth, int byte) const;

  private:
    template <typename See>
    bool any(At at, See see) const;
    int32_t border_from(int32_t at) const;
    int32_t end_from(int32_t at, Count count) const;
    bool is_border(int32_t at) const {
        const auto place = static_cast<size_t>(at);
        return place >= document_.size() || (document_[place] & 0xC0) != 0x80;
    }
    int32_t number(int32_t at) const { return numbers_.empty() ? at : numbers_[at]; }
    int32_t offset(int32_t character) const {
        return offsets_.empty() ? character : offsets_[character];
    }
    int32_t weight(int32_t at) const { return weights_.empty() ? at : weights_[at]; }
    void find_words(std::vector<bool>& begins);

    const std::string document_;
    const bool whole_words_;
    bool walled_ = false;
    std::bitset<256> bytes_;
    std::vector<int32_t> order_;  // where passages can begin, by what follows
    std::vector<int32_t> ends_;   // of whole words: the next end from a byte on, or -1
    std::vector<int32_t> walls_;  // the next barred byte from a byte on; if there are any
    std::vector<int32_t> numbers_, offsets_;  // characters before a byte, and back; of ASCII: none
    std::vector<int32_t> weights_;            // of all bytes before; where they are not 1 each
    int32_t characters_ = 0, farthest_ = 0;
};

// Where a passage stands in a document, in characters.
struct Places {
    int64_t first = -1;  // its first place; -1 if there is none
    int64_t count = 0;
};
Places places_of(std::string_view passage, std::string_view document, bool whole_words);

}  // namespace sglite::text
