// Goals without some values: what is asked of an item that must differ from others.
//
// Scalars are taken out of the languages of strings and numbers. An object or array that must not
// come goes along as a "rival" of the one that is read for as long as the two agree; see Objects
// and Arrays.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "goals.h"
#include "pools.h"
#include "values.h"

namespace sglite::json {

class Arrays;
class Objects;

// Some values of a goal: all but these, with what the container costs behind any of them.
struct Allowance {
    std::vector<int32_t> barred;
    int32_t close;
};
// One for each cost, from `close`, behind most values, on; `costs`: of those that cost more.
std::vector<Allowance> allowances(int32_t close,
                                  const std::vector<std::pair<int32_t, int32_t>>& costs);

class Distinct {
  public:
    Distinct(Goals& goals, text::Languages& languages, Objects& objects, Arrays& arrays)
        : goals_(goals), languages_(languages), objects_(objects), arrays_(arrays) {}

    // Values of a goal, which is none of those made here, but these; kNever if there are none.
    GoalId except(GoalId goal, const std::vector<int32_t>& values);
    // For the agreement of two values.
    int32_t add(std::string_view text) { return values_.add(text); }
    const Values::Entry& operator[](int32_t value) const { return values_[value]; }
    size_t memory() const { return memory_ + values_.memory(); }

  private:
    bool can_be(GoalId goal, int32_t value);
    GoalId find(GoalId goal, const std::vector<int32_t>& values);
    text::LangId strings(text::LangId all, const std::vector<int32_t>& values);
    text::LangId texts_of(const text::Decimal& number);
    text::LangId numbers(text::LangId all, const std::vector<int32_t>& values);

    Goals& goals_;
    text::Languages& languages_;
    Objects& objects_;
    Arrays& arrays_;
    Values values_;
    std::unordered_map<std::vector<int32_t>, GoalId, NumbersHash> known_;
    std::unordered_map<uint64_t, bool> can_be_;
    std::unordered_map<int32_t, text::LangId> numbers_;
    size_t memory_ = 0;
};

}  // namespace sglite::json
