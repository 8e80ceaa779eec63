// Which bytes a vocabulary can write, and what follows for languages.
#pragma once

#include <bitset>
#include <string>

#include "vocabulary.h"

namespace sglite {

// Texts with bytes that the tokeniser cannot write at all (control characters and parts of rare
// characters that occur in no token) are no part of any language. Printable ASCII and whitespace
// are never left out like that: to lack one of these is an error.
std::bitset<256> barred_bytes(const Vocabulary& vocabulary);

// Throws Refused if one of the bytes is no token of its own.
void check_single_bytes(const Vocabulary& vocabulary, const std::bitset<256>& used);

// Throws Refused for a language that is empty. `lacking`: a barred byte that its texts would need,
// or -1.
[[noreturn]] void refuse_empty(int lacking);

}  // namespace sglite
