// The layout of expressions as a network.
#include <stdexcept>
#include <utility>

#include "builder.h"

namespace sglite {

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
        const Rule rule{node(), node(), {}};
        network_.rules.push_back(rule);
        const auto id = static_cast<int32_t>(network_.rules.size()) - 1;
        lay(expression, rule.start, rule.exit);
        return id;
    }

    void lay_set(int id, int32_t from, int32_t to) {
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
        for (int i = e.min; i < e.max; ++i) {
            const int32_t next = node();
            link(at, to);
            lay(e.parts[0], at, next);
            at = next;
        }
        link(at, to);
    }

    void lay_until(const Expression& e, int32_t from, int32_t to) {
        std::vector<int32_t> place{node()};
        while (place.size() < static_cast<size_t>(e.number)) place.push_back(node());
        place.push_back(to);
        link(from, place[0]);
        for (const auto& [source, target, set] : e.edges) {
            lay_set(set, place[source], place[target]);
        }
    }

    int32_t machine_rule(int id) {
        if (machine_rules_[id] < 0) {
            Embedded& machine = network_.machines[id];
            machine.start = node();
            machine.inside = node();
            network_.nodes[machine.start].machine = network_.nodes[machine.inside].machine = id;
            network_.rules.push_back({machine.start, -1, {}});
            machine_rules_[id] = static_cast<int32_t>(network_.rules.size()) - 1;
        }
        return machine_rules_[id];
    }

    void lay(int id, int32_t from, int32_t to) {
        const Expression& e = builder_.expressions_[id];
        switch (e.kind) {
            case Kind::kLiteral: {
                if (e.text.empty()) return link(from, to);
                int32_t at = from;
                for (size_t i = 0; i < e.text.size(); ++i) {
                    const auto value = static_cast<uint8_t>(e.text[i]);
                    const int32_t next = i + 1 == e.text.size() ? to : node();
                    edge(at, {value, value}, next);
                    at = next;
                }
                return;
            }
            case Kind::kCharacters:
                return lay_set(e.number, from, to);
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
            case Kind::kUntil:
                return lay_until(e, from, to);
            case Kind::kMachine:
                if (e.can_be_empty) link(from, to);
                return call(from, machine_rule(e.number), to);
            case Kind::kCall:
                return call(from, e.number, to);
        }
    }

    const Builder& builder_;
    Network network_;
    const size_t most_edges_;
    size_t edges_ = 0;
    std::vector<int32_t> machine_rules_;  // per machine, or -1
};

Network Builder::lay_out(int root, size_t most_edges) const {
    return Layout(*this, most_edges).run(check(root));
}

}  // namespace sglite
