// The goals of one document: interned sets of formulas, and which of them can be met.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "goals.h"
#include "progress.h"
#include "scalars.h"
#include "shapes.h"

namespace sglite::json {

struct LitsHash {
    size_t operator()(const std::vector<Lit>& lits) const {
        uint64_t hash = 0x9E3779B97F4A7C15u;
        for (const Lit lit : lits) {
            hash = (hash ^ static_cast<uint32_t>(lit)) * 0xBF58476D1CE4E5B9u;
            hash ^= hash >> 29;
        }
        return hash;
    }
};

// Goals are found with all shapes that the formulas allow; `cost` falls from kUnreachable to the
// least fixpoint; then what cannot be met is taken out of the shapes, and they do not change again.
struct Goals::Inside final : public Shapes::Source, public Costs {
    Inside(Value schema, text::Languages& languages, Spelling& spelling, const Style& style);

    // Shapes::Source
    GoalId goal_of(std::vector<Lit> lits) override;
    // Costs
    int32_t goal(GoalId id) override;
    int32_t nth(GoalId id, int64_t others) override;
    GoalId both(GoalId a, GoalId b) override;
    int64_t supply(GoalId id) override;

    GoalId add(Goal goal);
    // Finds, or refuses, all that reading a text can ask for.
    void prepare();
    int32_t scalar_cost(const Goal& goal);
    // Finds all goals that arise from the ones that are new, and solves them.
    void settle();
    // A schema that no value satisfies, as deep within the whole as is certain, where the whole is
    // one.
    int32_t blame();
    GoalId alive(GoalId id) const {
        return id == kNever || found[id].cost >= kUnreachable ? kNever : id;
    }
    size_t memory() const;

    const Value schema;
    text::Languages& languages;
    Spelling& spelling;
    const Style style;
    Document document;
    Formulas formulas;
    Texts texts;
    Work work;
    Reader reader;
    Truths truths;
    Disjoint disjoint;
    Expander expander;
    Scalars scalars;
    Shapes shapes;

    std::vector<std::vector<Lit>> lits;                  // per goal
    std::deque<Goal> found;                              // per goal
    std::vector<std::vector<Scalars::Numbers>> numbers;  // per goal
    GoalId root = kNever;

    std::unordered_map<uint64_t, GoalId> pairs;

  private:
    // What a value costs that must differ from others, while none that does is known.
    static constexpr int32_t kNotFound = 1 << 20;

    struct Ranks {
        std::vector<int32_t> costs{};  // of different values, ascending
        int32_t heaviest = 0;          // of all that were looked at, holds for all if they are few
        bool is_whole = true;          // whether every shape has a cost by now
    };

    struct Supply {
        int64_t count = 0;
        bool exact = true;
    };

    // Refusals without a place get that of the goal.
    template <typename Do>
    void placed(size_t id, const Do& work_on) {
        try {
            work_on(static_cast<GoalId>(id));
        } catch (const Refused& refused) {
            if (!refused.pointer.empty() || lits[id].empty()) throw;
            document.refuse(refused.what(), formulas.node(lits[id].back()).pointer);
        }
    }
    // Refusals of languages get the place of the only pattern that has a part in them.
    template <typename Do>
    void patterned(GoalId id, Type type, const Do& work_on) {
        try {
            work_on();
        } catch (const Refused& refused) {
            const int32_t pattern = refused.pointer.empty() ? only_pattern(id, type) : 0;
            if (pattern == 0) throw;
            document.refuse(refused.what(), pattern);
        }
    }
    // The pointer of the pattern or format of strings or of keys, 0 if there is not exactly one.
    int32_t only_pattern(GoalId id, Type type);
    void discover(GoalId id);
    void solve();
    void evaluate(GoalId id);
    int32_t cost_of(const ObjectShape& shape);
    int32_t cost_of(const ArrayShape& shape);
    ObjectShape living(const ObjectShape& shape) const;
    ArrayShape living(const ArrayShape& shape) const;
    bool drop_scarce();
    void finish(GoalId id);
    void use(GoalId id);
    void check_items();
    void settle_keys(const ObjectShape& shape);
    void prepare(const ObjectShape& shape);
    void prepare(const ArrayShape& shape);

    // Bounds of up to `count` different values.
    Ranks ranks(GoalId id, size_t count, int depth);
    const std::vector<int32_t>& scalar_ranks(GoalId id, size_t count);
    Ranks ranks_of(const ObjectShape& shape, size_t count, int depth);
    Ranks ranks_of(const ArrayShape& shape, size_t count, int depth);

    const Supply& supply_of(GoalId id);
    Supply count(const ObjectShape& shape);
    Supply count(const ArrayShape& shape);
    bool list_values(GoalId id, std::set<std::string>& values);
    bool list_values(const ObjectShape& shape, std::set<std::string>& values);
    bool list_values(const ArrayShape& shape, std::set<std::string>& values);
    bool lengthen(std::vector<std::string>& ways, const std::string& before, GoalId id);
    Supply count_numbers(const std::vector<Scalars::Numbers>& ways);

    std::unordered_map<std::vector<Lit>, GoalId, LitsHash> ids_;
    std::vector<GoalId> by_lit_;  // of goals with a single literal; kUnknown
    static constexpr GoalId kUnknown = -2;
    const std::array<int32_t, 3> literals_;  // what they cost
    bool is_solved_ = false;                 // costs do not fall any more
    size_t discovered_ = 0;                  // goals whose shapes are known
    size_t finished_ = 0;                    // goals that do not change any more
    size_t prepared_ = 0;                    // goals of which nothing can fail later
    GoalId evaluated_ = kNever;
    std::vector<std::vector<GoalId>> users_;  // per goal, whose costs depend on it
    std::vector<GoalId> queue_;
    std::vector<bool> queued_;
    std::unordered_map<GoalId, Supply> supplies_;
    int supply_depth_ = 0;
    // Per goal: bounds of its scalars, ascending, and how many were asked for.
    std::unordered_map<GoalId, std::pair<size_t, std::vector<int32_t>>> scalar_ranks_;
    int32_t objects_ = 0;               // shapes so far
    std::vector<int32_t> array_costs_;  // per shape, as far as they are known
    bool has_unique_ = false;
};

}  // namespace sglite::json
