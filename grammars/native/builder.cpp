#include "builder.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "text/charset.h"

namespace sglite {

Builder::Builder(std::shared_ptr<Vocabulary> vocabulary) : vocabulary_(std::move(vocabulary)) {}

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

int Builder::set(Ranges ranges) {
    const auto [known, fresh] = set_ids_.try_emplace(ranges, static_cast<int>(sets_.size()));
    if (fresh) {
        fragments_.push_back(spell(ranges));
        sets_.push_back(std::move(ranges));
    }
    return known->second;
}

int Builder::literal(std::string text) {
    Expression e{Kind::kLiteral};
    e.text = std::move(text);
    return add(std::move(e));
}

int Builder::characters(Ranges ranges, bool complement) {
    ranges = text::united(std::move(ranges));
    Expression e{Kind::kCharacters};
    e.number = set(complement ? text::negated(ranges) : std::move(ranges));
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
    if (const int machine = counted(check(part), min, max); machine >= 0) return machine;
    Expression e{Kind::kRepeat, {part}};
    e.min = min;
    e.max = max;
    return add(std::move(e));
}

// An automaton whose state is how much of the marker the text ends with.
int Builder::until(const std::u32string& marker) {
    Expression e{Kind::kUntil};
    std::vector<std::map<char32_t, int>> rows;
    int shorter = 0;  // the state after all of the marker so far but its first character
    for (const char32_t wanted : marker) {
        const auto state = static_cast<int>(rows.size());
        std::map<char32_t, int> row;
        if (state > 0) row = rows[shorter];
        const int back = row.contains(wanted) ? row[wanted] : 0;
        row[wanted] = state + 1;
        Ranges known;
        for (const auto& [code, to] : row) {
            known.emplace_back(code, code);
            e.edges.push_back({state, to, set({{code, code}})});
        }
        e.edges.push_back({state, 0, set(text::negated(text::united(std::move(known))))});
        rows.push_back(std::move(row));
        if (state > 0) shorter = back;
    }
    e.number = static_cast<int>(rows.size());
    return add(std::move(e));
}

int Builder::embed(MakeMachine make) {
    const std::unique_ptr<Machine> machine = make();
    const Position start = machine->start();
    Expression e{Kind::kMachine};
    e.number = static_cast<int>(machines_.size());
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
    e.number = rule;
    return add(std::move(e));
}

void Builder::define(int rule, int body) {
    if (rule < 0 || static_cast<size_t>(rule) >= bodies_.size() || bodies_[rule] >= 0) {
        throw std::invalid_argument("a rule is declared once and defined once");
    }
    bodies_[rule] = check(body);
}

}  // namespace sglite
