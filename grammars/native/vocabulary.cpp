#include "vocabulary.h"

#include <algorithm>
#include <stdexcept>

namespace sglite {
namespace {

constexpr size_t kLongestToken = UINT16_MAX - 1;  // lengths are kept as 16 bits

}  // namespace

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
        if (tokens_[id].size() > kLongestToken) {
            throw std::invalid_argument("token " + std::to_string(id) + " has " +
                                        std::to_string(tokens_[id].size()) + " bytes, at most " +
                                        std::to_string(kLongestToken) + " are possible");
        }
        if (barred[id] || tokens_[id].empty()) continue;
        text_mask_[id >> 5] |= 1u << (id & 31);
        for (const char c : tokens_[id]) written_[static_cast<uint8_t>(c)] = true;
        if (tokens_[id].size() == 1) single_[static_cast<uint8_t>(tokens_[id][0])] = true;
    }
    build_trie();
    structure_ = make_structure(*this);
    text_ = make_text_slice(*this);
    strings_[0] = make_string_slice(*this, false);
    strings_[1] = make_string_slice(*this, true);
}

void Vocabulary::build_trie() {
    std::vector<std::pair<std::string_view, int32_t>> sorted;
    for (size_t id = 0; id < tokens_.size(); ++id) {
        if (is_text(static_cast<int32_t>(id))) sorted.emplace_back(tokens_[id], id);
    }
    std::ranges::sort(sorted);
    trie_ = Trie(sorted);
}

size_t Vocabulary::memory() const {
    size_t total = sizeof *this + trie_.memory() + structure_.memory() + text_.memory() +
                   strings_[0].memory() + strings_[1].memory() + text_mask_.size() * 4;
    for (const std::string& token : tokens_) {
        total += sizeof token + (token.capacity() > 15 ? token.capacity() + 1 : 0);
    }
    return total;
}

bool Vocabulary::is_eos(int32_t id) const {
    return std::binary_search(eos_.begin(), eos_.end(), id);
}

std::vector<int32_t> Vocabulary::tokens_beginning(std::string_view text) const {
    std::vector<int32_t> found;
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        node = trie_.child(node, static_cast<uint8_t>(text[i]));
        if (node == 0) break;
        const auto taken = i + 1 == text.size() ? trie_.below(node) : trie_.at(node);
        found.insert(found.end(), taken.begin(), taken.end());
    }
    std::sort(found.begin(), found.end());
    return found;
}

bool Vocabulary::extends(std::string_view tail) const {
    const int64_t node = trie_.find(tail);
    return node >= 0 && trie_.has_descendants(static_cast<uint32_t>(node));
}

}  // namespace sglite
