// What the atoms of a conjunction in hand say of one more: most alternatives that cannot be, or
// need not be told apart, are found out here before they multiply.
#include <algorithm>

#include "expand.h"

namespace sglite::json {

Truth Expander::standing(Lit lit) {
    const Truth truth = truths_.of(lit, type_);
    if (truth != Truth::kOpen) return truth;
    const Node node = formulas_.node(lit);
    if (node.strict) lit = negated(formulas_.failing(lit));
    if (is_held(lit)) return Truth::kTrue;
    if (is_held(negated(lit))) return Truth::kFalse;
    switch (node.op) {
        case Op::kMemberCount:
        case Op::kItemCount:
            return standing_count(lit, node);
        case Op::kMembers:
            return formulas_.key_set(node.a).name < 0 ? Truth::kOpen : standing_value(lit, node);
        case Op::kItems:
            return node.b < 0 ? Truth::kOpen : standing_value(lit, node);
        default:
            return Truth::kOpen;
    }
}

// Whether a member that must be there could have no value any more.
bool Expander::contradicts(Lit lit) {
    const int32_t keys = formulas_.node(lit).a;
    if (formulas_.key_set(keys).name < 0) return false;
    const Lit required = negated(formulas_.atom(Op::kMembers, 0, keys, kFalse));
    if (lit != required && !is_held(required)) return false;
    std::vector<Lit> values;
    work_.spend(static_cast<int64_t>(atoms_.size()) / 8);
    for (const Lit atom : atoms_) {
        const Node& node = formulas_.node(atom);
        if (node.op != Op::kMembers || node.a != keys || is_negated(atom)) continue;
        values.push_back(node.b);
    }
    if (!is_negated(lit)) values.push_back(formulas_.node(lit).b);
    for (size_t i = 0; i < values.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
            if (disjoint_.never(values[i], values[j])) return true;
        }
    }
    return false;
}

Truth Expander::standing_count(Lit lit, const Node& node) const {
    for (const Lit atom : atoms_) {
        const Node& held = formulas_.node(atom);
        if (held.op != node.op) continue;
        const bool at_least = !is_negated(atom);
        if (at_least ? held.a < node.a : held.a > node.a) continue;
        return at_least == !is_negated(lit) ? Truth::kTrue : Truth::kFalse;
    }
    return Truth::kOpen;
}

// Of the value at one key or index. Negated: it is there, and does not satisfy the formula.
Truth Expander::standing_value(Lit lit, const Node& node) {
    const bool is_item = node.op == Op::kItems;
    const Lit asked = is_item ? node.c : node.b;
    const Lit present = is_item
                            ? formulas_.item_count(node.b, 0)
                            : negated(formulas_.atom(Op::kMembers, node.pointer, node.a, kFalse));
    const bool is_present = is_item
                                ? standing_count(present, formulas_.node(present)) == Truth::kTrue
                                : is_held(present);
    bool holds = false, fails = false;
    work_.spend(static_cast<int64_t>(atoms_.size()) / 8);
    for (const Lit atom : atoms_) {
        const Node held = formulas_.node(atom);
        if (held.op != node.op || held.a != node.a || held.b != node.b) {
            if (is_item || held.op != Op::kMembers || held.a != node.a) continue;
        }
        if (is_negated(atom)) continue;
        const Lit known = is_item ? held.c : held.b;
        holds = holds || disjoint_.never(known, negated(asked));
        fails = fails || disjoint_.never(known, asked);
    }
    if (is_negated(lit))
        return holds ? Truth::kFalse : fails && is_present ? Truth::kTrue : Truth::kOpen;
    return holds ? Truth::kTrue : fails && is_present ? Truth::kFalse : Truth::kOpen;
}

}  // namespace sglite::json
