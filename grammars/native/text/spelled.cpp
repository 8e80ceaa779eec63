#include "spelled.h"

#include <algorithm>
#include <utility>

#include "../refused.h"

namespace sglite::text {
namespace {

constexpr int32_t kNotKnown = -2;

// The part of `set` in [low, high], counted from `base`.
Ranges cut(const Ranges& set, uint32_t low, uint32_t high, uint32_t base) {
    Ranges part;
    auto range = std::lower_bound(set.begin(), set.end(), low,
                                  [](const auto& r, uint32_t value) { return r.second < value; });
    for (; range != set.end() && range->first <= high; ++range) {
        part.push_back({std::max(range->first, low) - base, std::min(range->second, high) - base});
    }
    return part;
}

}  // namespace

Spelled::Spelled(const std::bitset<256>& barred, const std::array<uint8_t, 256>& weight)
    : barred_(barred), weight_(weight) {
    nodes_.push_back({0, {}, 0});
    before({{0, kLastCharacter}});
}

int32_t Spelled::before(const Ranges& set) {
    Ranges rests;
    for (auto [low, high] : set) {
        high = std::min(high, kLastCharacter);
        const std::pair<uint32_t, uint32_t> halves[] = {{low, std::min(high, 0xD7FFu)},
                                                        {std::max(low, 0xE000u), high}};
        for (const auto& half : halves) {
            if (half.first > half.second) continue;
            if (!rests.empty() && rests.back().second + 1 == half.first) {
                rests.back().second = half.second;
            } else {
                rests.push_back(half);
            }
        }
    }
    return intern(0, std::move(rests));
}

int32_t Spelled::intern(int left, Ranges rests) {
    uint64_t hash = static_cast<uint64_t>(left) + 1;
    for (const auto& [low, high] : rests) hash = mix(hash, static_cast<uint64_t>(low) << 32 | high);
    const int32_t known = index_.find(hash, [&](int32_t node) {
        return nodes_[node].left == left && nodes_[node].rests == rests;
    });
    if (known >= 0) return known;
    const auto node = static_cast<int32_t>(nodes_.size());
    nodes_.push_back({left, std::move(rests)});
    index_.add(hash, node);
    return node;
}

int32_t Spelled::target(int32_t node, uint8_t byte) {
    const int left = nodes_[node].left;
    uint32_t low, high, base;
    int more;
    if (left > 0) {
        if ((byte & 0xC0) != 0x80) return -1;
        more = left - 1;
        low = base = static_cast<uint32_t>(byte & 0x3F) << (6 * more);
        high = low + (1u << (6 * more)) - 1;
    } else if (byte >= 0xC2 && byte < 0xE0) {
        more = 1;
        low = base = static_cast<uint32_t>(byte & 0x1F) << 6;
        high = low + 0x3F;
    } else if (byte >= 0xE0 && byte < 0xF0) {
        more = 2;
        base = static_cast<uint32_t>(byte & 0x0F) << 12;
        low = std::max(base, 0x800u);
        high = base + 0xFFF;
    } else if (byte >= 0xF0 && byte < 0xF5) {
        more = 3;
        base = static_cast<uint32_t>(byte & 0x07) << 18;
        low = std::max(base, 0x10000u);
        high = std::min(base + 0x3FFFF, kLastCharacter);
    } else {
        return -1;
    }
    Ranges part = cut(nodes_[node].rests, low, high, base);
    if (part.empty()) return -1;
    return more == 0 ? kCharacterDone : intern(more, std::move(part));
}

int32_t Spelled::step(int32_t node, uint8_t byte) {
    if (barred_[byte]) return -1;
    if (byte < 0x80 && nodes_[node].left == 0) {
        for (const auto& [low, high] : nodes_[node].rests) {
            if (byte <= high) return byte < low ? -1 : kCharacterDone;
        }
        return -1;
    }
    if (byte < 0x80) return -1;
    if (nodes_[node].next.empty()) nodes_[node].next.assign(0x80, kNotKnown);
    const int32_t known = nodes_[node].next[byte - 0x80];
    if (known != kNotKnown) return known;
    int32_t to = target(node, byte);
    if (to > 0 && lightest(to) == kUnreachable) to = -1;
    return nodes_[node].next[byte - 0x80] = to;
}

int32_t Spelled::lightest(int32_t node) {
    if (nodes_[node].lightest >= 0) return nodes_[node].lightest;
    const int32_t least = nodes_[node].left == 0 ? 1 : nodes_[node].left;
    int32_t best = kUnreachable;
    for (int byte = 0; byte < 0xF5 && best > least; ++byte) {
        const int32_t to = step(node, static_cast<uint8_t>(byte));
        if (to >= 0) best = std::min(best, weight_[byte] + lightest(to));
    }
    nodes_[node].lightest = best;
    return best;
}

size_t Spelled::memory() const {
    size_t bytes = index_.memory() + nodes_.size() * sizeof(Node);
    for (const Node& node : nodes_) {
        bytes += node.rests.capacity() * sizeof(node.rests[0]) + node.next.capacity() * 4;
    }
    return bytes;
}

}  // namespace sglite::text
