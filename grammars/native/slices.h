// Tokens sorted by what they do inside of a text whose content is free, once per vocabulary.
//
// All of it holds from a character border on. A token that ends within a character or an escape
// counts as one that stays inside if bytes of the vocabulary can finish the character.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "trie.h"

namespace sglite {

class Vocabulary;

// The tokens that stay inside, by the number of characters that they begin.
struct Slice {
    static constexpr uint16_t kOutside = UINT16_MAX;

    std::vector<uint32_t> inside{};      // bits [mask_words]
    std::vector<uint16_t> characters{};  // per id: code points begun; kOutside: not inside
    int32_t most = 0;                    // the greatest of them
    std::vector<int32_t> unfinished{};   // ids that end within a character

    // Bits [mask_words] of the tokens inside that begin at most `count` characters.
    std::span<const uint32_t> at_most(int64_t count) const { return levels[level(count)]; }
    int32_t count_at_most(int64_t count) const { return sizes[level(count)]; }
    int32_t count() const { return sizes.back(); }

    size_t memory() const;
    size_t level(int64_t count) const;

    // levels[i] holds the bits up to counts[i], which ascend from 0.
    std::vector<int32_t> counts{};
    std::vector<std::vector<uint32_t>> levels{};
    std::vector<int32_t> sizes{};  // how many ids there are in each
};

// The tokens inside of a string that hold some character, as bits or, where they are few, as ids.
struct Holding {
    int32_t count = 0;
    std::vector<uint32_t> bits{};
    std::vector<int32_t> ids{};
};

// The inside of a JSON string. Beside the tokens that stay there, those that close it: tokens of
// whole characters, an unescaped quote, and a tail of any bytes.
struct StringSlice : Slice {
    // Ids that may stay inside, by escapes of code points; they are in no other part of this.
    std::vector<int32_t> escaped{};
    // Ids that may stay inside and hold a backslash, those of `escaped` among them; and of all
    // others, who holds which character of ASCII, or, the last one, any character beyond.
    std::vector<int32_t> slashed{};
    static constexpr size_t kBeyond = 128;
    std::array<Holding, kBeyond + 1> holding{};

    struct Closing {
        int32_t tail;  // number of the tail
        int32_t id;    // of the token
    };

    // The distinct contents in front of the quote, decoded to UTF-8, and the distinct tails behind
    // it. The root stands for the empty content, or the empty tail, where `at(0)` is not empty.
    Trie contents{};
    Trie tails{};

    // The tokens with the content of this number, by ascending tail.
    std::span<const Closing> closings(int32_t content) const {
        return {by_content.data() + first_closing[content],
                by_content.data() + first_closing[content + 1]};
    }
    // The ids of the tokens with the tail of this number, whatever their content.
    std::span<const int32_t> closed_by(int32_t tail) const {
        return {by_tail.data() + first_id[tail], by_tail.data() + first_id[tail + 1]};
    }

    size_t memory() const;

    // Per tail: whether all that it asks of what was closed is whether anything may come next. A
    // tail that goes on into the next key or item may hold one that is used already.
    std::vector<bool> simple{};
    // Whether no tail holds a key as a whole.
    bool keys_apart = true;

    std::vector<Closing> by_content{};
    std::vector<uint32_t> first_closing{};  // [contents + 1]
    std::vector<int32_t> by_tail{};
    std::vector<uint32_t> first_id{};  // [tails + 1]
};

// Plain UTF-8.
Slice make_text_slice(const Vocabulary& vocabulary);
// JSON strings in the spelling of json.dumps(ensure_ascii=False), or in any.
StringSlice make_string_slice(const Vocabulary& vocabulary, bool any_spelling);

}  // namespace sglite
