// A circle is a set of rules each of which can begin with every other. A match of a rule A of a
// circle that is not empty begins at the left with something of no circle, and climbs from there:
// whenever a rule B of the circle is done, it goes on behind one of the places where a rule of the
// circle begins with B, until A itself is done. That is a plain automaton, so A becomes one rule
//
//   start --a beginning of any rule X, not of the circle--> where X goes on
//   end of B --(nothing)--> behind every beginning B of a rule X of the circle
//   end of A: the end
//
// over copies of the nodes of the circle. For this to leave no recursion behind empty beginnings,
// the start passes over rules that can be empty, and takes of those their other matches only:
// `positive` rules. All new rules match no empty text; their callers go past them by empty edges.
#include "left_recursion.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "refused.h"

namespace sglite {
namespace {

constexpr size_t kMostCopies = 200'000;  // nodes and edges

// Lists of numbers by number, in one piece.
class Lists {
  public:
    template <typename Each>  // each(add) calls add(key, value) for every entry, twice over
    Lists(size_t keys, Each each) : first_(keys + 2, 0) {
        each([&](int32_t key, int32_t) { ++first_[key + 2]; });
        for (size_t i = 2; i < first_.size(); ++i) first_[i] += first_[i - 1];
        values_.resize(first_.back());
        each([&](int32_t key, int32_t value) { values_[first_[key + 1]++] = value; });
    }
    std::span<const int32_t> of(int32_t key) const {
        return {values_.data() + first_[key], values_.data() + first_[key + 1]};
    }

  private:
    std::vector<size_t> first_;
    std::vector<int32_t> values_;
};

// Per node, whether the end of its rule can be reached without a byte.
std::vector<bool> find_empty(const Network& network) {
    const auto count = static_cast<int32_t>(network.nodes.size());
    const Lists before(count, [&](auto add) {
        for (int32_t at = 0; at < count; ++at) {
            for (const int32_t to : network.nodes[at].empty) add(to, at);
            for (const Call& call : network.nodes[at].calls) {
                add(call.then, at);
                add(network.rules[call.rule].start, at);
            }
        }
    });
    std::vector<bool> empty(count, false);
    std::vector<int32_t> todo;
    const auto holds = [&](const Node& node) {
        const auto leads = [&](int32_t to) { return empty[to]; };
        const auto passes = [&](const Call& call) {
            return empty[call.then] && empty[network.rules[call.rule].start];
        };
        return node.is_exit || std::ranges::any_of(node.empty, leads) ||
               std::ranges::any_of(node.calls, passes);
    };
    const auto consider = [&](int32_t at) {
        if (empty[at] || !holds(network.nodes[at])) return;
        empty[at] = true;
        todo.push_back(at);
    };
    for (int32_t at = 0; at < count; ++at) {
        if (network.nodes[at].is_exit) consider(at);
    }
    while (!todo.empty()) {
        const int32_t at = todo.back();
        todo.pop_back();
        for (const int32_t user : before.of(at)) consider(user);
    }
    return empty;
}

// Nodes made for old ones, each once, in place of which they will stand in a new rule.
class Copies {
  public:
    explicit Copies(Network& network) : network_(network) {}

    int32_t of(int32_t old) {
        const auto [it, fresh] = made_.try_emplace(old, -1);
        if (fresh) {
            it->second = static_cast<int32_t>(network_.nodes.size());
            network_.nodes.emplace_back();
            todo_.push_back(old);
        }
        return it->second;
    }
    void set(int32_t old, int32_t copy) { made_[old] = copy; }
    // The old nodes whose copies were asked for.
    bool waiting() const { return !todo_.empty(); }
    int32_t next() {
        const int32_t old = todo_.back();
        todo_.pop_back();
        return old;
    }

  private:
    Network& network_;
    std::unordered_map<int32_t, int32_t> made_;
    std::vector<int32_t> todo_;
};

class Remover {
  public:
    explicit Remover(Network& network)
        : network_(network), empty_(find_empty(network)), rules_(network.rules.size()) {}

    void run() {
        find_beginnings();
        find_circles();
        if (circles_.empty()) return;
        targets_.assign(rules_, -1);
        positives_.assign(rules_, -1);
        rewritten_.assign(network_.nodes.size(), false);
        rewrite(network_.rules[network_.root].start);
        while (!todo_.empty() || !jobs_.empty()) {
            if (!todo_.empty()) {
                const int32_t at = todo_.back();
                todo_.pop_back();
                rewrite_calls(at);
            } else {
                const Job job = jobs_.back();
                jobs_.pop_back();
                job.positive ? fill_positive(job.rule) : fill_target(job.rule);
            }
        }
    }

  private:
    struct Job {
        int32_t rule;
        bool positive;
    };

    bool can_be_empty(int32_t rule) const { return empty_[network_.rules[rule].start]; }

    // Per rule, the nodes that it can come to before any byte.
    void find_beginnings() {
        first_.resize(rules_);
        std::vector<int32_t> seen(network_.nodes.size(), -1);
        for (int32_t rule = 0; rule < static_cast<int32_t>(rules_); ++rule) {
            std::vector<int32_t>& found = first_[rule];
            const auto visit = [&](int32_t node) {
                if (seen[node] == rule) return;
                seen[node] = rule;
                found.push_back(node);
            };
            visit(network_.rules[rule].start);
            for (size_t i = 0; i < found.size(); ++i) {
                const Node& node = network_.nodes[found[i]];
                for (const int32_t to : node.empty) visit(to);
                for (const Call& call : node.calls) {
                    if (can_be_empty(call.rule)) visit(call.then);
                }
            }
        }
    }

    // The rules that `rule` can begin with.
    std::vector<int32_t> begun(int32_t rule) const {
        std::vector<int32_t> found;
        for (const int32_t at : first_[rule]) {
            for (const Call& call : network_.nodes[at].calls) found.push_back(call.rule);
        }
        return found;
    }

    // Tarjan's strongly connected components; those without recursion are no circles.
    void find_circles() {
        struct Frame {
            int32_t rule;
            std::vector<int32_t> next;
            size_t done = 0;
        };
        circle_of_.assign(rules_, -1);
        std::vector<int32_t> number(rules_, -1), low(rules_, 0), stack;
        std::vector<bool> waiting(rules_, false);
        std::vector<Frame> path;
        int32_t numbers = 0;
        const auto enter = [&](int32_t rule) {
            number[rule] = low[rule] = numbers++;
            waiting[rule] = true;
            stack.push_back(rule);
            path.push_back({rule, begun(rule)});
        };
        for (int32_t root = 0; root < static_cast<int32_t>(rules_); ++root) {
            if (number[root] < 0) enter(root);
            while (!path.empty()) {
                Frame& top = path.back();
                const int32_t rule = top.rule;
                if (top.done < top.next.size()) {
                    const int32_t next = top.next[top.done++];
                    if (number[next] < 0) {
                        enter(next);
                    } else if (waiting[next]) {
                        low[rule] = std::min(low[rule], number[next]);
                    }
                    continue;
                }
                const bool recursive = std::ranges::find(top.next, rule) != top.next.end();
                path.pop_back();
                if (!path.empty()) {
                    low[path.back().rule] = std::min(low[path.back().rule], low[rule]);
                }
                if (low[rule] == number[rule]) close_circle(rule, recursive, stack, waiting);
            }
        }
    }

    void close_circle(int32_t rule, bool recursive, std::vector<int32_t>& stack,
                      std::vector<bool>& waiting) {
        const auto begin = std::find(stack.rbegin(), stack.rend(), rule).base() - 1;
        const std::vector<int32_t> members(begin, stack.end());
        stack.erase(begin, stack.end());
        for (const int32_t member : members) waiting[member] = false;
        if (members.size() == 1 && !recursive) return;
        for (const int32_t member : members) {
            circle_of_[member] = static_cast<int32_t>(circles_.size());
        }
        circles_.push_back(members);
    }

    void count(size_t more, int32_t rule) {
        copies_ += more;
        if (copies_ <= kMostCopies) return;
        throw Refused("rule '" + network_.rules[rule].name + "' is left-recursive through " +
                      std::to_string(circles_[circle_of_[rule]].size()) +
                      " rules that are too large to rewrite; write some with repetitions");
    }

    int32_t node() {
        network_.nodes.emplace_back();
        return static_cast<int32_t>(network_.nodes.size()) - 1;
    }

    // The old rule that a call meant, also where it is turned to a new one already.
    int32_t origin(int32_t rule) const {
        const auto at = static_cast<size_t>(rule);
        return at < rules_ ? rule : origins_[at - rules_];
    }

    int32_t declare(int32_t like, bool positive) {
        const Rule& old = network_.rules[like];
        const Rule rule{node(), old.exit, old.name};
        network_.rules.push_back(rule);
        origins_.push_back(like);
        jobs_.push_back({like, positive});
        return static_cast<int32_t>(network_.rules.size()) - 1;
    }

    // The rule of all matches of `rule`, or of a circle's rule: of all that are not empty.
    int32_t target(int32_t rule) {
        if (circle_of_[rule] < 0) {
            rewrite(network_.rules[rule].start);
            return rule;
        }
        if (targets_[rule] < 0) targets_[rule] = declare(rule, false);
        return targets_[rule];
    }

    // The rule of all matches that are not empty.
    int32_t positive(int32_t rule) {
        if (circle_of_[rule] >= 0 || !can_be_empty(rule)) return target(rule);
        if (positives_[rule] < 0) positives_[rule] = declare(rule, true);
        return positives_[rule];
    }

    void rewrite(int32_t node) {
        if (rewritten_[node]) return;
        rewritten_[node] = true;
        todo_.push_back(node);
    }

    // Turns the calls of a node that stays to the new rules, and goes on to the nodes behind it.
    void rewrite_calls(int32_t at) {
        const std::vector<Call> calls = network_.nodes[at].calls;
        for (size_t i = 0; i < calls.size(); ++i) {
            const int32_t rule = origin(calls[i].rule), then = calls[i].then;
            const int32_t to = target(rule);
            Node& node = network_.nodes[at];
            node.calls[i].rule = to;
            if (circle_of_[rule] >= 0 && can_be_empty(rule)) node.empty.push_back(then);
            rewrite(then);
        }
        const Node& node = network_.nodes[at];
        for (const ByteEdge& edge : node.bytes) rewrite(edge.to);
        for (const int32_t to : node.empty) rewrite(to);
    }

    void fill_target(int32_t rule) {
        const std::vector<int32_t>& circle = circles_[circle_of_[rule]];
        Copies copies(network_);
        network_.nodes[network_.rules[targets_[rule]].start] = lay_start(rule, circle, copies);
        std::unordered_map<int32_t, std::vector<int32_t>> climbs = find_climbs(circle);
        while (copies.waiting()) {
            const int32_t old = copies.next();
            Node to = lay_inside(rule, old, copies);
            if (network_.nodes[old].is_exit) {
                to.is_exit = old == network_.rules[rule].exit;
                for (const int32_t then : climbs[old]) to.empty.push_back(copies.of(then));
            }
            count(1 + to.bytes.size() + to.calls.size() + to.empty.size(), rule);
            network_.nodes[copies.of(old)] = std::move(to);
        }
    }

    // Per exit of a rule of the circle: behind every beginning with that rule.
    std::unordered_map<int32_t, std::vector<int32_t>> find_climbs(
        const std::vector<int32_t>& circle) const {
        std::unordered_map<int32_t, std::vector<int32_t>> climbs;
        for (const int32_t member : circle) {
            for (const int32_t at : first_[member]) {
                for (const Call& call : network_.nodes[at].calls) {
                    if (circle_of_[call.rule] != circle_of_[member]) continue;
                    climbs[network_.rules[call.rule].exit].push_back(call.then);
                }
            }
        }
        return climbs;
    }

    // The start of a circle's new rule: all beginnings of all its rules that read something.
    Node lay_start(int32_t rule, const std::vector<int32_t>& circle, Copies& copies) {
        Node start;
        for (const int32_t member : circle) {
            for (const int32_t at : first_[member]) {
                const Node from = network_.nodes[at];
                for (const auto& [range, to] : from.bytes) {
                    start.bytes.push_back({range, copies.of(to)});
                }
                for (const auto& [called, then] : from.calls) {
                    if (circle_of_[called] == circle_of_[rule]) continue;
                    start.calls.push_back({positive(called), copies.of(then)});
                }
                count(1 + from.bytes.size() + from.calls.size(), rule);
            }
        }
        return start;
    }

    // The copy of a node behind the start, as far as it stays inside of its old rule.
    Node lay_inside(int32_t rule, int32_t old, Copies& copies) {
        const Node from = network_.nodes[old];
        Node to;
        for (const auto& [range, then] : from.bytes) to.bytes.push_back({range, copies.of(then)});
        for (const int32_t then : from.empty) to.empty.push_back(copies.of(then));
        for (const auto& [called, then] : from.calls) {
            to.calls.push_back({target(called), copies.of(then)});
            if (circle_of_[called] >= 0 && can_be_empty(called)) {
                to.empty.push_back(copies.of(then));
            }
        }
        return to;
    }

    // New nodes only for what comes before the first byte; behind it go the nodes that are there.
    void fill_positive(int32_t rule) {
        Copies copies(network_);
        copies.set(network_.rules[rule].start, network_.rules[positives_[rule]].start);
        for (const int32_t old : first_[rule]) {
            const Node from = network_.nodes[old];
            Node to;
            to.bytes = from.bytes;
            for (const ByteEdge& edge : from.bytes) rewrite(edge.to);
            for (const int32_t then : from.empty) to.empty.push_back(copies.of(then));
            for (const auto& [turned, then] : from.calls) {
                const int32_t called = origin(turned);
                to.calls.push_back({positive(called), then});
                rewrite(then);
                if (can_be_empty(called)) to.empty.push_back(copies.of(then));
            }
            network_.nodes[copies.of(old)] = std::move(to);
        }
    }

    Network& network_;
    const std::vector<bool> empty_;  // per old node
    const size_t rules_;             // the old ones
    std::vector<std::vector<int32_t>> first_;
    std::vector<std::vector<int32_t>> circles_;
    std::vector<int32_t> circle_of_;  // per old rule, or -1
    std::vector<int32_t> targets_;    // per old rule of a circle: the new one, or -1
    std::vector<int32_t> positives_;  // per old rule of no circle: the new one, or -1
    std::vector<int32_t> origins_;    // per new rule
    std::vector<bool> rewritten_;     // per old node
    std::vector<int32_t> todo_;       // nodes whose calls are still to be turned
    std::vector<Job> jobs_;           // new rules without nodes
    size_t copies_ = 0;
};

}  // namespace

void remove_left_recursion(Network& network) { Remover(network).run(); }

}  // namespace sglite
