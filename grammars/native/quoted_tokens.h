// The tokens that can go on with a quote.
#pragma once

#include <bitset>
#include <cstdint>

#include "text/languages.h"
#include "trie.h"

namespace sglite {

// Sets the bits of the strings of `trie` that lead on in the document, none with a byte of
// `without`. The trie and the sorted places of the document are walked side by side.
void set_quoted(const Trie& trie, const text::Quoted& from, const std::bitset<256>& without,
                uint32_t* bits);

}  // namespace sglite
