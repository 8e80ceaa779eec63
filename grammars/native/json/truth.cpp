// What a formula says of a type as a whole, and which atoms it surely demands.
#include "truth.h"

#include <algorithm>

namespace sglite::json {
namespace {

Truth opposite(Truth truth) {
    return truth == Truth::kOpen   ? Truth::kOpen
           : truth == Truth::kTrue ? Truth::kFalse
                                   : Truth::kTrue;
}

}  // namespace

Truth Truths::of(Lit lit, Type type) {
    const auto node = static_cast<size_t>(node_of(lit));
    if (known_.size() <= node) {
        known_.resize(formulas_.size(), 0);
        open_.resize(formulas_.size(), 0);
    }
    const int shift = 2 * static_cast<int>(type);
    int known = known_[node] >> shift & 3;
    if (known == 0) {
        const auto flag = static_cast<uint8_t>(bit(type));
        if (open_[node] & flag) {
            document_.refuse("the schema refers to itself without a value between",
                             formulas_.node(lit).pointer);
        }
        if (++depth_ > kDeepestFormula) {
            document_.refuse("the schema is nested too deeply; make it flatter",
                             formulas_.node(lit).pointer);
        }
        open_[node] |= flag;
        known = 1 + static_cast<int>(find(node_of(lit), type));
        open_[node] &= static_cast<uint8_t>(~flag);
        known_[node] |= static_cast<uint16_t>(known << shift);
        --depth_;
    }
    const auto truth = static_cast<Truth>(known - 1);
    return is_negated(lit) ? opposite(truth) : truth;
}

Truth Truths::of_group(const Node& node, Type type) {
    int held = 0, open = 0;
    for (int32_t i = 0; i < node.b; ++i) {
        const Truth truth = of(formulas_.parts(node)[i], type);
        if (truth == Truth::kFalse && node.op == Op::kAll) return Truth::kFalse;
        held += truth == Truth::kTrue;
        open += truth == Truth::kOpen;
        if (held > 1 && node.op == Op::kOne) return Truth::kFalse;
    }
    if (open > 0) return Truth::kOpen;
    return node.op == Op::kAll || held == 1 ? Truth::kTrue : Truth::kFalse;
}

Truth Truths::find(int32_t number, Type type) {
    work_.spend();
    const Node node = formulas_.node(number * 2);
    const bool is_number = type == Type::kInteger || type == Type::kFraction;
    const auto open_if = [&](bool open) {
        return open ? Truth::kOpen : node.strict ? Truth::kFalse : Truth::kTrue;
    };
    switch (node.op) {
        case Op::kTrue:
            return Truth::kTrue;
        case Op::kAll:
        case Op::kOne:
            return of_group(node, type);
        case Op::kSchema:
            return of(reader_.body(number * 2), type);
        case Op::kType:
            return node.a & bit(type) ? Truth::kTrue : Truth::kFalse;
        case Op::kText:
            return open_if(type == Type::kString);
        case Op::kAbove:
            return open_if(is_number);
        case Op::kMultiple: {
            const text::Decimal& unit = formulas_.number_value(node.a);
            if (type == Type::kFraction && unit.is_integer()) return Truth::kFalse;
            const bool is_one = unit.digits == "1" && unit.exponent == 0;
            if (type == Type::kInteger && is_one) return Truth::kTrue;
            return open_if(is_number);
        }
        case Op::kListed: {
            if (!is_number) return Truth::kTrue;
            const bool whole = type == Type::kInteger;
            const bool some = std::ranges::any_of(
                formulas_.list(node.a), [&](const auto& v) { return v.is_integer() == whole; });
            return some ? Truth::kOpen : Truth::kFalse;
        }
        case Op::kMembers:
            if (type == Type::kObject && node.b == kTrue) return Truth::kTrue;
            return open_if(type == Type::kObject);
        case Op::kMemberCount:
            return open_if(type == Type::kObject);
        case Op::kItems:
        case Op::kItemCount:
        case Op::kContains:
        case Op::kUnique:
            return open_if(type == Type::kArray);
    }
    return Truth::kOpen;
}

void Truths::sure(Lit lit, Type type, std::vector<Lit>& atoms, int depth) {
    work_.spend();
    if (depth > kDeepestFormula) {
        document_.refuse("the schema is nested too deeply; make it flatter",
                         formulas_.node(lit).pointer);
    }
    const Truth truth = of(lit, type);
    const Node node = formulas_.node(lit);
    switch (node.op) {
        case Op::kSchema: {
            const Lit body = reader_.body(lit & ~1);
            return sure(is_negated(lit) ? negated(body) : body, type, atoms, depth + 1);
        }
        case Op::kAll:
            if (!is_negated(lit)) {
                for (int32_t i = 0; i < node.b; ++i) {
                    sure(formulas_.parts(node)[i], type, atoms, depth + 1);
                }
                return;
            }
            [[fallthrough]];
        case Op::kOne: {
            // Where only one way is left, it is sure.
            Lit last = kTrue;
            int open = 0;
            for (int32_t i = 0; i < node.b; ++i) {
                const Lit part = formulas_.parts(node)[i];
                const Lit way = node.op == Op::kAll ? negated(part) : part;
                const Truth held = of(way, type);
                if (held == Truth::kTrue) return;
                if (held == Truth::kFalse) continue;
                ++open;
                last = way;
            }
            if (open == 1 && (node.op == Op::kAll || !is_negated(lit))) {
                sure(last, type, atoms, depth + 1);
            }
            return;
        }
        default:
            if (truth == Truth::kOpen || node.op == Op::kMembers) {
                if (type != Type::kObject && node.op == Op::kMembers) return;
                atoms.push_back(lit);
            }
    }
}

bool Truths::holds(const KeySet& keys, int32_t name, Texts& texts) {
    if (keys.name >= 0) return keys.name == name;
    if (std::ranges::binary_search(keys.names, name)) return false;
    const std::string_view text = formulas_.name_text(name);
    return std::ranges::all_of(keys.with, [&](int32_t set) { return texts.contains(set, text); }) &&
           std::ranges::none_of(keys.without,
                                [&](int32_t set) { return texts.contains(set, text); });
}

}  // namespace sglite::json
