#include "builder.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace sglite {
int Builder::add(Expression expression) {
    expressions_.push_back(std::move(expression));
    return static_cast<int>(expressions_.size()) - 1;
}

int Builder::check(int expression) const {
    if (expression < 0 || static_cast<size_t>(expression) >= expressions_.size()) {
        throw std::invalid_argument("no expression has number " + std::to_string(expression));
    }
    return expression;
}

int Builder::fragment(const Ranges& ranges, Spelling spelling) {
    const auto [it, fresh] = fragment_ids_.try_emplace({ranges, spelling}, fragments_.size());
    if (fresh) fragments_.push_back(spell(ranges, spelling));
    return it->second;
}

int Builder::literal(std::string bytes) {
    Expression e{Kind::kLiteral};
    e.bytes = std::move(bytes);
    return add(std::move(e));
}

int Builder::characters(Ranges ranges, Spelling spelling) {
    Expression e{Kind::kCharacters};
    e.fragment = fragment(ranges, spelling);
    return add(std::move(e));
}

int Builder::any_bytes() { return add({Kind::kBytes}); }

int Builder::sequence(std::vector<int> parts) {
    for (const int part : parts) check(part);
    return add({Kind::kSequence, std::move(parts)});
}

int Builder::choice(std::vector<int> parts) {
    for (const int part : parts) check(part);
    return add({Kind::kChoice, std::move(parts)});
}

int Builder::repeat(int part, int min, int max) {
    if (min < 0 || (max >= 0 && max < min)) {
        throw std::invalid_argument("a repetition needs 0 <= min <= max");
    }
    Expression e{Kind::kRepeat, {check(part)}};
    e.min = min;
    e.max = max;
    return add(std::move(e));
}

int Builder::automaton(int states, int start, const std::vector<int>& accepting,
                       const std::vector<std::tuple<int, int, Ranges>>& edges, Spelling spelling) {
    const auto inside = [&](int state) {
        if (state < 0 || state >= states) throw std::invalid_argument("no such automaton state");
        return state;
    };
    Expression e{Kind::kAutomaton};
    e.min = states;
    e.start = inside(start);
    for (const int state : accepting) e.parts.push_back(inside(state));
    for (const auto& [from, to, ranges] : edges) {
        e.edges.push_back({inside(from), inside(to), fragment(ranges, spelling)});
    }
    return add(std::move(e));
}

int Builder::free_order(const std::vector<std::pair<int, bool>>& items, int extra, int separator,
                        int close) {
    Expression e{Kind::kFreeOrder, {check(separator), check(close)}};
    for (const auto& [item, required] : items) {
        e.parts.push_back(check(item));
        e.required.push_back(required);
    }
    if (extra >= 0) e.parts.push_back(check(extra));
    return add(std::move(e));
}

int Builder::embed(MakeMachine make) {
    const std::unique_ptr<Machine> machine = make();
    const Position start = machine->start();
    Expression e{Kind::kMachine};
    e.start = static_cast<int>(machines_.size());
    e.can_be_empty = machine->complete(start);
    int32_t cost = machine->cost(start);
    if (e.can_be_empty) {
        cost = kUnreachable;
        for (int byte = 0; byte < 256; ++byte) {
            Position at = start;
            if (!machine->step(at, static_cast<uint8_t>(byte))) continue;
            cost = std::min(cost, add_cost(1, machine->cost(at)));
        }
    }
    machines_.push_back({std::move(make), cost});
    return add(std::move(e));
}

int Builder::rule(std::string name) {
    bodies_.push_back(-1);
    names_.push_back(std::move(name));
    return static_cast<int>(bodies_.size()) - 1;
}

int Builder::call(int rule) {
    Expression e{Kind::kCall};
    if (rule < 0 || static_cast<size_t>(rule) >= bodies_.size()) {
        throw std::invalid_argument("no rule has number " + std::to_string(rule));
    }
    e.start = rule;
    return add(std::move(e));
}

void Builder::define(int rule, int body) {
    if (rule < 0 || static_cast<size_t>(rule) >= bodies_.size() || bodies_[rule] >= 0) {
        throw std::invalid_argument("a rule is declared once and defined once");
    }
    bodies_[rule] = check(body);
}

// Lays expressions out between two nodes that exist already. No layout adds an edge into `from`
// or out of `to` (unless they are the same node), so alternatives may share both.
class Builder::Layout {
  public:
    Layout(const Builder& builder, size_t most_edges)
        : builder_(builder), most_edges_(most_edges) {}

    Network run(int root) {
        network_.rules.resize(builder_.bodies_.size());
        for (size_t i = 0; i < builder_.bodies_.size(); ++i) {
            network_.rules[i] = {node(), node(), builder_.names_[i]};
        }
        network_.machines = builder_.machines_;
        machine_rules_.assign(builder_.machines_.size(), -1);
        const int32_t root_rule = wrap(root);
        for (size_t i = 0; i < builder_.bodies_.size(); ++i) {
            if (builder_.bodies_[i] < 0) {
                throw Refused("rule '" + builder_.names_[i] + "' is used but never defined");
            }
            lay(builder_.bodies_[i], network_.rules[i].start, network_.rules[i].exit);
        }
        for (const Rule& rule : network_.rules) {
            if (rule.exit >= 0) network_.nodes[rule.exit].is_exit = true;
        }
        network_.root = root_rule;
        return std::move(network_);
    }

  private:
    int32_t node() {
        network_.nodes.emplace_back();
        network_.nodes.back().object = object_;
        return static_cast<int32_t>(network_.nodes.size()) - 1;
    }

    void count_edge() {
        if (++edges_ > most_edges_) {
            throw Refused("the grammar is too large: more than " + std::to_string(most_edges_) +
                          " edges; shorten its repetitions");
        }
    }

    void edge(int32_t from, ByteRange bytes, int32_t to) {
        count_edge();
        network_.nodes[from].bytes.push_back({bytes, to});
    }

    void link(int32_t from, int32_t to) {
        count_edge();
        if (from != to) network_.nodes[from].empty.push_back(to);
    }

    void call(int32_t from, int32_t rule, int32_t then) {
        count_edge();
        network_.nodes[from].calls.push_back({rule, then});
    }

    // A rule of its own around an expression.
    int32_t wrap(int expression) {
        const int32_t outer = std::exchange(object_, -1);
        const Rule rule{node(), node(), {}};
        network_.rules.push_back(rule);
        const auto id = static_cast<int32_t>(network_.rules.size()) - 1;
        lay(expression, rule.start, rule.exit);
        object_ = outer;
        return id;
    }

    void lay_fragment(int id, int32_t from, int32_t to) {
        const Fragment& fragment = builder_.fragments_[id];
        std::vector<int32_t> place(fragment.nodes, -1);
        place[0] = from;
        place[1] = to;
        for (const Fragment::Edge& e : fragment.edges) {
            for (const int end : {e.from, e.to}) {
                if (place[end] < 0) place[end] = node();
            }
            edge(place[e.from], e.bytes, place[e.to]);
        }
    }

    void lay_repeat(const Expression& e, int32_t from, int32_t to) {
        int32_t at = from;
        for (int i = 0; i < e.min; ++i) {
            const int32_t next = node();
            lay(e.parts[0], at, next);
            at = next;
        }
        if (e.max < 0) {
            const int32_t loop = node();
            link(at, loop);
            lay(e.parts[0], loop, loop);
            link(loop, to);
            return;
        }
        if (at == from && e.max > 0) {  // keep `from` free of edges into it
            at = node();
            link(from, at);
        }
        const int32_t first = at;
        std::vector<int32_t> copies;  // where the nodes of each copy begin; the first is its end
        for (int i = e.min; i < e.max; ++i) {
            const int32_t next = node();
            copies.push_back(next);
            link(at, to);
            lay(e.parts[0], at, next);
            at = next;
        }
        if (!copies.empty() && always_reads(e.parts[0])) mark_alike(first, copies);
        link(at, to);
    }

    // Whether every match has at least one byte, as far as is plain to see, in nodes of this rule.
    bool always_reads(int id) const {
        const Expression& e = builder_.expressions_[id];
        const auto reads = [&](int part) { return always_reads(part); };
        switch (e.kind) {
            case Kind::kLiteral:
                return !e.bytes.empty();
            case Kind::kCharacters:
            case Kind::kBytes:
                return true;
            case Kind::kSequence:
                return std::any_of(e.parts.begin(), e.parts.end(), reads);
            case Kind::kChoice:
                return std::all_of(e.parts.begin(), e.parts.end(), reads);
            default:
                return false;
        }
    }

    // The copies of a repetition have the same nodes in the same order. With k copies to come,
    // k bytes cannot exhaust them, so up to there each node is like that of the first copy.
    void mark_alike(int32_t first, const std::vector<int32_t>& copies) {
        network_.copies.push_back({copies[0], static_cast<int32_t>(network_.nodes.size())});
        const auto count = static_cast<int32_t>(copies.size());
        for (int32_t i = 0; i < count; ++i) {
            const auto end =
                i + 1 < count ? copies[i + 1] : static_cast<int32_t>(network_.nodes.size());
            const int32_t left = count - 1 - i;
            network_.nodes[copies[i]].like = first;
            network_.nodes[copies[i]].like_for = left;
            for (int32_t at = copies[i] + 1; i > 0 && at < end; ++at) {
                network_.nodes[at].like = copies[0] + (at - copies[i]);
                network_.nodes[at].like_for = left;
            }
        }
    }

    void lay_automaton(const Expression& e, int32_t from, int32_t to) {
        std::vector<int32_t> place(e.min);
        for (int32_t& p : place) p = node();
        link(from, place[e.start]);
        for (const auto& [source, target, id] : e.edges) {
            lay_fragment(id, place[source], place[target]);
        }
        for (const int state : e.parts) link(place[state], to);
    }

    // The frame of a rule of its own tracks the used keys:
    //
    //   first --take k, item k--> later --take k, separator, item k--> later
    //     |                         |
    //     +----- all taken ---------+-----> close --> exit
    void lay_free_order(const Expression& e, int32_t from, int32_t to) {
        FreeObject object;
        object.required = e.required;
        object.separator_rule = wrap(e.parts[0]);
        for (size_t i = 0; i < e.required.size(); ++i) {
            object.item_rules.push_back(wrap(e.parts[2 + i]));
        }
        const bool has_extra = e.parts.size() > 2 + e.required.size();
        const int32_t extra = has_extra ? wrap(e.parts.back()) : -1;

        const int32_t outer = std::exchange(object_, static_cast<int32_t>(network_.objects.size()));
        network_.objects.emplace_back();  // its number is taken before anything nested
        const int32_t first = node(), later = node(), closing = node(), exit = node();
        network_.rules.push_back({first, exit, {}});
        const auto frame = static_cast<int32_t>(network_.rules.size()) - 1;
        for (size_t i = 0; i < object.item_rules.size(); ++i) {
            const auto key = static_cast<int32_t>(i);
            const int32_t begin = node(), separate = node(), next = node();
            network_.nodes[first].takes.push_back({key, begin});
            call(begin, object.item_rules[i], later);
            network_.nodes[later].takes.push_back({key, separate});
            call(separate, object.separator_rule, next);
            call(next, object.item_rules[i], later);
        }
        if (has_extra) {
            const int32_t next = node();
            call(first, extra, later);
            call(later, object.separator_rule, next);
            call(next, extra, later);
        }
        network_.nodes[first].all_taken = closing;
        network_.nodes[later].all_taken = closing;
        lay(e.parts[1], closing, exit);
        object.first = first;
        object.later = later;
        network_.objects[object_] = std::move(object);
        object_ = outer;
        call(from, frame, to);
    }

    int32_t machine_rule(int id) {
        if (machine_rules_[id] < 0) {
            const int32_t outer = std::exchange(object_, -1);
            Embedded& machine = network_.machines[id];
            machine.start = node();
            machine.inside = node();
            network_.nodes[machine.start].machine = network_.nodes[machine.inside].machine = id;
            network_.rules.push_back({machine.start, -1, {}});
            machine_rules_[id] = static_cast<int32_t>(network_.rules.size()) - 1;
            object_ = outer;
        }
        return machine_rules_[id];
    }

    void lay(int id, int32_t from, int32_t to) {
        const Expression& e = builder_.expressions_[id];
        switch (e.kind) {
            case Kind::kLiteral: {
                if (e.bytes.empty()) return link(from, to);
                int32_t at = from;
                for (size_t i = 0; i < e.bytes.size(); ++i) {
                    const auto value = static_cast<uint8_t>(e.bytes[i]);
                    const int32_t next = i + 1 == e.bytes.size() ? to : node();
                    edge(at, {value, value}, next);
                    at = next;
                }
                return;
            }
            case Kind::kCharacters:
                return lay_fragment(e.fragment, from, to);
            case Kind::kBytes:
                return edge(from, {0x00, 0xFF}, to);
            case Kind::kSequence: {
                if (e.parts.empty()) return link(from, to);
                int32_t at = from;
                for (size_t i = 0; i < e.parts.size(); ++i) {
                    const int32_t next = i + 1 == e.parts.size() ? to : node();
                    lay(e.parts[i], at, next);
                    at = next;
                }
                return;
            }
            case Kind::kChoice:
                for (const int part : e.parts) lay(part, from, to);
                return;
            case Kind::kRepeat:
                return lay_repeat(e, from, to);
            case Kind::kAutomaton:
                return lay_automaton(e, from, to);
            case Kind::kFreeOrder:
                return lay_free_order(e, from, to);
            case Kind::kMachine:
                if (e.can_be_empty) link(from, to);
                return call(from, machine_rule(e.start), to);
            case Kind::kCall:
                return call(from, e.start, to);
        }
    }

    const Builder& builder_;
    Network network_;
    const size_t most_edges_;
    size_t edges_ = 0;
    std::vector<int32_t> machine_rules_;  // per machine, or -1
    int32_t object_ = -1;
};

Network Builder::lay_out(int root, size_t most_edges) const {
    return Layout(*this, most_edges).run(check(root));
}

}  // namespace sglite
