// Suffixes are sorted by induction (Nong, Zhang and Chan, 2009): those that begin at a "valley"
// are sorted first, by a text with a letter for each stretch between two valleys, and bring all
// others into their order.
#include "suffixes.h"

namespace sglite::text {
namespace {

using Numbers = std::vector<int32_t>;

class Sorter {
  public:
    // `text` ends with a 0, the only one; all others are below `letters`.
    Sorter(const Numbers& text, int32_t letters)
        : text_(text), falls_(text.size()), begins_(letters + 1), order_(text.size()) {
        for (size_t i = text.size() - 1; i-- > 0;) {
            falls_[i] = text[i] > text[i + 1] || (text[i] == text[i + 1] && falls_[i + 1]);
        }
        for (const int32_t letter : text) ++begins_[letter + 1];
        for (int32_t letter = 0; letter < letters; ++letter) begins_[letter + 1] += begins_[letter];
    }

    Numbers sorted() {
        Numbers valleys;
        for (size_t i = 1; i < text_.size(); ++i) {
            if (is_valley(i)) valleys.push_back(static_cast<int32_t>(i));
        }
        induce(valleys);  // sorts the stretches, though not what follows them
        Numbers names(text_.size(), -1);
        int32_t count = 0, before = -1;
        for (const int32_t at : order_) {
            if (!is_valley(at)) continue;
            if (before >= 0 && !same_stretch(before, at)) ++count;
            names[at] = count;
            before = at;
        }
        ++count;
        Numbers shorter;
        for (const int32_t at : valleys) shorter.push_back(names[at]);
        Numbers sorted_valleys(valleys.size());
        if (static_cast<size_t>(count) == valleys.size()) {
            for (size_t i = 0; i < valleys.size(); ++i) sorted_valleys[shorter[i]] = valleys[i];
        } else {
            const Numbers order = Sorter(shorter, count).sorted();
            for (size_t i = 0; i < order.size(); ++i) sorted_valleys[i] = valleys[order[i]];
        }
        induce(sorted_valleys);
        return std::move(order_);
    }

  private:
    bool is_valley(size_t i) const { return i > 0 && !falls_[i] && falls_[i - 1]; }

    bool same_stretch(size_t a, size_t b) const {
        for (size_t i = 0;; ++i) {
            const bool ends = i > 0 && is_valley(a + i);
            if (text_[a + i] != text_[b + i] || ends != (i > 0 && is_valley(b + i))) return false;
            if (ends) return true;
        }
    }

    // From valleys in some order, all suffixes in the order that follows from it.
    void induce(const Numbers& valleys) {
        std::fill(order_.begin(), order_.end(), -1);
        Numbers ends(begins_.begin() + 1, begins_.end());
        for (size_t i = valleys.size(); i-- > 0;) order_[--ends[text_[valleys[i]]]] = valleys[i];
        Numbers begins = begins_;
        for (size_t i = 0; i < order_.size(); ++i) {
            const int32_t at = order_[i] - 1;
            if (at >= 0 && falls_[at]) order_[begins[text_[at]]++] = at;
        }
        ends.assign(begins_.begin() + 1, begins_.end());
        for (size_t i = order_.size(); i-- > 0;) {
            const int32_t at = order_[i] - 1;
            if (at >= 0 && !falls_[at]) order_[--ends[text_[at]]] = at;
        }
    }

    const Numbers& text_;
    std::vector<bool> falls_;  // whether the suffix is greater than the next one
    Numbers begins_;           // per letter: where its suffixes begin in the order
    Numbers order_;
};

}  // namespace

std::vector<int32_t> sorted_suffixes(std::string_view text) {
    if (text.empty()) return {};
    Numbers letters;
    letters.reserve(text.size() + 1);
    for (const char c : text) letters.push_back(static_cast<uint8_t>(c) + 1);
    letters.push_back(0);
    Numbers order = Sorter(letters, 257).sorted();
    order.erase(order.begin());  // the end of the text
    return order;
}

}  // namespace sglite::text
