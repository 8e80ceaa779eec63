#include "characters.h"

#include <algorithm>
#include <map>

namespace sglite {
namespace {

constexpr uint32_t kLastCharacter = 0x10FFFF;

using ByteSequence = std::vector<ByteRange>;

// The characters of [low, high], all of the same UTF-8 length, as sequences of byte ranges.
void utf8_aligned(uint32_t low, uint32_t high, int length, std::vector<ByteSequence>& out) {
    for (int i = 1; i < length; ++i) {
        const uint32_t rest = (1u << (6 * i)) - 1;
        if ((low & ~rest) == (high & ~rest)) continue;
        if ((low & rest) != 0) {
            utf8_aligned(low, low | rest, length, out);
            utf8_aligned((low | rest) + 1, high, length, out);
            return;
        }
        if ((high & rest) != rest) {
            utf8_aligned(low, (high & ~rest) - 1, length, out);
            utf8_aligned(high & ~rest, high, length, out);
            return;
        }
    }
    constexpr uint8_t kLead[5] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    ByteSequence sequence;
    for (int i = length - 1; i >= 0; --i) {
        const bool lead = i == length - 1;
        const uint32_t keep = lead ? 0xFF : 0x3F;
        const uint8_t base = lead ? kLead[length] : 0x80;
        sequence.push_back({static_cast<uint8_t>(base | (low >> (6 * i) & keep)),
                            static_cast<uint8_t>(base | (high >> (6 * i) & keep))});
    }
    out.push_back(std::move(sequence));
}

void utf8(uint32_t low, uint32_t high, std::vector<ByteSequence>& out) {
    constexpr uint32_t kLast[4] = {0x7F, 0x7FF, 0xFFFF, kLastCharacter};
    uint32_t first = 0;
    for (int length = 1; length <= 4; ++length) {
        const uint32_t a = std::max(low, first), b = std::min(high, kLast[length - 1]);
        if (a <= b) utf8_aligned(a, b, length, out);
        first = kLast[length - 1] + 1;
    }
}

// Makes nodes for a set of sequences; equal sets of remainders share one node.
class FragmentBuilder {
  public:
    explicit FragmentBuilder(Fragment& fragment) : fragment_(fragment) {}

    void connect(int from, const std::vector<ByteSequence>& sequences) {
        std::map<ByteRange, std::vector<ByteSequence>> by_head;
        for (const ByteSequence& sequence : sequences) {
            by_head[sequence.front()].emplace_back(sequence.begin() + 1, sequence.end());
        }
        for (auto& [head, rests] : by_head) {
            fragment_.edges.push_back({from, head, node_for(rests)});
        }
    }

  private:
    int node_for(std::vector<ByteSequence>& rests) {
        if (rests.front().empty()) return 1;  // no spelling of a character is a prefix of another
        std::sort(rests.begin(), rests.end());
        rests.erase(std::unique(rests.begin(), rests.end()), rests.end());
        if (const auto known = nodes_.find(rests); known != nodes_.end()) return known->second;
        const int node = fragment_.nodes++;
        nodes_.emplace(rests, node);
        connect(node, rests);
        return node;
    }

    Fragment& fragment_;
    std::map<std::vector<ByteSequence>, int> nodes_;
};

}  // namespace

Fragment spell(const Ranges& ranges) {
    std::vector<ByteSequence> sequences;
    for (const auto& [low, high] : ranges) {
        const uint32_t last = std::min(high, kLastCharacter);
        utf8(low, std::min(last, 0xD7FFu), sequences);
        utf8(std::max(low, 0xE000u), last, sequences);
    }
    Fragment fragment;
    if (!sequences.empty()) FragmentBuilder(fragment).connect(0, sequences);
    return fragment;
}

}  // namespace sglite
