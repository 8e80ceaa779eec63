#include "slices.h"

#include <algorithm>
#include <array>
#include <string>

#include "vocabulary.h"
#include "walk.h"

namespace sglite {
namespace {

// An automaton over the bytes of free text, small enough to write down. The number of a state
// stands for what must still come; kBorder is between two characters.
class FreeText {
  public:
    static constexpr uint8_t kDead = 0, kBorder = 1, kClosed = 2;

    explicit FreeText(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
        state();
        state();
        state();
        on(kBorder, 0x00, 0x7F, kBorder);
        const uint8_t one = state(), two = state(), three = state();
        on(one, 0x80, 0xBF, kBorder);
        on(two, 0x80, 0xBF, one);
        on(three, 0x80, 0xBF, two);
        on(kBorder, 0xC2, 0xDF, one);
        on(kBorder, 0xE0, 0xEF, two);
        on(kBorder, 0xF0, 0xF4, three);
        on(on_from(kBorder, 0xE0), 0xA0, 0xBF, one);
        on(on_from(kBorder, 0xED), 0x80, 0x9F, one);
        on(on_from(kBorder, 0xF0), 0x90, 0xBF, two);
        on(on_from(kBorder, 0xF4), 0x80, 0x8F, two);
    }

    // Goes on to the rules of JSON strings.
    void escape(bool any) {
        on(kBorder, 0x00, 0x1F, kDead);
        on(kBorder, '"', '"', kClosed);
        const uint8_t letter = on_from(kBorder, '\\');
        for (const char c : std::string_view(any ? "\"\\/bfnrt" : "\"\\bfnrt")) {
            on(letter, c, c, kBorder);
        }
        const uint8_t unit = on_from(letter, 'u');
        if (!any) {  // only control characters without a letter, in lower case
            const uint8_t high = on_from(on_from(unit, '0'), '0');
            const uint8_t zero = on_from(high, '0'), one = on_from(high, '1');
            on(zero, '0', '7', kBorder);
            for (const char c : {'b', 'e', 'f'}) on(zero, c, c, kBorder);
            on(one, '0', '9', kBorder);
            on(one, 'a', 'f', kBorder);
            return;
        }
        const uint8_t last = digits(kBorder), third = digits(last), second = digits(third);
        const auto digit = [&](uint8_t from, int low, int high, uint8_t to) {
            for (int value = low; value <= high; ++value) {
                on(from, "0123456789abcdef"[value], "0123456789abcdef"[value], to);
                on(from, "0123456789ABCDEF"[value], "0123456789ABCDEF"[value], to);
            }
        };
        digit(unit, 0, 15, second);
        const uint8_t surrogate = state(), low = state();
        digit(unit, 13, 13, surrogate);
        digit(surrogate, 0, 7, third);
        digit(low, 12, 15, third);
        const uint8_t back = state(), pair = state(), d = state();
        on(back, '\\', '\\', pair);
        on(pair, 'u', 'u', d);
        digit(d, 13, 13, low);
        digit(surrogate, 8, 11, digits(digits(back)));
    }

    // Drops what the bytes of the vocabulary cannot finish.
    void settle() {
        std::vector<bool> live(next_.size(), false);
        live[kBorder] = true;
        for (size_t pass = 0; pass < next_.size(); ++pass) {
            for (size_t from = 0; from < next_.size(); ++from) {
                for (int byte = 0; byte < 256 && !live[from]; ++byte) {
                    live[from] = !vocabulary_.is_unwritable(static_cast<uint8_t>(byte)) &&
                                 live[next_[from][byte]];
                }
            }
        }
        live[kClosed] = true;
        for (auto& row : next_) {
            for (uint8_t& to : row) to = live[to] ? to : kDead;
        }
    }

    uint8_t next(uint8_t state, uint8_t byte) const { return next_[state][byte]; }

  private:
    uint8_t state() {
        next_.emplace_back();
        return static_cast<uint8_t>(next_.size() - 1);
    }

    void on(uint8_t from, int low, int high, uint8_t to) {
        for (int byte = low; byte <= high; ++byte) next_[from][byte] = to;
    }

    uint8_t on_from(uint8_t from, uint8_t byte) {
        const uint8_t to = state();
        next_[from][byte] = to;
        return to;
    }

    // A state before one hexadecimal digit.
    uint8_t digits(uint8_t to) {
        const uint8_t from = state();
        on(from, '0', '9', to);
        on(from, 'a', 'f', to);
        on(from, 'A', 'F', to);
        return from;
    }

    const Vocabulary& vocabulary_;
    std::vector<std::array<uint8_t, 256>> next_;
};

struct Place {
    uint8_t state = FreeText::kBorder;
    uint16_t characters = 0;  // begun
    uint16_t length = 0;      // bytes before the closing quote
};

void add(Slice& slice, int32_t id, const Place& at) {
    slice.characters[id] = at.characters;
    if (at.state != FreeText::kBorder) slice.unfinished.push_back(id);
}

void find_levels(Slice& slice, size_t words) {
    std::vector<int32_t> ids;
    for (size_t id = 0; id < slice.characters.size(); ++id) {
        if (slice.characters[id] != Slice::kOutside) ids.push_back(static_cast<int32_t>(id));
    }
    std::ranges::stable_sort(ids, {}, [&](int32_t id) { return slice.characters[id]; });
    slice.inside.assign(words, 0);
    slice.counts = {0};
    slice.levels = {slice.inside};
    slice.sizes = {0};
    for (size_t i = 0; i < ids.size(); ++i) {
        slice.inside[ids[i] >> 5] |= 1u << (ids[i] & 31);
        const uint16_t count = slice.characters[ids[i]];
        if (i + 1 < ids.size() && slice.characters[ids[i + 1]] == count) continue;
        slice.counts.push_back(count);
        slice.levels.push_back(slice.inside);
        slice.sizes.push_back(static_cast<int32_t>(i + 1));
        slice.most = count;
    }
}

void append_utf8(uint32_t c, std::string& out) {
    const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (c < 0x80) return put(c);
    if (c < 0x800) {
        put(0xC0 | c >> 6);
    } else {
        if (c < 0x10000) {
            put(0xE0 | c >> 12);
        } else {
            put(0xF0 | c >> 18);
            put(0x80 | (c >> 12 & 63));
        }
        put(0x80 | (c >> 6 & 63));
    }
    put(0x80 | (c & 63));
}

// The content that `spelled`, known to be right, stands for.
std::string decode(std::string_view spelled) {
    const auto unit = [&](size_t at) {
        return static_cast<uint32_t>(std::stoul(std::string(spelled.substr(at, 4)), nullptr, 16));
    };
    std::string text;
    for (size_t i = 0; i < spelled.size(); ++i) {
        if (spelled[i] != '\\') {
            text.push_back(spelled[i]);
            continue;
        }
        const char letter = spelled[++i];
        if (letter != 'u') {
            constexpr std::string_view kLetters = "bfnrt", kMeant = "\b\f\n\r\t";
            const size_t known = kLetters.find(letter);
            text.push_back(known == kLetters.npos ? letter : kMeant[known]);
            continue;
        }
        uint32_t c = unit(i + 1);
        i += 4;
        if (c >= 0xD800 && c < 0xDC00) {
            c = 0x10000 + ((c - 0xD800) << 10) + (unit(i + 3) - 0xDC00);
            i += 6;
        }
        append_utf8(c, text);
    }
    return text;
}

// Numbers the distinct strings in ascending order; the trie knows each by its number.
Trie number(std::vector<std::string_view> strings, std::vector<std::string_view>& distinct) {
    std::ranges::sort(strings);
    const auto [from, to] = std::ranges::unique(strings);
    strings.erase(from, to);
    std::vector<std::pair<std::string_view, int32_t>> numbered;
    for (const std::string_view text : strings) {
        numbered.emplace_back(text, static_cast<int32_t>(numbered.size()));
    }
    distinct = std::move(strings);
    return Trie(numbered);
}

bool is_simple(std::string_view tail) {
    const size_t comma = tail.find(',');
    if (comma == tail.npos) return true;
    const size_t next = tail.find_first_not_of(" \t\r\n", comma + 1);
    if (next == tail.npos) return true;
    return next + 1 == tail.size() && std::string_view("\"[{").find(tail[next]) != tail.npos;
}

// Whether a tail of a key goes on to the end of another one.
bool holds_key(std::string_view tail) {
    const size_t colon = tail.find_first_not_of(" \t\r\n");
    if (colon == tail.npos || tail[colon] != ':') return false;
    const size_t comma = tail.find(',', colon);
    const size_t quote = comma == tail.npos ? tail.npos : tail.find('"', comma);
    return quote != tail.npos && tail.find('"', quote + 1) != tail.npos;
}

void find_holders(StringSlice& slice, const Vocabulary& vocabulary) {
    for (size_t id = 0; id < slice.characters.size(); ++id) {
        if (slice.characters[id] == Slice::kOutside) continue;
        const std::string& token = vocabulary.bytes(static_cast<int32_t>(id));
        if (token.find('\\') != token.npos) {
            slice.slashed.push_back(static_cast<int32_t>(id));
            continue;
        }
        for (const char c : token) {
            Holding& all = slice.holding[std::min<size_t>(static_cast<uint8_t>(c), 128)];
            if (!all.ids.empty() && all.ids.back() == static_cast<int32_t>(id)) continue;
            all.ids.push_back(static_cast<int32_t>(id));
        }
    }
    for (Holding& all : slice.holding) {
        all.count = static_cast<int32_t>(all.ids.size());
        if (all.ids.size() < slice.inside.size() / 2) continue;
        all.bits.assign(slice.inside.size(), 0);
        for (const int32_t id : all.ids) all.bits[id >> 5] |= 1u << (id & 31);
        all.ids = std::vector<int32_t>();
    }
}

struct Closer {
    std::string content;
    std::string_view tail;
    int32_t id;
};

void find_closings(StringSlice& slice, const std::vector<Closer>& closers) {
    std::vector<std::string_view> contents, tails;
    for (const Closer& closer : closers) {
        contents.push_back(closer.content);
        tails.push_back(closer.tail);
    }
    slice.contents = number(contents, contents);
    slice.tails = number(tails, tails);
    for (const std::string_view tail : tails) slice.simple.push_back(is_simple(tail));
    slice.keys_apart = std::ranges::none_of(tails, holds_key);
    struct Row {
        int32_t content, tail, id;
    };
    std::vector<Row> rows;
    for (const Closer& closer : closers) {
        const auto place = [](const std::vector<std::string_view>& in, std::string_view text) {
            return static_cast<int32_t>(std::ranges::lower_bound(in, text) - in.begin());
        };
        rows.push_back({place(contents, closer.content), place(tails, closer.tail), closer.id});
    }
    const auto starts = [](const auto& ordered, auto of, size_t count) {
        std::vector<uint32_t> first(count + 1, 0);
        for (const Row& row : ordered) ++first[of(row) + 1];
        for (size_t i = 0; i < count; ++i) first[i + 1] += first[i];
        return first;
    };
    const auto content_of = [](const Row& row) { return row.content; };
    const auto tail_of = [](const Row& row) { return row.tail; };
    std::ranges::stable_sort(rows, {}, tail_of);
    slice.first_id = starts(rows, tail_of, tails.size());
    for (const Row& row : rows) slice.by_tail.push_back(row.id);
    std::ranges::stable_sort(rows, {}, content_of);
    slice.first_closing = starts(rows, content_of, contents.size());
    for (const Row& row : rows) slice.by_content.push_back({row.tail, row.id});
}

// Calls `found(id, place)` for every token that free text can hold.
template <typename Found>
void walk_free(const Vocabulary& vocabulary, const FreeText& text, Found found) {
    const auto step = [&](Place& at, uint8_t byte) {
        if (at.state == FreeText::kClosed) return true;
        const uint8_t to = text.next(at.state, byte);
        const bool goes_on = to != FreeText::kClosed;
        at.characters += goes_on && at.state == FreeText::kBorder;
        at.length += goes_on;
        at.state = to;
        return to != FreeText::kDead;
    };
    const Trie& trie = vocabulary.trie();
    walk(trie, 0, Place{}, step, [&](uint32_t node, const Place& at) {
        for (const int32_t id : trie.at(node)) found(id, at);
        return true;
    });
}

}  // namespace

size_t Slice::level(int64_t count) const {
    const auto above = std::ranges::upper_bound(counts, count);
    return static_cast<size_t>(std::max<int64_t>(above - counts.begin() - 1, 0));
}

size_t Slice::memory() const {
    return (1 + levels.size()) * inside.size() * 4 + characters.size() * 2 + unfinished.size() * 4;
}

size_t StringSlice::memory() const {
    size_t held = slashed.size() * 4;
    for (const Holding& all : holding) held += (all.bits.size() + all.ids.capacity()) * 4;
    return held + Slice::memory() + contents.memory() + tails.memory() + by_content.size() * 8 +
           by_tail.size() * 4 + (first_closing.size() + first_id.size()) * 4;
}

Slice make_text_slice(const Vocabulary& vocabulary) {
    FreeText text(vocabulary);
    text.settle();
    Slice slice;
    slice.characters.assign(vocabulary.size(), Slice::kOutside);
    walk_free(vocabulary, text, [&](int32_t id, const Place& at) { add(slice, id, at); });
    find_levels(slice, vocabulary.mask_words());
    return slice;
}

StringSlice make_string_slice(const Vocabulary& vocabulary, bool any_spelling) {
    FreeText text(vocabulary);
    text.escape(any_spelling);
    text.settle();
    StringSlice slice;
    slice.characters.assign(vocabulary.size(), Slice::kOutside);
    std::vector<Closer> closers;
    walk_free(vocabulary, text, [&](int32_t id, const Place& at) {
        if (at.state != FreeText::kClosed &&
            vocabulary.bytes(id).find("\\u") != std::string::npos) {
            slice.escaped.push_back(id);
            return;
        }
        if (at.state != FreeText::kClosed) {
            add(slice, id, at);
            return;
        }
        const std::string_view token = vocabulary.bytes(id);
        closers.push_back({decode(token.substr(0, at.length)), token.substr(at.length + 1), id});
    });
    find_levels(slice, vocabulary.mask_words());
    find_holders(slice, vocabulary);
    slice.slashed.insert(slice.slashed.end(), slice.escaped.begin(), slice.escaped.end());
    find_closings(slice, closers);
    return slice;
}

}  // namespace sglite
