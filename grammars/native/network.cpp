#include "network.h"

#include <algorithm>
#include <bitset>
#include <numeric>
#include <utility>

#include "left_recursion.h"
#include "writable.h"

namespace sglite {
namespace {

// Points every edge past nodes that do nothing but go on to one other node.
void skip_links(Network& network) {
    const auto last = [&](int32_t at) {
        for (int steps = 0; at >= 0 && steps < 1000; ++steps) {
            const Node& node = network.nodes[at];
            const bool link =
                node.empty.size() == 1 && node.bytes.empty() && node.calls.empty() && !node.is_exit;
            if (!link || node.empty[0] == at) break;
            at = node.empty[0];
        }
        return at;
    };
    for (Node& node : network.nodes) {
        for (ByteEdge& edge : node.bytes) edge.to = last(edge.to);
        for (int32_t& to : node.empty) to = last(to);
        for (Call& call : node.calls) call.then = last(call.then);
    }
    for (Rule& rule : network.rules) rule.start = last(rule.start);
}

// Takes the bytes that no token holds out of all edges, and returns one that was used, or -1.
int drop_unwritable(Network& network, const Vocabulary& vocabulary) {
    const std::bitset<256> barred = barred_bytes(vocabulary);
    if (barred.none()) return -1;
    int used = -1;
    for (Node& node : network.nodes) {
        std::vector<ByteEdge> kept;
        kept.reserve(node.bytes.size());
        for (const ByteEdge& edge : node.bytes) {
            int from = edge.bytes.low;
            for (int value = from; value <= edge.bytes.high + 1; ++value) {
                if (value <= edge.bytes.high && !barred[value]) continue;
                if (from < value) {
                    kept.push_back(
                        {{static_cast<uint8_t>(from), static_cast<uint8_t>(value - 1)}, edge.to});
                }
                if (value <= edge.bytes.high) used = value;
                from = value + 1;
            }
        }
        node.bytes = std::move(kept);
    }
    return used;
}

// For nodes inside literal text: the nodes of the same rule that one token of several bytes
// reaches. It is enough to find some of them: costs stay consistent bounds.
class Hops {
  public:
    Hops(const Network& network, const Trie& trie) : network_(network), trie_(trie) {}

    std::vector<int32_t> from(int32_t node) {
        found_.clear();
        seen_.clear();
        visit(node, 0);
        std::sort(found_.begin(), found_.end());
        found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
        return std::move(found_);
    }

  private:
    static constexpr size_t kMaxVisits = 256;

    void visit(int32_t at, uint32_t spelled) {
        const std::pair<int32_t, uint32_t> here{at, spelled};
        if (seen_.size() >= kMaxVisits || std::ranges::find(seen_, here) != seen_.end()) return;
        seen_.push_back(here);
        const Node& node = network_.nodes[at];
        for (const ByteEdge& edge : node.bytes) {
            if (edge.bytes.low != edge.bytes.high) continue;
            const uint32_t child = trie_.child(spelled, edge.bytes.low);
            if (child == 0) continue;
            if (trie_.nodes()[child].depth > 1 && trie_.nodes()[child].strings != 0)
                found_.push_back(edge.to);
            if (trie_.has_descendants(child)) visit(edge.to, child);
        }
        for (const int32_t to : node.empty) visit(to, spelled);
    }

    const Network& network_;
    const Trie& trie_;
    std::vector<std::pair<int32_t, uint32_t>> seen_;  // few
    std::vector<int32_t> found_;
};

int32_t cost_of(const Network& network, int32_t at, const std::vector<int32_t>& hops) {
    const auto cost = [&](int32_t node) { return network.nodes[node].cost; };
    const auto rule_cost = [&](int32_t rule) { return cost(network.rules[rule].start); };
    const Node& node = network.nodes[at];
    if (node.machine >= 0) return network.machines[node.machine].cost;
    int32_t best = node.is_exit ? 0 : kUnreachable;
    for (const int32_t to : node.empty) best = std::min(best, cost(to));
    for (const ByteEdge& edge : node.bytes) best = std::min(best, add_cost(1, cost(edge.to)));
    for (const int32_t to : hops) best = std::min(best, add_cost(1, cost(to)));
    for (const Call& call : node.calls) {
        best = std::min(best, add_cost(rule_cost(call.rule), cost(call.then)));
    }
    return best;
}

// For each node, the nodes whose cost is computed from its own; an array of lists in one piece.
class Dependents {
  public:
    Dependents(const Network& network, const std::vector<std::vector<int32_t>>& hops)
        : first_(network.nodes.size() + 2, 0) {
        const auto each = [&](auto visit) {
            for (size_t at = 0; at < network.nodes.size(); ++at) {
                const auto user = static_cast<int32_t>(at);
                const Node& node = network.nodes[at];
                for (const ByteEdge& edge : node.bytes) visit(edge.to, user);
                for (const int32_t to : node.empty) visit(to, user);
                for (const int32_t to : hops[at]) visit(to, user);
                for (const Call& call : node.calls) {
                    visit(network.rules[call.rule].start, user);
                    visit(call.then, user);
                }
            }
        };
        each([&](int32_t of, int32_t) { ++first_[of + 2]; });
        std::partial_sum(first_.begin(), first_.end(), first_.begin());
        users_.resize(first_.back());
        each([&](int32_t of, int32_t user) { users_[first_[of + 1]++] = user; });
    }

    std::span<const int32_t> of(int32_t node) const {
        return {users_.begin() + first_[node], users_.begin() + first_[node + 1]};
    }

  private:
    std::vector<size_t> first_;
    std::vector<int32_t> users_;
};

// The least solution: costs only ever fall, each fall wakes those that are computed from it.
void compute_costs(Network& network, const Trie& trie) {
    const auto count = static_cast<int32_t>(network.nodes.size());
    std::vector<std::vector<int32_t>> hops(count);
    Hops finder(network, trie);
    for (int32_t at = 0; at < count; ++at) {
        const auto& bytes = network.nodes[at].bytes;
        const bool literal = std::any_of(bytes.begin(), bytes.end(), [](const ByteEdge& e) {
            return e.bytes.low == e.bytes.high;
        });
        if (literal) hops[at] = finder.from(at);
    }
    const Dependents dependents(network, hops);
    std::vector<int32_t> todo;
    std::vector<bool> waiting(count, false);
    for (int32_t at = 0; at < count; ++at) {
        if (network.nodes[at].is_exit || network.nodes[at].machine >= 0) todo.push_back(at);
    }
    while (!todo.empty()) {
        std::vector<int32_t> round = std::exchange(todo, {});
        for (const int32_t at : round) {
            waiting[at] = false;
            const int32_t cost = cost_of(network, at, hops[at]);
            if (cost >= network.nodes[at].cost) continue;
            network.nodes[at].cost = cost;
            for (const int32_t user : dependents.of(at)) {
                if (waiting[user]) continue;
                waiting[user] = true;
                todo.push_back(user);
            }
        }
    }
}

void drop_dead(Network& network) {
    const auto dead = [&](int32_t node) { return network.nodes[node].cost >= kUnreachable; };
    for (Node& node : network.nodes) {
        std::erase_if(node.bytes, [&](const ByteEdge& e) { return dead(e.to); });
        std::erase_if(node.empty, dead);
        std::erase_if(node.calls, [&](const Call& c) {
            return dead(c.then) || dead(network.rules[c.rule].start);
        });
    }
}

std::vector<bool> reachable(const Network& network) {
    std::vector<bool> seen(network.nodes.size(), false);
    std::vector<int32_t> todo;
    const auto visit = [&](int32_t node) {
        if (node < 0 || seen[node]) return;
        seen[node] = true;
        todo.push_back(node);
    };
    visit(network.rules[network.root].start);
    while (!todo.empty()) {
        const Node& node = network.nodes[todo.back()];
        todo.pop_back();
        for (const ByteEdge& edge : node.bytes) visit(edge.to);
        for (const int32_t to : node.empty) visit(to);
        for (const Call& call : node.calls) {
            visit(network.rules[call.rule].start);
            visit(call.then);
        }
    }
    return seen;
}

// Gives every living rule a rank above those of the rules that can begin with it.
void rank_rules(Network& network, const std::vector<bool>& alive) {
    struct Frame {
        int32_t rule;
        std::vector<int32_t> nodes;  // reached without a byte
        size_t node = 0, call = 0;
    };
    const auto count = static_cast<int32_t>(network.rules.size());
    const auto can_be_empty = [&](int32_t rule) {
        return network.nodes[network.rules[rule].start].cost == 0;
    };
    std::vector<int32_t> seen(network.nodes.size(), -1);
    std::vector<bool> entered(count, false);
    std::vector<Frame> path;
    int32_t rank = count;
    const auto enter = [&](int32_t rule) {
        entered[rule] = true;
        std::vector<int32_t> found;
        const auto visit = [&](int32_t node) {
            if (node < 0 || seen[node] == rule) return;
            seen[node] = rule;
            found.push_back(node);
        };
        visit(network.rules[rule].start);
        for (size_t i = 0; i < found.size(); ++i) {
            const Node& node = network.nodes[found[i]];
            for (const int32_t to : node.empty) visit(to);
            for (const Call& call : node.calls) {
                if (can_be_empty(call.rule)) visit(call.then);
            }
        }
        path.push_back({rule, std::move(found)});
    };
    for (int32_t root = 0; root < count; ++root) {
        if (entered[root] || !alive[network.rules[root].start]) continue;
        enter(root);
        while (!path.empty()) {
            Frame& top = path.back();
            if (top.node == top.nodes.size()) {
                network.rules[top.rule].rank = rank--;
                path.pop_back();
                continue;
            }
            const std::vector<Call>& calls = network.nodes[top.nodes[top.node]].calls;
            if (top.call == calls.size()) {
                ++top.node;
                top.call = 0;
                continue;
            }
            const int32_t begun = calls[top.call++].rule;
            if (!entered[begun]) enter(begun);
        }
    }
}

void check_single_bytes(const Network& network, const Vocabulary& vocabulary,
                        const std::vector<bool>& alive) {
    std::bitset<256> used;
    for (size_t at = 0; at < network.nodes.size(); ++at) {
        if (!alive[at]) continue;
        for (const ByteEdge& edge : network.nodes[at].bytes) {
            for (int value = edge.bytes.low; value <= edge.bytes.high; ++value) used[value] = true;
        }
    }
    sglite::check_single_bytes(vocabulary, used);
}

}  // namespace

void finish(Network& network, const Vocabulary& vocabulary, bool check_bytes) {
    const int unwritable = check_bytes ? drop_unwritable(network, vocabulary) : -1;
    remove_left_recursion(network);
    skip_links(network);
    compute_costs(network, vocabulary.trie());
    if (network.nodes[network.rules[network.root].start].cost >= kUnreachable) {
        refuse_empty(unwritable);
    }
    drop_dead(network);
    const std::vector<bool> alive = reachable(network);
    rank_rules(network, alive);
    if (check_bytes) check_single_bytes(network, vocabulary, alive);
}

}  // namespace sglite
