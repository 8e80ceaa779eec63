// The goals of one document: interning them, and finding what they consist of.
#include "goals.h"

#include <algorithm>

#include "goals_inside.h"

namespace sglite::json {
namespace {

constexpr size_t kMostGoals = 200'000;

}  // namespace

Goals::Inside::Inside(Value whole, text::Languages& pool, Spelling& tokens, const Style& options)
    : Costs(tokens, options),
      schema(std::move(whole)),
      languages(pool),
      spelling(tokens),
      style(options),
      document(schema),
      texts(document, formulas, languages),
      reader(document, formulas, texts),
      truths(document, formulas, reader, work),
      disjoint(formulas, truths, texts),
      expander(document, formulas, reader, truths, disjoint, work),
      scalars(document, formulas, reader, truths, expander, texts, languages, style.any_spelling),
      shapes(document, formulas, truths, texts, languages, *this),
      literals_{spelling.of(kLiterals[0]), spelling.of(kLiterals[1]), spelling.of(kLiterals[2])} {
    texts.satisfying = [this](Lit lit) { return scalars.strings({lit}); };
}

// Interning

GoalId Goals::Inside::goal_of(std::vector<Lit> wanted) {
    size_t kept = 0;
    for (const Lit lit : wanted) {
        const Lit settled = reader.settled(lit);
        if (settled == kFalse) return kNever;
        if (settled != kTrue) wanted[kept++] = settled;
    }
    wanted.resize(kept);
    if (kept > 1) {
        std::ranges::sort(wanted);
        wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
        for (size_t i = 1; i < wanted.size(); ++i) {
            if (wanted[i] == negated(wanted[i - 1])) return kNever;
        }
    }
    const Lit single = wanted.empty() ? kTrue : wanted.size() == 1 ? wanted[0] : -1;
    if (single >= 0) {
        if (by_lit_.size() <= static_cast<size_t>(single)) {
            by_lit_.resize(formulas.size() * 2, kUnknown);
        }
        if (by_lit_[single] != kUnknown) return by_lit_[single];
    } else if (const auto known = ids_.find(wanted); known != ids_.end()) {
        return known->second;
    }
    if (found.size() == kMostGoals) {
        throw Refused("the schema is too large to compile; make it smaller");
    }
    const auto id = static_cast<GoalId>(found.size());
    if (single >= 0) {
        by_lit_[single] = id;
    } else {
        ids_.emplace(wanted, id);
    }
    lits.push_back(std::move(wanted));
    found.emplace_back().cost = kUnreachable;
    numbers.emplace_back();
    users_.emplace_back();
    queued_.push_back(false);
    return id;
}

GoalId Goals::Inside::both(GoalId a, GoalId b) {
    if (a == kNever || b == kNever) return kNever;
    if (a == b) return a;
    const auto [low, high] = std::minmax(a, b);
    const uint64_t key = static_cast<uint64_t>(low) << 32 | static_cast<uint32_t>(high);
    if (const auto known = pairs.find(key); known != pairs.end()) return known->second;
    std::vector<Lit> all = lits[a];
    all.insert(all.end(), lits[b].begin(), lits[b].end());
    const GoalId id = goal_of(std::move(all));
    pairs.emplace(key, id);
    return id;
}

// It stands beside the goals of formulas: nothing is left to be found of it.
GoalId Goals::Inside::add(Goal goal) {
    found.push_back(std::move(goal));
    lits.emplace_back();
    numbers.emplace_back();
    users_.emplace_back();
    queued_.push_back(false);
    discovered_ = finished_ = found.size();
    return static_cast<GoalId>(found.size()) - 1;
}

// Finding

void Goals::Inside::discover(GoalId id) {
    Goal& goal = found[id];
    const std::vector<Lit> wanted = lits[id];
    work.spend(8);
    std::array<bool, kTypes> possible{};
    for (int t = 0; t < kTypes; ++t) {
        possible[t] = std::ranges::all_of(
            wanted, [&](Lit lit) { return truths.of(lit, static_cast<Type>(t)) != Truth::kFalse; });
    }
    const auto can = [&](Type type) { return possible[static_cast<size_t>(type)]; };
    goal.null = can(Type::kNull);
    goal.truth = can(Type::kTrue);
    goal.falsity = can(Type::kFalse);
    if (can(Type::kString)) {
        patterned(id, Type::kString, [&] {
            goal.strings = scalars.strings(wanted);
            if (languages.empty(goal.strings)) goal.strings = text::kNoText;
        });
    }
    if (can(Type::kInteger) || can(Type::kFraction)) {
        Scalars::Found numbers = scalars.numbers(wanted);
        goal.numbers = languages.empty(numbers.language) ? text::kNoText : numbers.language;
        this->numbers[id] = std::move(numbers.ways);
    }
    if (can(Type::kObject)) {
        for (const Atoms& atoms : expander.run(wanted, Type::kObject)) {
            std::optional<ObjectShape> shape;
            patterned(id, Type::kObject, [&] { shape = shapes.object(atoms); });
            if (shape) {
                shape->id = objects_++;
                found[id].objects.push_back(std::move(*shape));
            }
        }
    }
    if (can(Type::kArray)) {
        for (const Atoms& atoms : expander.run(wanted, Type::kArray)) {
            if (auto shape = shapes.array(atoms)) {
                has_unique_ = has_unique_ || shape->unique;
                shape->id = static_cast<int32_t>(array_costs_.size());
                array_costs_.push_back(kUnreachable);
                found[id].arrays.push_back(std::move(*shape));
            }
        }
    }
}

size_t Goals::Inside::memory() const {
    size_t bytes = formulas.memory() + pairs.size() * 64;
    bytes += found.size() * (sizeof(Goal) + 160);
    return bytes;
}

// The face

Goals::Goals(Value schema, text::Languages& languages, Spelling& spelling, const Style& style)
    : inside_(std::make_unique<Inside>(std::move(schema), languages, spelling, style)) {
    inside_->root = inside_->goal_of({inside_->formulas.schema(inside_->document.root())});
    inside_->settle();
    inside_->root = inside_->alive(inside_->root);
    if (inside_->root == kNever) {
        inside_->document.refuse(inside_->too_long ? "no value of fewer than 2^29 tokens can match"
                                                   : "nothing can match",
                                 inside_->blame());
    }
    inside_->prepare();
}

Goals::~Goals() = default;

GoalId Goals::root() const { return inside_->root; }

const Goal& Goals::goal(GoalId id) const { return inside_->found[id]; }

GoalId Goals::both(GoalId a, GoalId b) {
    inside_->work.refill();
    const GoalId id = inside_->both(a, b);
    inside_->settle();
    return inside_->alive(id);
}

GoalId Goals::add(Goal goal) { return inside_->add(std::move(goal)); }

int32_t Goals::nth(GoalId id, int64_t others) const { return inside_->nth(id, others); }
int32_t Goals::scalar_cost(const Goal& goal) const { return inside_->scalar_cost(goal); }

text::LangId Goals::texts_of(const text::Decimal& number) {
    return inside_->scalars.values({number}, true);
}

size_t Goals::memory() const { return inside_->memory(); }

}  // namespace sglite::json
