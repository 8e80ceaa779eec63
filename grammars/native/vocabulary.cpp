#include "vocabulary.h"

#include <algorithm>
#include <stdexcept>

namespace sglite {

uint32_t Trie::child(uint32_t node, uint8_t value) const {
    for (uint32_t at = node + 1, end = skip[node]; at < end; at = skip[at]) {
        if (byte[at] == value) return at;
        if (byte[at] > value) break;
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

Vocabulary::Vocabulary(std::vector<std::string> tokens, const std::vector<int32_t>& eos,
                       const std::vector<int32_t>& special)
    : tokens_(std::move(tokens)), eos_(eos), text_mask_(mask_words(), 0) {
    const auto check = [&](int32_t id, const char* list) {
        if (id < 0 || static_cast<size_t>(id) >= tokens_.size()) {
            throw std::invalid_argument(std::string(list) + " has id " + std::to_string(id) +
                                        ", outside a vocabulary of " +
                                        std::to_string(tokens_.size()));
        }
    };
    std::sort(eos_.begin(), eos_.end());
    eos_.erase(std::unique(eos_.begin(), eos_.end()), eos_.end());
    std::vector<bool> barred(tokens_.size(), false);
    for (const int32_t id : eos_) check(id, "eos_ids"), barred[id] = true;
    for (const int32_t id : special) check(id, "special_ids"), barred[id] = true;
    for (size_t id = 0; id < tokens_.size(); ++id) {
        if (tokens_[id].size() > UINT16_MAX) {
            throw std::invalid_argument("token " + std::to_string(id) + " has " +
                                        std::to_string(tokens_[id].size()) + " bytes, at most " +
                                        std::to_string(UINT16_MAX) + " are possible");
        }
        if (barred[id] || tokens_[id].empty()) continue;
        text_mask_[id >> 5] |= 1u << (id & 31);
        for (const char c : tokens_[id]) written_[static_cast<uint8_t>(c)] = true;
        if (tokens_[id].size() == 1) single_[static_cast<uint8_t>(tokens_[id][0])] = true;
    }
    build_trie();
}

void Vocabulary::build_trie() {
    std::vector<int32_t> order;
    for (size_t id = 0; id < tokens_.size(); ++id) {
        if (is_text(static_cast<int32_t>(id))) order.push_back(static_cast<int32_t>(id));
    }
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        const int by_text = tokens_[a].compare(tokens_[b]);
        return by_text != 0 ? by_text < 0 : a < b;
    });
    const auto open_node = [&](uint8_t value, size_t depth) {
        trie_.byte.push_back(value);
        trie_.depth.push_back(static_cast<uint16_t>(depth));
        trie_.skip.push_back(0);
        trie_.deepest.push_back(static_cast<uint16_t>(depth));
        trie_.first_token.push_back(static_cast<uint32_t>(trie_.ids.size()));
        return static_cast<uint32_t>(trie_.byte.size() - 1);
    };
    std::vector<uint32_t> path{open_node(0, 0)};
    std::string_view before;
    for (const int32_t id : order) {
        const std::string_view text = tokens_[id];
        const size_t common = static_cast<size_t>(
            std::mismatch(before.begin(), before.end(), text.begin(), text.end()).first -
            before.begin());
        for (; path.size() > common + 1; path.pop_back()) {
            trie_.skip[path.back()] = static_cast<uint32_t>(trie_.byte.size());
        }
        for (size_t i = common; i < text.size(); ++i) {
            path.push_back(open_node(static_cast<uint8_t>(text[i]), i + 1));
        }
        trie_.ids.push_back(id);
        before = text;
    }
    for (const uint32_t node : path) trie_.skip[node] = static_cast<uint32_t>(trie_.byte.size());
    trie_.first_token.push_back(static_cast<uint32_t>(trie_.ids.size()));
    for (size_t node = trie_.size(); node-- > 0;) {
        for (uint32_t at = static_cast<uint32_t>(node) + 1; at < trie_.skip[node];
             at = trie_.skip[at]) {
            trie_.deepest[node] = std::max(trie_.deepest[node], trie_.deepest[at]);
        }
    }
    by_length_ = std::move(order);
    std::ranges::stable_sort(
        by_length_, [&](int32_t a, int32_t b) { return tokens_[a].size() > tokens_[b].size(); });
}

std::span<const int32_t> Vocabulary::longer_than(size_t length) const {
    const auto end = std::ranges::partition_point(
        by_length_, [&](int32_t id) { return tokens_[id].size() > length; });
    return {by_length_.begin(), end};
}

bool Vocabulary::is_eos(int32_t id) const {
    return std::binary_search(eos_.begin(), eos_.end(), id);
}

std::vector<int32_t> Vocabulary::tokens_beginning(std::string_view text) const {
    std::vector<int32_t> found;
    const auto take = [&](uint32_t from, uint32_t to) {
        found.insert(found.end(), trie_.ids.begin() + trie_.first_token[from],
                     trie_.ids.begin() + trie_.first_token[to]);
    };
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        node = trie_.child(node, static_cast<uint8_t>(text[i]));
        if (node == 0) break;
        take(node, i + 1 == text.size() ? trie_.skip[node] : node + 1);
    }
    std::sort(found.begin(), found.end());
    return found;
}

bool Vocabulary::extends(std::string_view tail) const {
    const int64_t node = trie_.find(tail);
    return node >= 0 && trie_.has_descendants(static_cast<uint32_t>(node));
}

}  // namespace sglite
