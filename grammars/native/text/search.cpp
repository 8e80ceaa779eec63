// Least rests: read off where a state tells, else searched, lightest first. The search also finds
// whether a state is live.
#include <algorithm>
#include <unordered_map>

#include "pool.h"

namespace sglite::text {
namespace {

// What a search may do for each state that it may meet: edges walked, states made on the way, and
// numbers kept for their parts.
constexpr int32_t kEdgesPerState = 32;
constexpr size_t kMadePerState = 2;
constexpr size_t kPartsPerState = 128;

int32_t saturate(int64_t cost) {
    return static_cast<int32_t>(std::min<int64_t>(cost, kUnreachable - 1));
}

}  // namespace

// The least rest of a live state, -1 where only a search can tell.
int32_t Pool::known_least(TextState state, Measure measure) {
    if (states_[state].least[measure] >= 0) return states_[state].least[measure];
    int64_t least = -1;
    switch (kind(state)) {
        case Kind::kLength:
            least = part(state, 0);
            if (measure == kWeight) {
                const int32_t node = part(state, 2);
                if (least > 0) least *= spelled_.lightest(kAnyCharacter);
                if (node != kAnyCharacter) least += spelled_.lightest(node);
            }
            break;
        case Kind::kWords:
            least = least_of_words(state, measure);
            break;
        case Kind::kTree: {
            const Nfa& nfa = *nfas_[part(state, 0)];
            if (nfa.conditional) return -1;
            least = over_items(state, measure == kWeight ? nfa.costs.weight : nfa.costs.characters,
                               measure);
            break;
        }
        case Kind::kTable:
            least = dfas_[part(state, 0)].least[measure][part(state, 1)];
            break;
        case Kind::kQuote: {
            const auto [passages, at, count] = quoted(state);
            least = passages->least(at, count, measure == kCharacters);
            break;
        }
        case Kind::kEither: {
            if (states_[state].conditional) return -1;
            least = kUnreachable;
            for (uint32_t i = 0; i < states_[state].size; ++i) {
                const int32_t one = this->least(part(state, static_cast<int>(i)), measure);
                least = std::min<int64_t>(least, one);
            }
            break;
        }
        case Kind::kBounded: {
            if (states_[state].conditional) return -1;
            // A weight is at least 1, so that light texts are short.
            const int32_t inside = this->least(part(state, 0), measure);
            const bool fits = measure == kWeight ? part(state, 1) == 0 && inside <= part(state, 2)
                                                 : inside >= part(state, 1);
            if (!fits) return -1;
            least = inside;
            break;
        }
        default:
            return -1;
    }
    return states_[state].least[measure] = saturate(least);
}

// States share parts, so what was found is kept.
int32_t Pool::lower_bound(TextState state, Measure measure) {
    if (states_[state].least[measure] >= 0) return states_[state].least[measure];
    if (states_[state].bound[measure] >= 0) return states_[state].bound[measure];
    const int32_t found = find_lower_bound(state, measure);
    return states_[state].bound[measure] = found;
}

int32_t Pool::find_lower_bound(TextState state, Measure measure) {
    int64_t bound = 0;
    switch (kind(state)) {
        case Kind::kEither:
            if (!states_[state].conditional) return known_least(state, measure);
            bound = kUnreachable - 1;
            for (uint32_t i = 0; i < states_[state].size; ++i) {
                bound = std::min<int64_t>(bound,
                                          lower_bound(part(state, static_cast<int>(i)), measure));
            }
            return static_cast<int32_t>(bound);
        case Kind::kBoth:
            for (uint32_t i = 0; i < states_[state].size; ++i) {
                bound = std::max<int64_t>(bound,
                                          lower_bound(part(state, static_cast<int>(i)), measure));
            }
            return static_cast<int32_t>(bound);
        case Kind::kBounded:
            bound = part(state, 1);
            if (measure == kWeight && bound > 0) bound *= spelled_.lightest(kAnyCharacter);
            return saturate(std::max<int64_t>(bound, lower_bound(part(state, 0), measure)));
        case Kind::kNot:
            return measure == kWeight || part(state, 1) == kAnyCharacter;  // it is not accepting
        case Kind::kTree:
            if (const Nfa& nfa = *nfas_[part(state, 0)]; nfa.conditional) {
                return std::min(
                    over_items(state, measure == kWeight ? nfa.costs.weight : nfa.costs.characters,
                               measure),
                    kUnreachable - 1);
            }
            [[fallthrough]];
        default:
            return known_least(state, measure);
    }
}

void Pool::search(TextState start, Measure measure) {
    struct Found {
        int32_t cost;
        TextState from;
    };
    struct Entry {
        int32_t bound, cost;
        TextState state;
        // Of equal bounds the one that has come further is better.
        bool operator<(const Entry& other) const {
            return bound != other.bound ? bound > other.bound : cost < other.cost;
        }
    };
    std::unordered_map<TextState, Found> found{{start, {0, kDeadText}}};
    std::vector<Entry> heap{{0, 0, start}};
    const size_t most_parts =
        parts_.size() + kPartsPerState * static_cast<size_t>(options_.most_states);
    const size_t most_made =
        states_.size() + kMadePerState * static_cast<size_t>(options_.most_states);
    int64_t left = int64_t{kEdgesPerState} * options_.most_states;
    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end());
        const auto [bound, cost, state] = heap.back();
        heap.pop_back();
        if (found[state].cost != cost) continue;
        const int32_t rest = states_[state].live > 0 ? known_least(state, measure) : -1;
        if (rest >= 0) {
            const int32_t total = add_cost(cost, rest);
            for (TextState at = found[state].from; at >= 0; at = found[at].from) {
                states_[at].least[measure] = std::min(total - found[at].cost, kUnreachable - 1);
                states_[at].live = 1;
            }
            return;
        }
        left -= classes(state).count;
        spend(classes(state).count);
        const bool too_many = parts_.size() > most_parts || states_.size() > most_made;
        if (limited_ && (left < 0 || too_many)) {
            throw Refused("to find whether texts can be finished takes too long");
        }
        for (int c = 1; c < classes(state).count; ++c) {
            const TextState to = raw(state, c);
            if (to < 0 || (by_lengths(to) && !live(to))) continue;
            const int32_t ahead = add_cost(cost, classes(state).cost[measure][c]);
            const auto [entry, fresh] = found.try_emplace(to, Found{ahead, state});
            if (!fresh) {
                if (entry->second.cost <= ahead) continue;
                entry->second = {ahead, state};
            }
            const int32_t known = states_[to].live > 0 ? known_least(to, measure) : -1;
            const int32_t least = known >= 0 ? known : lower_bound(to, measure);
            heap.push_back({add_cost(ahead, least), ahead, to});
            std::push_heap(heap.begin(), heap.end());
        }
    }
    for (const auto& [state, one] : found) states_[state].live = -1;
}

bool Pool::bounded_is_live(TextState state) {
    const TextState inside = part(state, 0);
    const int32_t need = part(state, 1), room = part(state, 2);
    if (!live(inside)) return false;
    const int32_t fewest = least(inside, kCharacters);
    if (fewest > room) return false;
    if (fewest >= need) return true;
    const int32_t closed = closed_from(inside);
    if (closed < kUnreachable && std::max(need, closed) <= room) return true;
    return lengths_.any(*this, inside, need, room);
}

}  // namespace sglite::text
