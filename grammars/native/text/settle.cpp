// Before texts are read, everything that could need a search later is found, or refused.
//
// Most states say at once whether texts can be finished. Those of conjunctions, negations and
// conditional patterns do not: all that can follow from them are made here, up to a limit, and
// then their costs are known. What is combined later (with words that are used up) stays about as
// small, so that afterwards no search has a limit.
#include <algorithm>
#include <queue>
#include <set>

#include "pool.h"

namespace sglite::text {
namespace {

constexpr size_t kMostParts = 4'000'000;  // of states that are made for one language
constexpr int64_t kMostCounts = 4'096;    // of one state of a pattern

}  // namespace

// Whether only words are left out.
bool Pool::is_cofinite(TextState state) const {
    return kind(state) == Kind::kNot && kind(part(state, 0)) == Kind::kWords;
}

bool Pool::is_open_ended(TextState state) const {
    if (states_[state].conditional) return true;
    if (kind(state) == Kind::kNot) return !is_cofinite(state);
    return kind(state) == Kind::kBoth &&
           std::ranges::count_if(parts(state), [&](int32_t p) { return !is_cofinite(p); }) > 1;
}

void Pool::settle(TextState state) {
    if (state < 0 || !settled_.insert(state).second) return;
    const auto all = parts(state);
    const std::vector<TextState> states(all.begin(), all.end());
    if (kind(state) == Kind::kBounded) {
        settle(states[0]);
        // Where the inside is known now, it is as good as one without conditions.
        states_[state].conditional = states_[states[0]].conditional;
        settle_lengths(states[0], states[1], states[2]);
    }
    if (kind(state) == Kind::kEither && states_[state].conditional) {
        bool conditional = false;
        for (const TextState one : states) {
            settle(one);
            conditional = conditional || states_[one].conditional;
        }
        states_[state].conditional = conditional;
    }
    if (is_open_ended(state)) return explore(state);
    if (kind(state) == Kind::kTree) return check_counts(*nfas_[states[0]]);
    if (kind(state) != Kind::kBoth && kind(state) != Kind::kEither) return;
    for (const TextState one : states) settle(one);
}

void Pool::trust(TextState state) {
    settled_.insert(state);
    if (state >= 0 && kind(state) == Kind::kBounded) trust(part(state, 0));
}

// Makes all states that follow, and finds their costs.
void Pool::explore(TextState start) {
    struct Edge {
        uint32_t from;
        uint8_t cost[2];
    };
    std::vector<TextState> states{start};
    std::unordered_map<TextState, uint32_t> numbers{{start, 0}};
    std::vector<std::pair<uint32_t, Edge>> edges;  // by their ends
    const size_t most_parts = parts_.size() + kMostParts;
    for (size_t i = 0; i < states.size(); ++i) {
        const TextState from = states[i];
        if (from != start && !is_open_ended(from)) {
            settle(from);
            continue;
        }
        const ByteClasses& table = classes(from);
        const int64_t count = table.count;
        if (count > edges_left_ || parts_.size() > most_parts) {
            throw Refused(
                "such a combination of patterns, formats or conditions has too many states to "
                "find beforehand whether texts can be finished; use fewer or simpler ones");
        }
        edges_left_ -= count;
        for (int c = 1; c < table.count; ++c) {
            const TextState to = raw(from, c);
            if (to < 0) continue;
            const auto [entry, fresh] =
                numbers.try_emplace(to, static_cast<uint32_t>(states.size()));
            if (fresh) states.push_back(to);
            edges.push_back(
                {entry->second,
                 {static_cast<uint32_t>(i), {table.cost[kWeight][c], table.cost[kCharacters][c]}}});
        }
    }
    std::ranges::sort(edges, {}, [](const auto& e) { return e.first; });
    for (const Measure measure : {kWeight, kCharacters}) {
        using Open = std::pair<int32_t, uint32_t>;
        std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
        std::vector<int32_t> costs(states.size(), kUnreachable);
        for (uint32_t i = 0; i < states.size(); ++i) {
            const TextState state = states[i];
            if (accepts(state)) {
                costs[i] = 0;
            } else if (i > 0 && !is_open_ended(state) && live(state)) {
                costs[i] = least(state, measure);
            }
            if (costs[i] < kUnreachable) open.push({costs[i], i});
        }
        while (!open.empty()) {
            const auto [cost, at] = open.top();
            open.pop();
            if (cost > costs[at]) continue;
            auto edge =
                std::ranges::lower_bound(edges, at, {}, [](const auto& e) { return e.first; });
            for (; edge != edges.end() && edge->first == at; ++edge) {
                const auto& [from, price] = edge->second;
                const int32_t through = std::min(add_cost(cost, price[measure]), kUnreachable - 1);
                if (through >= costs[from]) continue;
                costs[from] = through;
                open.push({through, from});
            }
        }
        for (size_t i = 0; i < states.size(); ++i) {
            State& state = states_[states[i]];
            state.live = costs[i] < kUnreachable ? 1 : -1;
            if (costs[i] < kUnreachable) state.least[measure] = costs[i];
        }
    }
    // All that is asked of them is known: they may be parts of others like any state.
    for (const TextState state : states) {
        states_[state].explored |= states_[state].conditional;
        states_[state].conditional = false;
        settled_.insert(state);
    }
}

// The least rest decides whether a state of so many characters is alive, or all lengths do.
void Pool::settle_lengths(TextState inside, int32_t need, int32_t room) {
    if (!live(inside) || least(inside, kCharacters) >= need) return;
    const int32_t spare = room == kEndless ? kUnreachable : room - need;
    if (depth(inside).closed <= std::min(spare, kUnreachable - 2) + 1) return;
    lengths_.prepare(*this, inside, room);
}

// A state of a pattern holds a place of a counted repetition once for every count that may be
// meant. One count is meant where all ways to it are equally long.
void Pool::check_counts(const Nfa& nfa) const {
    int64_t items = static_cast<int64_t>(nfa.nodes.size());
    for (const Nfa::Loop& loop : nfa.loops) {
        if (loop.high != kEndless && !loop.single) items += int64_t{loop.low} * loop.characters;
    }
    if (items - static_cast<int64_t>(nfa.nodes.size()) > kMostCounts) {
        throw Refused(
            "a counted repetition that may begin at many places of a text, and counts to more than "
            "it can keep for all of them; lower its least count, or anchor it");
    }
}

void Pool::settle_together(const std::vector<TextState>& start) {
    std::set<std::vector<TextState>> seen{start};
    std::vector<std::vector<TextState>> open{start};
    while (!open.empty()) {
        const std::vector<TextState> from = std::move(open.back());
        open.pop_back();
        int32_t common = plain_classes_;
        for (const TextState state : from) {
            if (state >= 0) common = tables_.common(common, states_[state].classes);
        }
        const ByteClasses& table = tables_[common];
        if (table.count > edges_left_) {
            throw Refused("so many patterns for the keys of one object have too many states");
        }
        edges_left_ -= table.count;
        for (int c = 1; c < table.count; ++c) {
            std::vector<TextState> to = from;
            for (TextState& state : to) state = next(state, table.lightest[c]);
            if (std::ranges::max(to) < 0 || !seen.insert(to).second) continue;
            open.push_back(std::move(to));
        }
    }
}

}  // namespace sglite::text
