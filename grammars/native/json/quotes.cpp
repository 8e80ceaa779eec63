// The token masks of quotes within JSON strings.
#include <algorithm>

#include "../quoted_tokens.h"
#include "machine.h"

namespace sglite::json {

// False for a string that may be anything but a quote. Tokens that stay inside are found in the
// document, those with a backslash one by one; those that close the string as in `fill_string`.
bool JsonMachine::fill_quote(const Position& at, Mask& mask, int32_t budget) {
    if (place_of(at) != kString) return false;
    const auto lanes = lexer_.lanes(lexer_.base(at.at[kState]));
    if (lanes.size() != 1) return false;
    const std::optional<text::Quoted> quoted = languages_->quoted(lanes[0].second);
    if (!quoted) return false;
    static const std::bitset<256> kEscaped = [] {
        std::bitset<256> bytes((uint64_t{1} << 0x20) - 1);
        return bytes.set('"').set('\\');
    }();
    set_quoted(vocabulary_->trie(), *quoted, kEscaped, mask.bits.data());
    const StringSlice& slice = vocabulary_->string_slice(style_.any_spelling);
    if (style_.any_spelling || (quoted->passages->bytes() & kEscaped).any()) {
        for (const int32_t id : slice.slashed) {
            Position to = at;
            const bool possible = std::ranges::all_of(
                vocabulary_->bytes(id), [&](char c) { return step(to, static_cast<uint8_t>(c)); });
            if (!possible) continue;
            const int32_t then = budget < kUnreachable ? cost(to) : 0;
            if (then < budget) mask.bits[id >> 5] |= 1u << (id & 31);
            mask.highest = std::max(mask.highest, then);
        }
    }
    add_closings(at, slice, mask, budget);
    return true;
}

}  // namespace sglite::json
