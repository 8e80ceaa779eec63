// Formulas over strings and over numbers, as languages.
#include "scalars.h"

#include <algorithm>

namespace sglite::json {

using text::Decimal;
using text::kAnyText;
using text::kNoText;
using text::LangId;
using text::NumberSpec;

LangId Scalars::strings(const std::vector<Lit>& lits) {
    std::vector<LangId> parts;
    for (const Lit lit : lits) {
        const LangId part = string(lit);
        if (part == kNoText) return kNoText;
        if (part != kAnyText) parts.push_back(part);
    }
    if (parts.empty()) return kAnyText;
    return parts.size() == 1 ? parts[0] : languages_.both(std::move(parts));
}

LangId Scalars::string(Lit lit) {
    const Truth truth = truths_.of(lit, Type::kString);
    if (truth != Truth::kOpen) return truth == Truth::kTrue ? kAnyText : kNoText;
    const int32_t number = node_of(lit);
    LangId found = kNoText;
    if (const auto known = strings_.find(number); known != strings_.end()) {
        found = known->second;
    } else {
        const Node node = formulas_.node(lit);
        if (node.op == Op::kSchema) {
            found = string(reader_.body(lit & ~1));
        } else if (node.op == Op::kText) {
            found = texts_.language(node.a);
        } else {
            found = string_group(node);
        }
        strings_.emplace(number, found);
    }
    return is_negated(lit) ? languages_.complement(found) : found;
}

LangId Scalars::string_group(const Node& node) {
    const std::vector<Lit> parts(formulas_.parts(node).begin(), formulas_.parts(node).end());
    if (node.op == Op::kAll) return strings(parts);
    std::vector<LangId> ways;
    for (size_t i = 0; i < parts.size(); ++i) {
        std::vector<Lit> only = parts;
        for (size_t j = 0; j < parts.size(); ++j) {
            if (i != j) only[j] = negated(only[j]);
        }
        ways.push_back(strings(only));
    }
    return languages_.either(std::move(ways));
}

Scalars::Found Scalars::numbers(const std::vector<Lit>& lits) {
    const std::vector<Atoms> whole = expander_.run(lits, Type::kInteger);
    const std::vector<Atoms> broken = expander_.run(lits, Type::kFraction);
    Found found{kNoText, {}};
    if (whole == broken) {
        for (const Atoms& atoms : whole) {
            found.ways.push_back(merged(atoms, NumberSpec::Kind::kAny));
        }
    } else {
        for (const Atoms& atoms : whole) {
            found.ways.push_back(merged(atoms, NumberSpec::Kind::kInteger));
        }
        for (const Atoms& atoms : broken) {
            found.ways.push_back(merged(atoms, NumberSpec::Kind::kFraction));
        }
    }
    std::vector<LangId> languages;
    try {
        for (const Numbers& way : found.ways) {
            const LangId part = language(way);
            if (part != kNoText) languages.push_back(part);
        }
    } catch (const Refused& refused) {
        for (const auto* ways : {&whole, &broken}) refuse_multiple(refused, *ways);
        throw;
    }
    if (!languages.empty()) {
        found.language =
            languages.size() == 1 ? languages[0] : languages_.either(std::move(languages));
    }
    return found;
}

// With the place of a 'multipleOf', if there is one.
void Scalars::refuse_multiple(const Refused& refused, const std::vector<Atoms>& ways) {
    if (!refused.pointer.empty()) return;
    for (const Atoms& atoms : ways) {
        for (const Lit atom : atoms) {
            const Node& node = formulas_.node(atom);
            if (node.op == Op::kMultiple) document_.refuse(refused.what(), node.pointer);
        }
    }
}

Scalars::Numbers Scalars::merged(const Atoms& atoms, NumberSpec::Kind kind) {
    Numbers found;
    NumberSpec& spec = found.spec;
    spec.kind = kind;
    const std::vector<Decimal>* list = nullptr;
    for (const Lit atom : atoms) {
        const Node& node = formulas_.node(atom);
        const bool negative = is_negated(atom);
        if (node.op == Op::kAbove) {
            // Of equal limits the excluded one is tighter.
            const Decimal& limit = formulas_.number_value(node.a);
            const bool excluded = negative ? node.b == 0 : node.b != 0;
            auto& side = negative ? spec.high : spec.low;
            const int order = side ? compare(limit, side->value) : 0;
            const bool tighter = negative ? order < 0 : order > 0;
            if (!side || tighter || (order == 0 && excluded)) side = {limit, excluded};
        } else if (node.op == Op::kMultiple) {
            (negative ? spec.not_multiples : spec.multiples)
                .push_back(formulas_.number_value(node.a));
        } else if (node.op == Op::kListed && negative) {
            const auto& values = formulas_.list(node.a);
            found.without.insert(found.without.end(), values.begin(), values.end());
        } else if (node.op == Op::kListed) {
            found.is_list = true;
            if (list == nullptr || formulas_.list(node.a).size() < list->size()) {
                list = &formulas_.list(node.a);
            }
        }
    }
    const auto in = [](const std::vector<Decimal>& values, const Decimal& value) {
        return std::ranges::find(values, value) != values.end();
    };
    std::erase_if(found.without, [&](const Decimal& value) { return !holds(spec, value); });
    if (found.is_list) {
        for (const Decimal& value : *list) {
            if (!holds(spec, value) || in(found.without, value)) continue;
            const bool everywhere = std::ranges::all_of(atoms, [&](Lit atom) {
                const Node& node = formulas_.node(atom);
                if (node.op != Op::kListed || is_negated(atom)) return true;
                return &formulas_.list(node.a) == list || in(formulas_.list(node.a), value);
            });
            if (everywhere) found.list.push_back(value);
        }
        found.without.clear();
    }
    return found;
}

LangId Scalars::language(const Numbers& numbers) {
    if (numbers.is_list) return values(numbers.list);
    const LangId all = text::numbers(languages_, numbers.spec, any_spelling_);
    if (all == kNoText || numbers.without.empty()) return all;
    return languages_.both({all, languages_.complement(values(numbers.without, true))});
}

LangId Scalars::values(const std::vector<Decimal>& list, bool all_spellings) {
    std::vector<LangId> ways;
    for (const Decimal& value : list) {
        NumberSpec spec;
        spec.low = spec.high = text::Bound{value, false};
        spec.all_spellings = all_spellings;
        ways.push_back(text::numbers(languages_, spec, any_spelling_));
    }
    return languages_.either(std::move(ways));
}

}  // namespace sglite::json
