// Questions about all texts of a state.
#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "pool.h"

namespace sglite::text {
namespace {

// So many states are looked at for a circle.
constexpr size_t kFewStates = 512;
// What counting the ways on from one state costs, in units of `spend`.
constexpr int64_t kCounted = 8;

}  // namespace

// Whether some of the states that follow soon follow from themselves: there are endlessly many
// texts then. A state that is not behind any other is taken away until none is left.
bool Pool::goes_round(TextState start) {
    std::vector<TextState> states{start};
    std::unordered_map<TextState, int32_t> before{{start, 0}};
    for (size_t i = 0; i < states.size() && i < kFewStates; ++i) {
        for (int c = 1; c < classes(states[i]).count; ++c) {
            const TextState to = edge(states[i], c);
            if (to < 0) continue;
            if (before.try_emplace(to, 0).second) states.push_back(to);
            ++before[to];
        }
    }
    states.resize(std::min(states.size(), kFewStates));
    const std::unordered_set<TextState> near(states.begin(), states.end());
    size_t taken = 0;
    std::vector<TextState> open;
    if (before[start] == 0) open.push_back(start);
    while (!open.empty()) {
        const TextState state = open.back();
        open.pop_back();
        ++taken;
        for (int c = 1; c < classes(state).count; ++c) {
            const TextState to = edge(state, c);
            if (to >= 0 && --before[to] == 0 && near.contains(to)) open.push_back(to);
        }
    }
    return taken < near.size();
}

int64_t Pool::count(TextState start, int64_t limit) {
    if (!live(start) || limit <= 0) return 0;
    if (kind(start) == Kind::kWords) {
        return std::min<int64_t>(limit, part(start, 2) - part(start, 1));
    }
    // Beginnings of texts by their length; each of them belongs to a text at least.
    std::unordered_map<TextState, int64_t> level{{start, 1}}, following;
    std::unordered_set<TextState> seen{start};
    int64_t total = 0;
    bool few = true;
    for (int64_t length = 0; !level.empty(); ++length) {
        int64_t open = 0;
        following.clear();
        for (const auto& [state, ways] : level) {
            if (accepts(state)) total = std::min(limit, total + ways);
            spend(kCounted);
            const ByteClasses& table = classes(state);
            std::array<int32_t, 256> bytes{};
            for (const uint8_t c : table.of) ++bytes[c];
            for (int c = 1; c < table.count; ++c) {
                const TextState to = edge(state, c);
                if (to < 0) continue;
                const int64_t more = std::min(limit, ways * bytes[c]);
                int64_t& there = following[to];
                there = std::min(limit, there + more);
                open = std::min(limit, open + more);
                seen.insert(to);
            }
        }
        // A text longer than there are states goes round in circles, without end.
        if (total + open >= limit || length > static_cast<int64_t>(seen.size())) return limit;
        if (few && seen.size() > kFewStates) {
            few = false;
            if (goes_round(start)) return limit;
        }
        if (seen.size() > 40 * static_cast<size_t>(options_.most_states)) {
            throw Refused("to count the texts of a pattern takes too long");
        }
        level.swap(following);
    }
    return total;
}

std::vector<std::string> Pool::examples(TextState start, size_t limit) {
    struct Open {
        int32_t length;  // of the whole text
        bool whole;
        std::string text;
        TextState state;
        bool operator<(const Open& other) const {
            return std::tie(length, other.whole, text) > std::tie(other.length, whole, other.text);
        }
    };
    std::vector<std::string> texts;
    if (!live(start)) return texts;
    std::vector<Open> heap{{least(start, kWeight), false, "", start}};
    while (!heap.empty() && texts.size() < limit) {
        std::pop_heap(heap.begin(), heap.end());
        const Open one = std::move(heap.back());
        heap.pop_back();
        if (one.whole) {
            texts.push_back(one.text);
            continue;
        }
        const int32_t weight = one.length - least(one.state, kWeight);
        if (accepts(one.state)) {
            heap.push_back({weight, true, one.text, one.state});
            std::push_heap(heap.begin(), heap.end());
        }
        spend(256 + 16 * static_cast<int64_t>(one.text.size()));
        for (int byte = 0; byte < 256; ++byte) {
            const TextState to = next(one.state, static_cast<uint8_t>(byte));
            if (to < 0) continue;
            const int32_t length = weight + options_.weight[byte] + least(to, kWeight);
            heap.push_back({length, false, one.text + static_cast<char>(byte), to});
            std::push_heap(heap.begin(), heap.end());
        }
        if (heap.size() > size_t{1} << 20) break;
    }
    return texts;
}

std::bitset<256> Pool::bytes(TextState start) {
    std::bitset<256> found, all;
    if (!live(start)) return found;
    for (int byte = 0; byte < 256; ++byte) all[byte] = classes(start).of[byte] != 0;
    if (kind(start) == Kind::kBounded) all = bytes(part(start, 0));
    if (kind(start) == Kind::kQuote) return quoted(start).passages->bytes();
    std::vector<TextState> open{start};
    std::unordered_set<TextState> seen{start};
    for (size_t i = 0; i < open.size() && found != all; ++i) {
        const TextState state = open[i];
        std::array<bool, 256> goes{};
        for (int c = 1; c < classes(state).count; ++c) {
            const TextState to = edge(state, c);
            goes[c] = to >= 0;
            if (to >= 0 && seen.insert(to).second) open.push_back(to);
        }
        for (int byte = 0; byte < 256; ++byte) {
            if (goes[classes(state).of[byte]]) found.set(byte);
        }
        if (open.size() > static_cast<size_t>(options_.most_states)) {
            throw Refused("to find the characters of a pattern takes too long");
        }
    }
    return found;
}

bool Pool::allows(TextState state, int32_t node) {
    for (int byte = 0; byte < 0xF5; ++byte) {
        const auto b = static_cast<uint8_t>(byte);
        if (next(state, b) < 0) continue;
        const int32_t rest = spelled_.step(node, b);
        if (rest == kCharacterDone || (rest > 0 && allows(next(state, b), rest))) return true;
    }
    return false;
}

}  // namespace sglite::text
