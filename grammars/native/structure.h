// Tokens that can stand outside of JSON strings, once per vocabulary: they are few.
#pragma once

#include <cstdint>
#include <vector>

#include "trie.h"

namespace sglite {

class Vocabulary;

// The text ids that some JSON text can go on with where no string and no literal has begun: before
// and behind values, keys and signs, and within numbers. Which brackets are open does not count,
// so there are some more than any text has.
struct Structure {
    // Tokens of nothing but white space, shortest first.
    struct Space {
        size_t length;
        int32_t id;
    };
    std::vector<Space> spaces{};
    Trie signs{};  // all other ones
    Trie all{};

    size_t memory() const;
};

Structure make_structure(const Vocabulary& vocabulary);

}  // namespace sglite
