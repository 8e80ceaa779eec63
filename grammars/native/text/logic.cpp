// Boolean combinations of states, simplified as they are made.
#include <algorithm>

#include "pool.h"

namespace sglite::text {
namespace {

bool begins_character(uint8_t byte) { return (byte & 0xC0) != 0x80; }

void sort_unique(std::vector<TextState>& states) {
    std::sort(states.begin(), states.end());
    states.erase(std::unique(states.begin(), states.end()), states.end());
}

}  // namespace

TextState Pool::both(std::vector<TextState> open) {
    spend(static_cast<int64_t>(open.size()));
    std::vector<TextState> states;
    int32_t need = 0, room = kEndless, node = kAnyCharacter;
    const auto narrow = [&](int32_t low, int32_t high) {
        need = std::max(need, low);
        room = std::min(room, high);
    };
    while (!open.empty()) {
        const TextState state = open.back();
        open.pop_back();
        if (state < 0) return kDeadText;
        switch (kind(state)) {
            case Kind::kLength:
                narrow(part(state, 0), part(state, 1));
                node = part(state, 2);
                break;
            case Kind::kBounded:
                narrow(part(state, 1), part(state, 2));
                open.push_back(part(state, 0));
                break;
            case Kind::kBoth:
                for (const TextState one : parts(state)) open.push_back(one);
                break;
            default:
                states.push_back(state);
        }
    }
    if (states.empty()) return length(need, room, node);
    sort_unique(states);
    if (states.size() == 1) return bounded(states[0], need, room);
    bool accepting = true;
    int32_t classes = plain_classes_;
    for (const TextState state : states) {
        accepting &= accepts(state);
        classes = tables_.common(classes, states_[state].classes);
        if (kind(state) == Kind::kNot &&
            std::binary_search(states.begin(), states.end(), part(state, 0))) {
            return kDeadText;
        }
    }
    return bounded(intern(Kind::kBoth, states, accepting, false, classes), need, room);
}

TextState Pool::bounded(TextState state, int32_t need, int32_t room) {
    if (state < 0 || need > room) return kDeadText;
    if (need == 0 && room == kEndless) return state;
    if (kind(state) == Kind::kLength) {
        return length(std::max(need, part(state, 0)), std::min(room, part(state, 1)),
                      part(state, 2));
    }
    if (kind(state) == Kind::kQuote) {
        const auto [passages, at, count] = quoted(state);
        return quote(part(state, 0), at, {std::max(need, count.need), std::min(room, count.room)});
    }
    if (kind(state) == Kind::kBounded) {
        return bounded(part(state, 0), std::max(need, part(state, 1)),
                       std::min(room, part(state, 2)));
    }
    const int32_t parts[] = {state, need, room};
    return intern(Kind::kBounded, parts, need == 0 && accepts(state), false,
                  states_[state].classes);
}

TextState Pool::either(std::vector<TextState> open) {
    spend(static_cast<int64_t>(open.size()));
    std::vector<TextState> states;
    std::vector<std::pair<int32_t, int32_t>> lengths;
    int32_t node = kAnyCharacter;
    while (!open.empty()) {
        const TextState state = open.back();
        open.pop_back();
        if (state < 0) continue;
        if (states_[state].conditional ? states_[state].live < 0 : !live(state)) continue;
        if (kind(state) == Kind::kEither) {
            for (const TextState one : parts(state)) open.push_back(one);
        } else if (kind(state) == Kind::kLength) {
            lengths.push_back({part(state, 0), part(state, 1)});
            node = part(state, 2);
        } else {
            states.push_back(state);
        }
    }
    std::sort(lengths.begin(), lengths.end());
    for (size_t i = 0; i < lengths.size();) {
        auto [low, high] = lengths[i];
        for (++i; i < lengths.size() && (high == kEndless || lengths[i].first <= high + 1); ++i) {
            high = std::max(high, lengths[i].second);
        }
        states.push_back(length(low, high, node));
        if (low == 0 && high == kEndless) return states.back();
    }
    if (states.empty()) return kDeadText;
    sort_unique(states);
    if (states.size() == 1) return states[0];
    bool accepting = false, is_live = false;
    int32_t classes = plain_classes_;
    for (const TextState state : states) {
        accepting |= accepts(state);
        is_live |= states_[state].live > 0;
        classes = tables_.common(classes, states_[state].classes);
        if (kind(state) == Kind::kNot &&
            std::binary_search(states.begin(), states.end(), part(state, 0))) {
            return length(0, kEndless, part(state, 1));
        }
    }
    return intern(Kind::kEither, states, accepting, is_live, classes);
}

TextState Pool::complement(TextState state, int32_t node) {
    if (state < 0) return length(0, kEndless, node);
    const auto outside = [&](int32_t need, int32_t room) {
        std::vector<TextState> states;
        if (need > 0) states.push_back(length(0, need - 1, node));
        if (room < kEndless) states.push_back(length(room + 1, kEndless, node));
        return states;
    };
    const auto all = parts(state);
    std::vector<TextState> states(all.begin(), all.end());
    switch (kind(state)) {
        case Kind::kLength:
            return either(outside(states[0], states[1]));
        case Kind::kBounded: {
            std::vector<TextState> others = outside(states[1], states[2]);
            others.push_back(complement(states[0], node));
            return either(std::move(others));
        }
        case Kind::kBoth:
            for (TextState& one : states) one = complement(one, node);
            return either(std::move(states));
        case Kind::kEither:
            for (TextState& one : states) one = complement(one, node);
            return both(std::move(states));
        case Kind::kNot:
            return states[0];
        default:
            break;
    }
    const int32_t pair[] = {state, node};
    const bool accepting = node == kAnyCharacter && !accepts(state);
    const bool is_live =
        kind(state) == Kind::kWords && spelled_.lightest(kAnyCharacter) < kUnreachable;
    return intern(Kind::kNot, pair, accepting, is_live, states_[state].classes);
}

TextState Pool::step_logic(TextState state, uint8_t byte) {
    const auto all = parts(state);
    std::vector<TextState> states(all.begin(), all.end());
    if (kind(state) == Kind::kBounded) {
        if (begins_character(byte)) {
            if (states[2] == 0) return kDeadText;
            states[1] = std::max(states[1] - 1, 0);
            states[2] -= states[2] != kEndless;
        }
        return bounded(member(states[0], byte), states[1], states[2]);
    }
    if (kind(state) == Kind::kNot) {
        const int32_t node = spelled_.step(states[1], byte);
        if (node < 0) return kDeadText;
        return complement(member(states[0], byte), node == kCharacterDone ? kAnyCharacter : node);
    }
    const bool all_of = kind(state) == Kind::kBoth;
    for (TextState& one : states) {
        one = member(one, byte);
        if (all_of && one < 0) return kDeadText;
    }
    return all_of ? both(std::move(states)) : either(std::move(states));
}

}  // namespace sglite::text
