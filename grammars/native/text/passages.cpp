#include "passages.h"

#include <algorithm>
#include <span>

#include "../refused.h"
#include "charset.h"
#include "lengths.h"
#include "suffixes.h"
#include "utf8.h"

namespace sglite::text {
namespace {

bool holds(const Ranges& set, uint32_t c) {
    const auto after = std::ranges::upper_bound(set, c, {}, [](const auto& r) { return r.first; });
    return after != set.begin() && c <= std::prev(after)->second;
}

// Letters of scripts that are written without spaces between words: any cut is one between words.
constexpr std::pair<uint32_t, uint32_t> kUnspaced[] = {
    {0x0E00, 0x0EFF}, {0x1000, 0x109F}, {0x1780, 0x17FF},  {0x2E80, 0x9FFF},
    {0xF900, 0xFAFF}, {0xFF66, 0xFF9F}, {0x20000, 0x3FFFF}};

bool is_unspaced(uint32_t c) {
    return std::ranges::any_of(kUnspaced,
                               [&](const auto& r) { return r.first <= c && c <= r.second; });
}

enum class Sort : uint8_t { kSpace, kWord, kOther };

Sort sort_of(uint32_t c) {
    if (c < 0x80) {
        const bool space = c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
        const uint32_t letter = c | 0x20;
        const bool word = (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || c == '_';
        return space ? Sort::kSpace : word ? Sort::kWord : Sort::kOther;
    }
    static const Ranges kMarks = *property("M");
    if (holds(space_characters(), c)) return Sort::kSpace;
    if (is_unspaced(c)) return Sort::kOther;
    return holds(word_characters(), c) || holds(kMarks, c) ? Sort::kWord : Sort::kOther;
}

// Whether a passage of whole words can begin, or end, before character `i`.
bool begins_word(std::span<const Sort> sorts, size_t i) {
    const bool cuts = i > 0 && sorts[i] == Sort::kWord && sorts[i - 1] == Sort::kWord;
    return !cuts && sorts[i] != Sort::kSpace;
}
bool ends_word(std::span<const Sort> sorts, size_t i) {
    const bool cuts = i < sorts.size() && sorts[i] == Sort::kWord && sorts[i - 1] == Sort::kWord;
    return !cuts && sorts[i - 1] != Sort::kSpace;
}

}  // namespace

Passages::Passages(std::string_view document, bool whole_words, const std::bitset<256>& barred,
                   const std::array<uint8_t, 256>& weight)
    : document_(document), whole_words_(whole_words) {
    const size_t size = document.size();
    if (size > kMostBytes) {
        throw Refused("a document of " + std::to_string(size) + " bytes is above the limit of " +
                      std::to_string(kMostBytes) + "; quote from a part of it");
    }
    characters_ = static_cast<int32_t>(decoded(document).size());
    bool weighed = false;
    for (const char c : document) {
        const auto byte = static_cast<uint8_t>(c);
        bytes_.set(byte);
        weighed |= weight[byte] > 1;
    }
    walled_ = (bytes_ & barred).any();
    bytes_ &= ~barred;
    if (static_cast<size_t>(characters_) < size) {
        numbers_.reserve(size + 1);
        offsets_.reserve(characters_ + 1);
        for (size_t i = 0; i <= size; ++i) {
            numbers_.push_back(static_cast<int32_t>(offsets_.size()));
            if (is_border(static_cast<int32_t>(i))) offsets_.push_back(static_cast<int32_t>(i));
        }
    }
    if (weighed) {
        weights_.assign(size + 1, 0);
        for (size_t i = 0; i < size; ++i) {
            weights_[i + 1] = weights_[i] + weight[static_cast<uint8_t>(document[i])];
        }
    }
    if (walled_) {
        walls_.assign(size + 1, static_cast<int32_t>(size));
        for (size_t i = size; i-- > 0;) {
            const bool is_wall = barred[static_cast<uint8_t>(document[i])];
            walls_[i] = is_wall ? static_cast<int32_t>(i) : walls_[i + 1];
        }
    }
    std::vector<bool> begins(size, true);
    if (whole_words) find_words(begins);
    order_ = sorted_suffixes(document_);
    std::erase_if(order_, [&](int32_t at) { return !begins[at] || !is_border(at); });
}

void Passages::find_words(std::vector<bool>& begins) {
    const auto size = static_cast<int32_t>(document_.size());
    std::vector<Sort> sorts;
    for (const char32_t c : decoded(document_)) sorts.push_back(sort_of(c));
    ends_.assign(size + 1, -1);
    int32_t next = -1;
    for (int32_t i = characters_; i >= 0; --i) {
        const int32_t at = offset(i);
        if (i > 0 && ends_word(sorts, i)) next = at;
        if (next >= 0) farthest_ = std::max(farthest_, number(next) - i);
        ends_[at] = next;
        if (i < characters_) begins[at] = begins_word(sorts, i);
    }
}

int32_t Passages::not_below(int32_t low, int32_t high, int32_t depth, int byte) const {
    int32_t step = 1;
    while (low < high && byte_at(low, depth) < byte) {
        const int32_t next = std::min(high, low + step);
        if (next == high || byte_at(next, depth) >= byte) {
            const auto below = [&](int32_t i) { return byte_at(i, depth) < byte; };
            int32_t first = low + 1, count = next - first;
            while (count > 0) {
                const int32_t half = count / 2;
                if (below(first + half)) {
                    first += half + 1;
                    count -= half + 1;
                } else {
                    count = half;
                }
            }
            return first;
        }
        low = next;
        step *= 2;
    }
    return low;
}

Passages::At Passages::step(At at, uint8_t byte) const {
    constexpr At kNone{0, 0, 0};
    if (!bytes_[byte]) return kNone;
    if (at.high == kSingle) {
        const auto place = static_cast<size_t>(at.low);
        const bool goes = place < document_.size() && document_[place] == static_cast<char>(byte);
        return goes ? At{at.low + 1, kSingle, 0} : kNone;
    }
    const int32_t low = not_below(at.low, at.high, at.depth, byte);
    return settled({low, not_below(low, at.high, at.depth, byte + 1), at.depth + 1});
}

Passages::At Passages::settled(At at) const {
    if (at.high - at.low != 1 || at.high == kSingle) return at;
    return {order_[at.low] + at.depth, kSingle, 0};
}

// Whether `see(place)` holds for any of the places.
template <typename See>
bool Passages::any(At at, See see) const {
    if (at.high == kSingle) return see(at.low);
    for (int32_t i = at.low; i < at.high; ++i) {
        if (see(order_[i] + at.depth)) return true;
    }
    return false;
}

int32_t Passages::border_from(int32_t at) const {
    while (!is_border(at)) ++at;
    return at;
}

// Where the nearest passage ends that goes on from a place by a right number of characters, or -1.
int32_t Passages::end_from(int32_t at, Count count) const {
    const int32_t first = number(border_from(at));
    if (count.need > characters_ - first) return -1;
    int32_t end = offset(first + count.need);
    if (whole_words_) end = ends_[end];
    if (end < 0 || number(end) - first > count.room || (walled_ && end > walls_[at])) return -1;
    return end;
}

bool Passages::is_live(At at, Count count) const {
    return any(at, [&](int32_t place) { return end_from(place, count) >= 0; });
}

bool Passages::can_end(At at) const {
    return any(at, [&](int32_t place) {
        return is_border(place) && (!whole_words_ || ends_[place] == place);
    });
}

int32_t Passages::least(At at, Count count, bool characters) const {
    int32_t least = kUnreachable - 1;
    const bool is_same = !whole_words_ && !walled_ && count.need == 0;  // at all places
    any(at, [&](int32_t place) {
        const int32_t end = end_from(place, count);
        if (end < 0) return false;
        const int32_t rest =
            characters ? number(end) - number(border_from(place)) : weight(end) - weight(place);
        least = std::min(least, rest);
        return least == 0 || is_same;
    });
    return least;
}

size_t Passages::memory() const {
    return document_.capacity() +
           4 * (order_.capacity() + ends_.capacity() + walls_.capacity() + numbers_.capacity() +
                offsets_.capacity() + weights_.capacity());
}

Places places_of(std::string_view passage, std::string_view document, bool whole_words) {
    const std::u32string text = decoded(document), wanted = decoded(passage);
    Places found;
    if (wanted.empty()) return found;
    for (size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) {
        if (whole_words) {
            // The passage with its neighbours.
            const size_t begin = at - (at > 0);
            const size_t end = std::min(at + wanted.size() + 1, text.size());
            std::vector<Sort> sorts;
            for (size_t i = begin; i < end; ++i) sorts.push_back(sort_of(text[i]));
            const size_t first = at - begin;
            if (!begins_word(sorts, first) || !ends_word(sorts, first + wanted.size())) continue;
        }
        if (found.count++ == 0) found.first = static_cast<int64_t>(at);
    }
    return found;
}

}  // namespace sglite::text
