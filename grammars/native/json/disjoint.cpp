// Whether two formulas surely have no value in common.
#include "disjoint.h"

#include <algorithm>

namespace sglite::json {
namespace {

constexpr size_t kMostWords = 256;

uint64_t pair_key(int64_t a, int64_t b) { return static_cast<uint64_t>(a) << 32 | b; }

// The names that objects with these atoms must have.
bool demands(const Formulas& formulas, Lit atom, int32_t& name) {
    const Node& node = formulas.node(atom);
    if (node.op != Op::kMembers || !is_negated(atom)) return false;
    name = formulas.key_set(node.a).name;
    return name >= 0;
}

}  // namespace

const std::vector<Lit>& Disjoint::atoms(Lit lit, Type type) {
    const auto [place, fresh] = atoms_.try_emplace(pair_key(lit, static_cast<int>(type)));
    if (fresh) truths_.sure(lit, type, place->second);
    return place->second;
}

bool Disjoint::at(Lit a, Lit b, Type type, int depth) {
    if (a == negated(b)) return true;
    if (truths_.of(a, type) == Truth::kFalse || truths_.of(b, type) == Truth::kFalse) return true;
    const auto [low, high] = std::minmax(a, b);
    const uint64_t key = pair_key(low, high) * kTypes + static_cast<uint64_t>(type);
    if (depth == 3) {
        if (const auto found = known_.find(key); found != known_.end()) return found->second;
    }
    bool differ = false;
    if (type == Type::kString || type == Type::kInteger || type == Type::kFraction) {
        std::vector<Lit> both = atoms(a, type);
        const std::vector<Lit>& more = atoms(b, type);
        both.insert(both.end(), more.begin(), more.end());
        differ = type == Type::kString ? strings_differ(both) : numbers_differ(both);
    } else if (type == Type::kObject && depth > 0) {
        // The second call may move what the first one found.
        const std::vector<Lit> atoms_a = atoms(a, type);
        const std::vector<Lit> atoms_b = atoms(b, type);
        differ = objects_differ(atoms_a, atoms_b, depth);
    }
    if (depth == 3) known_[key] = differ;
    return differ;
}

bool Disjoint::overlap(Lit a, Lit b, int depth) {
    for (int t = 0; t < kTypes; ++t) {
        if (!at(a, b, static_cast<Type>(t), depth)) return true;
    }
    return false;
}

bool Disjoint::strings_differ(const std::vector<Lit>& atoms) {
    const TextSet* words = nullptr;
    for (const Lit atom : atoms) {
        const TextSet& set = formulas_.text_set(formulas_.node(atom).a);
        if (is_negated(atom) || set.kind != TextSet::Kind::kWords) continue;
        if (words == nullptr || set.words.size() < words->words.size()) words = &set;
    }
    if (words == nullptr || words->words.size() > kMostWords) return false;
    return std::ranges::none_of(words->words, [&](std::string_view word) {
        return std::ranges::all_of(atoms, [&](Lit atom) {
            const int32_t id = formulas_.node(atom).a;
            const TextSet& set = formulas_.text_set(id);
            const bool held = set.kind == TextSet::Kind::kWords && set.words.size() < kMostWords
                                  ? std::ranges::find(set.words, word) != set.words.end()
                                  : texts_.contains(id, word);
            return held != is_negated(atom);
        });
    });
}

bool Disjoint::holds(Lit atom, const text::Decimal& value) {
    const Node& node = formulas_.node(atom);
    bool held = true;
    if (node.op == Op::kAbove) {
        const int order = compare(value, formulas_.number_value(node.a));
        held = order > 0 || (order == 0 && node.b == 0);
    } else if (node.op == Op::kMultiple) {
        held = is_multiple(value, formulas_.number_value(node.a));
    } else if (node.op == Op::kListed) {
        const auto& list = formulas_.list(node.a);
        held = std::ranges::binary_search(
            list, value, [](const auto& a, const auto& b) { return compare(a, b) < 0; });
    }
    return held != is_negated(atom);
}

bool Disjoint::numbers_differ(const std::vector<Lit>& atoms) {
    const text::Decimal *low = nullptr, *high = nullptr;
    bool open = false;  // whether one of the limits is excluded
    for (const Lit atom : atoms) {
        const Node& node = formulas_.node(atom);
        if (node.op == Op::kListed && !is_negated(atom)) {
            return std::ranges::none_of(formulas_.list(node.a), [&](const auto& value) {
                return std::ranges::all_of(atoms, [&](Lit other) { return holds(other, value); });
            });
        }
        if (node.op != Op::kAbove) continue;
        const text::Decimal& limit = formulas_.number_value(node.a);
        const text::Decimal*& known = is_negated(atom) ? high : low;
        const int order = known == nullptr ? 0 : compare(limit, *known);
        if (known == nullptr || (is_negated(atom) ? order < 0 : order > 0)) known = &limit;
    }
    if (low == nullptr || high == nullptr) return false;
    const int order = compare(*low, *high);
    if (order != 0) return order > 0;
    for (const Lit atom : atoms) {
        if (formulas_.node(atom).op == Op::kAbove) open = open || !holds(atom, *low);
    }
    return open;
}

// What the value at a name must satisfy.
std::vector<Lit> Disjoint::values_at(const std::vector<Lit>& atoms, int32_t name) {
    std::vector<Lit> found;
    for (const Lit atom : atoms) {
        const Node node = formulas_.node(atom);
        if (node.op != Op::kMembers || is_negated(atom)) continue;
        if (truths_.holds(formulas_.key_set(node.a), name, texts_)) found.push_back(node.b);
    }
    return found;
}

bool Disjoint::objects_differ(const std::vector<Lit>& a, const std::vector<Lit>& b, int depth) {
    for (const auto* atoms : {&a, &b}) {
        for (const Lit atom : *atoms) {
            int32_t name = -1;
            if (!demands(formulas_, atom, name)) continue;
            const std::vector<Lit> in_a = values_at(a, name), in_b = values_at(b, name);
            for (const Lit x : in_a) {
                if (!overlap(x, kTrue, 0)) return true;
                for (const Lit y : in_b) {
                    if (!overlap(x, y, depth - 1)) return true;
                }
            }
            for (const Lit y : in_b) {
                if (!overlap(y, kTrue, 0)) return true;
            }
        }
    }
    return false;
}

}  // namespace sglite::json
