#include "trie.h"

#include <algorithm>

namespace sglite {

Trie::Trie(std::span<const std::pair<std::string_view, int32_t>> sorted) {
    const auto open_node = [&](uint8_t value, size_t depth) {
        nodes_.push_back({0, static_cast<uint16_t>(depth), value, 0});
        first_.push_back(static_cast<uint32_t>(numbers_.size()));
        return static_cast<uint32_t>(nodes_.size() - 1);
    };
    const auto close_node = [&](uint32_t node) {
        nodes_[node].skip = static_cast<uint32_t>(nodes_.size());
    };
    numbers_.reserve(sorted.size());
    std::vector<uint32_t> path{open_node(0, 0)};
    std::string_view before;
    for (const auto& [text, number] : sorted) {
        const auto common = static_cast<size_t>(
            std::mismatch(before.begin(), before.end(), text.begin(), text.end()).first -
            before.begin());
        for (; path.size() > common + 1; path.pop_back()) close_node(path.back());
        for (size_t i = common; i < text.size(); ++i) {
            path.push_back(open_node(static_cast<uint8_t>(text[i]), i + 1));
        }
        TrieNode& end = nodes_[path.back()];
        end.strings = std::min<uint8_t>(end.strings + 1, 2);
        numbers_.push_back(number);
        before = text;
    }
    for (const uint32_t node : path) close_node(node);
    first_.push_back(static_cast<uint32_t>(numbers_.size()));

    deepest_.resize(nodes_.size());
    letters_.resize(nodes_.size());
    for (auto node = static_cast<uint32_t>(nodes_.size()); node-- > 0;) {
        deepest_[node] = nodes_[node].depth;
        letters_[node] = letter_bit(nodes_[node].byte);
        for (uint32_t at = node + 1; at < nodes_[node].skip; at = nodes_[at].skip) {
            deepest_[node] = std::max(deepest_[node], deepest_[at]);
            letters_[node] |= letters_[at];
        }
    }
    for (uint32_t at = 1; at < nodes_.size(); at = nodes_[at].skip) begin_[nodes_[at].byte] = at;
}

uint32_t Trie::child(uint32_t node, uint8_t value) const {
    if (node == 0) return begin_[value];
    for (uint32_t at = node + 1, end = nodes_[node].skip; at < end; at = nodes_[at].skip) {
        if (nodes_[at].byte == value) return at;
        if (nodes_[at].byte > value) break;
    }
    return 0;
}

int64_t Trie::find(std::string_view text) const {
    uint32_t node = 0;
    for (const char c : text) {
        node = child(node, static_cast<uint8_t>(c));
        if (node == 0) return -1;
    }
    return node;
}

size_t Trie::memory() const {
    return sizeof *this + nodes_.capacity() * sizeof(TrieNode) + deepest_.capacity() * 2 +
           letters_.capacity() * 8 + (first_.capacity() + numbers_.capacity()) * 4;
}

}  // namespace sglite
