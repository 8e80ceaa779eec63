#include "characters.h"

#include <algorithm>
#include <map>
#include <string>

namespace sglite {
namespace {

constexpr uint32_t kLastCharacter = 0x10FFFF;

ByteClass one(uint8_t value) { return {{value, value}}; }

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
        sequence.push_back({{static_cast<uint8_t>(base | (low >> (6 * i) & keep)),
                             static_cast<uint8_t>(base | (high >> (6 * i) & keep))}});
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

ByteClass hex_digits(uint32_t low, uint32_t high) {
    ByteClass bytes;
    const auto add = [&](uint32_t from, uint32_t to, char base) {
        const uint32_t a = std::max(low, from), b = std::min(high, to);
        if (a > b) return;
        bytes.push_back(
            {static_cast<uint8_t>(base + (a - from)), static_cast<uint8_t>(base + (b - from))});
    };
    add(0, 9, '0');
    add(10, 15, 'A');
    add(10, 15, 'a');
    return bytes;
}

// `\u` and four hexadecimal digits of either case, for the 16-bit units of [low, high].
void unit_escapes(uint32_t low, uint32_t high, std::vector<ByteSequence>& out) {
    for (int i = 1; i < 4; ++i) {
        const uint32_t rest = (1u << (4 * i)) - 1;
        if ((low & ~rest) == (high & ~rest)) continue;
        if ((low & rest) != 0) {
            unit_escapes(low, low | rest, out);
            unit_escapes((low | rest) + 1, high, out);
            return;
        }
        if ((high & rest) != rest) {
            unit_escapes(low, (high & ~rest) - 1, out);
            unit_escapes(high & ~rest, high, out);
            return;
        }
    }
    ByteSequence sequence{one('\\'), one('u')};
    for (int i = 3; i >= 0; --i) {
        sequence.push_back(hex_digits(low >> (4 * i) & 15, high >> (4 * i) & 15));
    }
    out.push_back(std::move(sequence));
}

// A pair of escaped surrogates for the characters of [low, high], all above 0xFFFF.
void pair_escapes(uint32_t low, uint32_t high, std::vector<ByteSequence>& out) {
    uint32_t a = low - 0x10000, b = high - 0x10000;
    const auto emit = [&](uint32_t head_low, uint32_t head_high, uint32_t tail_low,
                          uint32_t tail_high) {
        std::vector<ByteSequence> heads, tails;
        unit_escapes(0xD800 + head_low, 0xD800 + head_high, heads);
        unit_escapes(0xDC00 + tail_low, 0xDC00 + tail_high, tails);
        for (const ByteSequence& head : heads) {
            for (const ByteSequence& tail : tails) {
                ByteSequence both = head;
                both.insert(both.end(), tail.begin(), tail.end());
                out.push_back(std::move(both));
            }
        }
    };
    if (a >> 10 == b >> 10) return emit(a >> 10, b >> 10, a & 1023, b & 1023);
    if ((a & 1023) != 0) {
        emit(a >> 10, a >> 10, a & 1023, 1023);
        a = (a | 1023) + 1;
    }
    if ((b & 1023) != 1023) {
        emit(b >> 10, b >> 10, 0, b & 1023);
        b = (b & ~1023u) - 1;
    }
    if (a <= b) emit(a >> 10, b >> 10, 0, 1023);
}

void json_short_escapes(uint32_t low, uint32_t high, bool slash, std::vector<ByteSequence>& out) {
    constexpr std::pair<uint8_t, uint8_t> kShort[] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'},
                                                      {'\f', 'f'}, {'\n', 'n'},  {'\r', 'r'},
                                                      {'\t', 't'}, {'/', '/'}};
    for (const auto& [character, letter] : kShort) {
        if (character < low || character > high || (character == '/' && !slash)) continue;
        out.push_back({one('\\'), one(letter)});
    }
}

void json(uint32_t low, uint32_t high, bool any, std::vector<ByteSequence>& out) {
    uint32_t from = std::max(low, 0x20u);
    for (const uint32_t barred : {0x22u, 0x5Cu, kLastCharacter + 1}) {
        if (from < barred && from <= high) utf8(from, std::min(high, barred - 1), out);
        from = std::max(from, barred + 1);
    }
    json_short_escapes(low, high, any, out);
    if (any) {
        if (low <= 0xFFFF) unit_escapes(low, std::min(high, 0xFFFFu), out);
        if (high > 0xFFFF) pair_escapes(std::max(low, 0x10000u), high, out);
        return;
    }
    for (uint32_t c = low; c <= std::min(high, 0x1Fu); ++c) {
        if (c == '\b' || c == '\f' || c == '\n' || c == '\r' || c == '\t') continue;
        const auto digit = static_cast<uint8_t>("0123456789abcdef"[c & 15]);
        out.push_back({one('\\'), one('u'), one('0'), one('0'),
                       one(static_cast<uint8_t>('0' + (c >> 4))), one(digit)});
    }
}

// Makes nodes for a set of sequences; equal sets of remainders share one node.
class FragmentBuilder {
  public:
    explicit FragmentBuilder(Fragment& fragment) : fragment_(fragment) {}

    void connect(int from, const std::vector<ByteSequence>& sequences) {
        std::map<ByteClass, std::vector<ByteSequence>> by_head;
        for (const ByteSequence& sequence : sequences) {
            by_head[sequence.front()].emplace_back(sequence.begin() + 1, sequence.end());
        }
        for (auto& [head, rests] : by_head) {
            const int to = node_for(rests);
            for (const ByteRange& bytes : head) fragment_.edges.push_back({from, bytes, to});
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

Fragment spell(const Ranges& ranges, Spelling spelling) {
    std::vector<ByteSequence> sequences;
    const auto add = [&](uint32_t low, uint32_t high) {
        if (low > high) return;
        if (spelling == Spelling::kUtf8) return utf8(low, high, sequences);
        json(low, high, spelling == Spelling::kJsonAny, sequences);
    };
    for (const auto& [low, high] : ranges) {
        const uint32_t last = std::min(high, kLastCharacter);
        add(low, std::min(last, 0xD7FFu));
        add(std::max(low, 0xE000u), last);
    }
    Fragment fragment;
    if (!sequences.empty()) FragmentBuilder(fragment).connect(0, sequences);
    return fragment;
}

}  // namespace sglite
