#include "writable.h"

#include <cstdio>

#include "refused.h"

namespace sglite {
namespace {

std::string byte_name(int value) {
    char name[16];
    const bool printable = value > 0x20 && value < 0x7F;
    std::snprintf(name, sizeof name, printable ? "0x%02X (%c)" : "0x%02X", value, value);
    return name;
}

bool is_plain(int value) {
    return (value >= 0x20 && value < 0x7F) || value == '\t' || value == '\n' || value == '\r';
}

}  // namespace

std::bitset<256> barred_bytes(const Vocabulary& vocabulary) {
    std::bitset<256> barred;
    for (int value = 0; value < 256; ++value) {
        barred[value] = vocabulary.is_unwritable(static_cast<uint8_t>(value)) && !is_plain(value);
    }
    return barred;
}

void check_single_bytes(const Vocabulary& vocabulary, const std::bitset<256>& used) {
    for (int value = 0; value < 256; ++value) {
        if (!used[value] || vocabulary.has_single_byte(static_cast<uint8_t>(value))) continue;
        throw Refused("the vocabulary has no token for the single byte " + byte_name(value) +
                      ", which the grammar can use; exact constraints need one");
    }
}

void refuse_empty(int lacking) {
    if (lacking < 0) throw Refused("nothing can match");
    throw Refused("nothing can match that the vocabulary can write: it has no token for byte " +
                  byte_name(lacking));
}

}  // namespace sglite
