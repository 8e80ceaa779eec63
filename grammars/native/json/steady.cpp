#include "steady.h"

#include <algorithm>
#include <string_view>

namespace sglite::json {
namespace {

constexpr size_t kMany = 20;       // characters; fewer are walked quickly
constexpr int kMostSteps = 24;     // few tokens have more characters of a kind
constexpr size_t kMostPlaces = 8;  // behind as many characters

}  // namespace

// Whether enough letters can follow: most strings that ask for less are short lists of words.
bool Steadies::is_worth_a_look(BaseId from) {
    if (lexer_.is_key(from) && lexer_.key(from).extra == text::kDeadText) return false;
    for (const std::string_view letters : {"etaoins", "ETAOINS"}) {
        const bool all = std::ranges::all_of(letters, [&](char c) {
            return lexer_.next_content(from, static_cast<uint8_t>(c)) != kDeadLex;
        });
        if (all) return true;
    }
    return false;
}

const Steadies::Leads& Steadies::leads(BaseId from) {
    const auto [known, fresh] = leads_.try_emplace(from);
    if (!fresh) return *known->second;
    auto found = std::make_unique<Leads>();
    const uint8_t* const classes = lexer_.classes(from);
    std::array<int16_t, 256> seen;  // a character of each class
    seen.fill(-1);
    for (size_t c = 0; c < StringSlice::kBeyond; ++c) {
        int16_t none = -1;
        int16_t& same = classes == nullptr ? none : seen[classes[c]];
        if (same >= 0) {
            found->to[c] = found->to[same];
            found->alike[c] = found->alike[same];
            continue;
        }
        same = static_cast<int16_t>(c);
        const BaseId to = lexer_.next_content(from, static_cast<uint8_t>(c));
        found->to[c] = to;
        found->alike[c] = to == kDeadLex ? kDeadLex : lexer_.clipped_base(to);
    }
    const BaseId to = beyond(from);
    found->to[StringSlice::kBeyond] = to;
    found->alike[StringSlice::kBeyond] = to < 0 ? to : lexer_.clipped_base(to);
    return *(leads_[from] = std::move(found));
}

// The base that all characters beyond ASCII lead to, kDeadLex or kMixed.
BaseId Steadies::beyond(BaseId from) {
    struct Leading {
        int low, high;     // first bytes
        int second, last;  // bytes behind them
        int more;          // bytes behind those
    };
    constexpr Leading kLeading[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 0}, {0xE0, 0xE0, 0xA0, 0xBF, 1}, {0xE1, 0xEC, 0x80, 0xBF, 1},
        {0xED, 0xED, 0x80, 0x9F, 1}, {0xEE, 0xEF, 0x80, 0xBF, 1}, {0xF0, 0xF0, 0x90, 0xBF, 2},
        {0xF1, 0xF3, 0x80, 0xBF, 2}, {0xF4, 0xF4, 0x80, 0x8F, 2},
    };
    const uint8_t* const classes = lexer_.classes(from);
    BaseId to = kMixed;
    for (const Leading& leading : kLeading) {
        BaseId last = kMixed;
        int same = -1;
        for (int byte = leading.low; byte <= leading.high; ++byte) {
            if (barred_[byte] || (classes != nullptr && classes[byte] == same)) continue;
            if (classes != nullptr) same = classes[byte];
            const BaseId then = lexer_.next_content(from, static_cast<uint8_t>(byte));
            if (then == last) continue;
            last = then;
            if (!follow(then, leading.second, leading.last, leading.more, to)) return kMixed;
        }
    }
    return to == kMixed ? kDeadLex : to;
}

// Whether all characters that go on by a byte of [low, high] and `more` others lead to `to`, or
// to the same, which it is set to.
bool Steadies::follow(BaseId from, int low, int high, int more, BaseId& to) {
    const uint8_t* const classes = from == kDeadLex ? nullptr : lexer_.classes(from);
    BaseId last = kMixed;
    int same = -1;
    for (int byte = low; byte <= high; ++byte) {
        if (barred_[byte] || (classes != nullptr && classes[byte] == same)) continue;
        if (classes != nullptr) same = classes[byte];
        BaseId then =
            from == kDeadLex ? kDeadLex : lexer_.next_content(from, static_cast<uint8_t>(byte));
        if (then == last) continue;
        last = then;
        if (more > 0 && then != kDeadLex) {
            if (!follow(then, 0x80, 0xBF, more - 1, to)) return false;
            continue;
        }
        if (to != kMixed && to != then) return false;
        to = then;
    }
    return true;
}

const Steady* Steadies::find(BaseId from) {
    const auto [known, fresh] = known_.try_emplace(from);
    Steady& found = known->second;
    if (fresh && is_worth_a_look(from)) explore(from, found);
    return found.loop.count() >= kMany ? &found : nullptr;
}

CharacterSet Steadies::followers(BaseId from) {
    const Leads& all = leads(from);
    CharacterSet found;
    for (size_t c = 0; c < found.size(); ++c) found[c] = all.to[c] >= 0;
    return found;
}

// Whether half of the most frequent of these characters can follow.
bool Steadies::goes_on(BaseId from, const CharacterSet& characters) {
    int asked = 0, live = 0;
    for (const char c : std::string_view("etaoinsETAOINS0123")) {
        if (!characters[static_cast<size_t>(c)]) continue;
        ++asked;
        live += lexer_.next_content(from, static_cast<uint8_t>(c)) != kDeadLex;
    }
    return 2 * live >= asked;
}

void Steadies::explore(BaseId from, Steady& found) {
    const Leads& begin = leads(from);
    // The place that most first characters lead to.
    size_t example = 0;
    std::ptrdiff_t most = 0;
    for (size_t c = 0; c < begin.alike.size(); ++c) {
        const BaseId to = begin.alike[c];
        if (to < 0 || (most > 0 && to == begin.alike[example])) continue;
        const auto count = std::ranges::count(begin.alike, to);
        if (count > most) example = c, most = count;
    }
    if (static_cast<size_t>(most) < kMany) return;
    for (size_t c = 0; c < begin.alike.size(); ++c) {
        found.first[c] = begin.alike[c] == begin.alike[example];
    }
    found.loop.set();
    found.ends.set();
    std::vector<BaseId> met{begin.alike[example]}, layer{begin.to[example]}, next;
    while (!layer.empty() && found.most < kMostSteps && layer.size() <= kMostPlaces) {
        CharacterSet all = found.loop, any;
        for (const BaseId at : layer) {
            const CharacterSet live = followers(at);
            all &= live;
            any |= live;
            for (size_t c = 0; c < all.size(); ++c) {
                if (leads(at).to[c] != kDeadLex) found.ends.reset(c);
            }
        }
        found.hard = found.most > 0 && (any & found.loop).none();
        // Where too few can follow, texts that are longer are left to others.
        if (found.hard || all.count() < kMany) break;
        found.loop = all;
        next.clear();
        for (const BaseId at : layer) {
            const Leads& then = leads(at);
            for (size_t c = 0; c < all.size(); ++c) {
                if (!found.loop[c] || std::ranges::find(met, then.alike[c]) != met.end()) continue;
                CharacterSet ways;
                for (size_t d = c; d < all.size(); ++d) ways[d] = then.alike[d] == then.alike[c];
                // Few characters behind which most others cannot follow are strangers themselves.
                if (2 * ways.count() < found.loop.count() && !goes_on(then.to[c], found.loop)) {
                    found.loop &= ~ways;
                    continue;
                }
                met.push_back(then.alike[c]);
                next.push_back(then.to[c]);
            }
        }
        layer.swap(next);
        ++found.most;
    }
    if (layer.empty()) found.most = INT32_MAX;
    if (found.most == 0) found.loop.reset();
}

}  // namespace sglite::json
