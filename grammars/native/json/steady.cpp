#include "steady.h"

#include <algorithm>

namespace sglite::json {
namespace {

constexpr size_t kMany = 20;  // characters; fewer are walked quickly

}  // namespace

// Where every character of ASCII leads, and those beyond.
const Steadies::Leads& Steadies::leads(BaseId from) {
    const auto [known, fresh] = leads_.try_emplace(from);
    if (!fresh) return known->second;
    Leads found;
    BaseId last = kDeadLex, clipped = kDeadLex;
    for (size_t c = 0; c < StringSlice::kBeyond; ++c) {
        const BaseId to = lexer_.next_content(from, static_cast<uint8_t>(c));
        if (to != last) clipped = to == kDeadLex ? kDeadLex : lexer_.clipped_base(to);
        last = to;
        found.to[c] = clipped;
    }
    found.to[StringSlice::kBeyond] = beyond(from);
    return leads_[from] = found;
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
    BaseId to = kMixed;
    for (const Leading& leading : kLeading) {
        BaseId last = kMixed;
        for (int byte = leading.low; byte <= leading.high; ++byte) {
            if (barred_[byte]) continue;
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
    BaseId last = kMixed;
    for (int byte = low; byte <= high; ++byte) {
        if (barred_[byte]) continue;
        BaseId then =
            from == kDeadLex ? kDeadLex : lexer_.next_content(from, static_cast<uint8_t>(byte));
        if (then == last) continue;
        last = then;
        if (more > 0 && then != kDeadLex) {
            if (!follow(then, 0x80, 0xBF, more - 1, to)) return false;
            continue;
        }
        if (then != kDeadLex) then = lexer_.clipped_base(then);
        if (to != kMixed && to != then) return false;
        to = then;
    }
    return true;
}

const Steady* Steadies::find(BaseId from) {
    const auto [known, fresh] = known_.try_emplace(from);
    Steady& found = known->second;
    if (fresh) {
        const Leads begin = leads(from);
        // The base that most lead to.
        BaseId steady = kDeadLex;
        std::ptrdiff_t most = 0;
        for (const BaseId to : begin.to) {
            if (to == kDeadLex || to == kMixed || to == steady) continue;
            const auto count = std::ranges::count(begin.to, to);
            if (count > most) steady = to, most = count;
        }
        if (static_cast<size_t>(most) >= kMany) {
            const Leads& then = leads(steady);
            for (size_t c = 0; c < found.first.size(); ++c) {
                found.first[c] = begin.to[c] == steady;
                found.dead[c] = begin.to[c] == kDeadLex;
                found.loop[c] = then.to[c] == steady;
                found.ends[c] = then.to[c] == kDeadLex;
            }
        }
    }
    return found.loop.count() >= kMany ? &found : nullptr;
}

}  // namespace sglite::json
