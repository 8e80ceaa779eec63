#include "lengths.h"

#include <algorithm>

#include "pool.h"

namespace sglite::text {
namespace {

// Edges walked for one graph.
constexpr size_t kMostWork = 20'000'000;

bool bit(const std::vector<uint64_t>& bits, size_t i) { return bits[i / 64] >> (i % 64) & 1; }

}  // namespace

// Which graphs hold the states that can follow.
std::set<uint32_t> Lengths::explore(Pool& pool, int32_t state) {
    Graph graph;
    std::set<uint32_t> found;
    std::vector<int32_t> states{state};
    std::unordered_map<int32_t, uint32_t> numbers{{state, 0}};
    std::vector<std::pair<uint32_t, bool>> edges;
    const auto most = static_cast<size_t>(pool.options_.most_states) / 5;
    for (size_t i = 0; i < states.size(); ++i) {
        if (pool.limited_ && states.size() > most) {
            throw Refused("to find how long the texts of a pattern may be takes too long");
        }
        graph.first.push_back(static_cast<uint32_t>(graph.next.size()));
        graph.accepting.push_back(pool.accepts(states[i]));
        edges.clear();
        for (int c = 1; c < pool.classes(states[i]).count; ++c) {
            const int32_t to = pool.edge(states[i], c);
            if (to < 0) continue;
            const auto [entry, fresh] =
                numbers.try_emplace(to, static_cast<uint32_t>(states.size()));
            if (fresh) states.push_back(to);
            edges.push_back({entry->second, pool.classes(states[i]).cost[kCharacters][c] != 0});
        }
        std::sort(edges.begin(), edges.end());
        edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
        for (const auto& [to, begins] : edges) {
            graph.next.push_back(to);
            graph.begins.push_back(begins);
        }
    }
    graph.first.push_back(static_cast<uint32_t>(graph.next.size()));
    memory_ += graph.next.size() * 5 + states.size() * 64;
    for (size_t i = 0; i < states.size(); ++i) {
        const auto graph_number = static_cast<uint32_t>(graphs_.size());
        const auto [place, fresh] =
            places_.try_emplace(states[i], graph_number, static_cast<uint32_t>(i));
        found.insert(place->second.first);
    }
    graphs_.push_back(std::move(graph));
    return found;
}

void Lengths::add_level(Graph& graph, bool limited) {
    const size_t count = graph.accepting.size();
    if (limited && graph.levels.size() * graph.next.size() > kMostWork) {
        throw Refused("to find how long the texts of a pattern may be takes too long");
    }
    std::vector<uint64_t> bits((count + 63) / 64);
    // First behind whole characters, then inside them: at most three bytes from there.
    for (int round = 0; round < 4; ++round) {
        for (size_t i = 0; i < count; ++i) {
            bool set = round == 0 && graph.levels.empty() && graph.accepting[i];
            for (size_t e = graph.first[i]; e < graph.first[i + 1] && !set; ++e) {
                if (graph.begins[e]) {
                    set = round == 0 && !graph.levels.empty() &&
                          bit(graph.levels.back(), graph.next[e]);
                } else {
                    set = round > 0 && bit(bits, graph.next[e]);
                }
            }
            if (set) bits[i / 64] |= uint64_t{1} << (i % 64);
        }
    }
    uint64_t hash = 0;
    for (const uint64_t word : bits) hash = mix(hash, word);
    for (auto [at, end] = graph.known.equal_range(hash); at != end; ++at) {
        if (graph.levels[at->second] != bits) continue;
        graph.period = static_cast<int64_t>(graph.levels.size() - at->second);
        return;
    }
    graph.known.emplace(hash, graph.levels.size());
    memory_ += 8 * bits.size() + 64;
    graph.levels.push_back(std::move(bits));
}

void Lengths::prepare(Pool& pool, int32_t state, int32_t high) {
    for (const uint32_t number : explore(pool, state)) {
        Graph& graph = graphs_[number];
        while (graph.period == 0 && graph.levels.size() <= static_cast<size_t>(high)) {
            add_level(graph, pool.limited_);
        }
    }
}

bool Lengths::any(Pool& pool, int32_t state, int32_t low, int32_t high) {
    if (!places_.contains(state)) explore(pool, state);
    const auto [which, number] = places_[state];
    Graph& graph = graphs_[which];
    for (int64_t length = low, tried = 0; length <= high; ++length, ++tried) {
        auto known = static_cast<int64_t>(graph.levels.size());
        while (graph.period == 0 && known <= length) {
            add_level(graph, pool.limited_);
            known = static_cast<int64_t>(graph.levels.size());
        }
        int64_t at = length;
        if (at >= known) {
            const int64_t start = known - graph.period;
            at = start + (at - start) % graph.period;
            if (tried > known) return false;
        }
        if (bit(graph.levels[static_cast<size_t>(at)], number)) return true;
    }
    return false;
}

size_t Lengths::memory() const { return memory_; }

}  // namespace sglite::text
