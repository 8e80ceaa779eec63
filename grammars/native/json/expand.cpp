// Formulas to alternatives: single atoms first, then the forks with the fewest options left.
#include "expand.h"

#include <algorithm>
#include <set>

namespace sglite::json {
namespace {

constexpr size_t kMostAlternatives = 8192;
// Among so many alternatives those that another one includes are looked for.
constexpr size_t kFewAlternatives = 64;

}  // namespace

std::vector<Atoms> Expander::run(const std::vector<Lit>& lits, Type type) {
    restore(0);  // a refusal may have left atoms
    type_ = type;
    depth_ = 0;
    branching_ = false;
    found_.clear();
    forks_.clear();
    bool possible = true;
    for (const Lit lit : lits) possible = possible && add(lit, 0);
    branching_ = true;
    if (possible) branch();
    restore(0);
    if (found_.size() < 2) return std::move(found_);
    std::vector<Atoms> sorted = found_;
    for (Atoms& atoms : sorted) std::ranges::sort(atoms);
    std::vector<Atoms> kept;
    std::set<Atoms> seen;
    for (size_t i = 0; i < sorted.size(); ++i) {
        bool needed = seen.insert(sorted[i]).second;
        for (size_t j = 0; j < sorted.size() && needed && sorted.size() <= kFewAlternatives; ++j) {
            needed = sorted[i].size() <= sorted[j].size() ||
                     !std::ranges::includes(sorted[i], sorted[j]);
        }
        if (needed) kept.push_back(std::move(found_[i]));
    }
    return kept;
}

void Expander::mark(Lit lit) {
    if (held_.size() <= static_cast<size_t>(lit | 1)) held_.resize(formulas_.size() * 2, 0);
    held_[lit] = 1;
    atoms_.push_back(lit);
}

void Expander::restore(size_t atoms) {
    while (atoms_.size() > atoms) {
        held_[atoms_.back()] = 0;
        atoms_.pop_back();
    }
}

// False where the conjunction cannot hold any more.
bool Expander::add(Lit lit, int depth) {
    work_.spend();
    if (depth > kDeepestFormula) {
        document_.refuse("the schema is nested too deeply; make it flatter",
                         formulas_.node(lit).pointer);
    }
    const Truth truth = truths_.of(lit, type_);
    if (truth == Truth::kFalse) return false;
    const Node node = formulas_.node(lit);
    const bool negative = is_negated(lit);
    // Of objects also the members that may have any value are wanted, for their order.
    if (truth == Truth::kTrue && (type_ != Type::kObject || negative)) return true;
    switch (node.op) {
        case Op::kTrue:
            return true;
        case Op::kSchema: {
            const Lit body = reader_.body(lit & ~1);
            return add(negative ? negated(body) : body, depth + 1);
        }
        case Op::kAll:
            if (!negative) {
                for (int32_t i = 0; i < node.b; ++i) {
                    if (!add(formulas_.parts(node)[i], depth + 1)) return false;
                }
                return true;
            } else {
                Fork fork{{}, node.pointer};
                for (int32_t i = 0; i < node.b; ++i) {
                    fork.options.push_back({negated(formulas_.parts(node)[i])});
                }
                return add_fork(std::move(fork), depth);
            }
        case Op::kOne:
            return truth == Truth::kTrue || exactly_one(node, negative, depth);
        default:
            if (truth == Truth::kTrue && node.op != Op::kMembers) return true;
            return add_atom(lit, node, depth);
    }
}

bool Expander::add_atom(Lit lit, const Node& node, int depth) {
    if (is_negated(lit)) {
        if (node.op == Op::kMembers && formulas_.key_set(node.a).name >= 0 && node.b != kFalse) {
            const Lit absent = formulas_.atom(Op::kMembers, node.pointer, node.a, kFalse);
            const Lit other = formulas_.atom(Op::kMembers, node.pointer, node.a, negated(node.b));
            return add(negated(absent), depth + 1) && add(other, depth + 1);
        }
        if (node.op == Op::kItems && node.b >= 0) {
            const Lit other =
                formulas_.atom(Op::kItems, node.pointer, node.a, node.b, negated(node.c));
            return add(formulas_.item_count(node.b, node.pointer), depth + 1) &&
                   add(other, depth + 1);
        }
        if (node.op == Op::kItems && node.c == kFalse) {
            return add(formulas_.item_count(int64_t{node.a} + 1, node.pointer), depth + 1);
        }
        if (node.op == Op::kUnique) {
            document_.refuse(
                "the negation of 'uniqueItems' is not supported (in 'not', 'oneOf', 'if' or a "
                "dependency); state the constraint in another way",
                node.pointer);
        }
    }
    // Of this type, what an atom says of others makes no difference.
    if (node.strict) lit = negated(formulas_.failing(lit));
    if (is_held(negated(lit))) return false;
    if (is_held(lit)) return true;
    if (branching_ && node.op == Op::kMembers && contradicts(lit)) return false;
    mark(lit);
    return true;
}

bool Expander::exactly_one(const Node& node, bool negative, int depth) {
    const std::vector<Lit> parts(formulas_.parts(node).begin(), formulas_.parts(node).end());
    std::vector<Lit> open;
    int held = 0;
    for (const Lit part : parts) {
        const Truth truth = truths_.of(part, type_);
        held += truth == Truth::kTrue;
        if (truth == Truth::kOpen) open.push_back(part);
    }
    Fork fork{{}, node.pointer};
    const auto none = [&] {
        std::vector<Lit> option;
        for (const Lit part : open) option.push_back(negated(part));
        return option;
    };
    if (held == 1) {
        if (!negative) {
            fork.options.push_back(none());
        } else {
            for (const Lit part : open) fork.options.push_back({part});
        }
        return add_fork(std::move(fork), depth);
    }
    if (negative) fork.options.push_back(none());
    for (size_t i = 0; i < open.size(); ++i) {
        std::vector<Lit> only{open[i]};
        for (size_t j = 0; j < open.size(); ++j) {
            if (i == j || disjoint_.at(open[i], open[j], type_)) continue;
            if (negative && i < j) fork.options.push_back({open[i], open[j]});
            if (!negative) only.push_back(negated(open[j]));
        }
        if (!negative) fork.options.push_back(std::move(only));
    }
    return add_fork(std::move(fork), depth);
}

// Drops the options that cannot hold; a single one left is no fork.
bool Expander::add_fork(Fork fork, int depth) {
    std::vector<std::vector<Lit>> possible;
    for (std::vector<Lit>& option : fork.options) {
        bool sure = true, dead = false;
        for (const Lit lit : option) {
            const Truth truth = standing(lit);
            dead = dead || truth == Truth::kFalse;
            sure = sure && truth == Truth::kTrue;
        }
        if (dead) continue;
        if (sure) return true;
        possible.push_back(std::move(option));
    }
    if (possible.empty()) return false;
    if (possible.size() == 1) {
        for (const Lit lit : possible[0]) {
            if (!add(lit, depth + 1)) return false;
        }
        return true;
    }
    forks_.push_back({std::move(possible), fork.pointer});
    return true;
}

// Looks at the open forks again until none changes. False where one has no option left.
bool Expander::settle() {
    for (bool changed = true; changed;) {
        changed = false;
        std::vector<Fork> before = std::move(forks_);
        forks_.clear();
        const size_t held = atoms_.size();
        for (Fork& fork : before) {
            work_.spend(static_cast<int64_t>(fork.options.size()));
            if (!add_fork(std::move(fork), 0)) return false;
        }
        changed = atoms_.size() != held && !forks_.empty();
    }
    return true;
}

// Whether every option is a whole schema: one that settles much about the other forks.
bool Expander::is_telling(const Fork& fork) const {
    return std::ranges::all_of(fork.options, [&](const std::vector<Lit>& option) {
        const Op op = formulas_.node(option[0]).op;
        return !is_negated(option[0]) && (op == Op::kSchema || op == Op::kAll);
    });
}

void Expander::branch() {
    if (!settle()) return;
    if (forks_.empty()) return emit();
    const auto smallest = std::ranges::min_element(forks_, {}, [this](const Fork& fork) {
        return std::pair(!is_telling(fork), fork.options.size());
    });
    const Fork fork = std::move(*smallest);
    forks_.erase(smallest);
    if (++depth_ > kDeepestFormula) {
        document_.refuse("too many alternatives within each other", fork.pointer);
    }
    const std::vector<Fork> rest = forks_;
    const size_t held = atoms_.size();
    for (const std::vector<Lit>& option : fork.options) {
        forks_ = rest;
        bool possible = true;
        for (const Lit lit : option) possible = possible && add(lit, 0);
        if (possible) branch();
        restore(held);
    }
    --depth_;
}

void Expander::emit() {
    if (found_.size() == kMostAlternatives) {
        document_.refuse(
            "more than " + std::to_string(kMostAlternatives) + " combinations of alternatives",
            atoms_.empty() ? 0 : formulas_.node(atoms_.back()).pointer);
    }
    found_.push_back(atoms_);
}

}  // namespace sglite::json
