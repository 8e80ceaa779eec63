#include "quoted_tokens.h"

#include <algorithm>

#include "text/nfa.h"
#include "walk.h"

namespace sglite {
namespace {

using text::Passages;

class QuotedWalk {
  public:
    QuotedWalk(const Trie& trie, const Passages& passages, const std::bitset<256>& without,
               uint32_t* bits)
        : trie_(trie),
          nodes_(trie.nodes().data()),
          passages_(passages),
          without_(without),
          bits_(bits) {}

    // Goes through the children of a node, which stands for `at`.
    void below(uint32_t node, Passages::At at, Passages::Count count) {
        if (at.high == Passages::kSingle) return along(node, at, count);
        if (node == 0) return from_root(at, count);
        int32_t low = at.low;
        const uint32_t end = nodes_[node].skip;
        for (uint32_t child = node + 1; child < end; child = nodes_[child].skip) {
            const int byte = nodes_[child].byte;
            low = passages_.not_below(low, at.high, at.depth, byte);
            if (low == at.high) return;
            if (passages_.byte_at(low, at.depth) == byte) low = into(child, low, at, count);
        }
    }

  private:
    // The children of the root lie far apart, and the document has few of their bytes.
    void from_root(Passages::At at, Passages::Count count) {
        int32_t low = passages_.not_below(at.low, at.high, at.depth, 0);
        while (low < at.high) {
            const int byte = passages_.byte_at(low, at.depth);
            const uint32_t child = trie_.begin(static_cast<uint8_t>(byte));
            if (child == 0) {
                low = passages_.not_below(low, at.high, at.depth, byte + 1);
            } else {
                low = into(child, low, at, count);
            }
        }
    }

    // The places with the byte of `child` begin at `low`; gives where they end.
    int32_t into(uint32_t child, int32_t low, Passages::At at, Passages::Count count) {
        const uint8_t byte = nodes_[child].byte;
        const int32_t high = passages_.not_below(low, at.high, at.depth, byte + 1);
        if (!without_[byte] && passages_.bytes()[byte]) {
            visit(child, passages_.settled({low, high, at.depth + 1}), count);
        }
        return high;
    }

    // One place: there is one way through the trie.
    void along(uint32_t node, Passages::At at, Passages::Count count) {
        for (;;) {
            const int next = passages_.byte_of(at.low);
            if (next < 0 || without_[next] || !passages_.bytes()[next]) return;
            node = trie_.child(node, static_cast<uint8_t>(next));
            if (node == 0) return;
            ++at.low;
            if (!enter(node, at, count)) return;
        }
    }

    void visit(uint32_t node, Passages::At at, Passages::Count count) {
        if (enter(node, at, count) && trie_.has_descendants(node)) below(node, at, count);
    }

    // Counts the byte of a node; false where no passage goes on so.
    bool enter(uint32_t node, Passages::At at, Passages::Count& count) {
        if ((nodes_[node].byte & 0xC0) != 0x80) {
            if (count.room == 0) return false;
            count.need = std::max(count.need - 1, 0);
            count.room -= count.room != text::kEndless;
        }
        if (!passages_.is_live(at, count)) return false;
        if (nodes_[node].strings != 0) set_bits(trie_, node, bits_);
        return true;
    }

    const Trie& trie_;
    const TrieNode* const nodes_;
    const Passages& passages_;
    const std::bitset<256>& without_;
    uint32_t* const bits_;
};

}  // namespace

void set_quoted(const Trie& trie, const text::Quoted& from, const std::bitset<256>& without,
                uint32_t* bits) {
    QuotedWalk(trie, *from.passages, without, bits).below(0, from.at, from.count);
}

}  // namespace sglite
