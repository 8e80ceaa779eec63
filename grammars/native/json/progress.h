// How far an object or an array has come within one shape, and what it still needs.
//
// This decides what is alive: a shape can be finished exactly if its cost is not kUnreachable.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "goals.h"

namespace sglite::json {

// Bounds on tokens; `goal` returns kUnreachable for goals that cannot be met (or not yet).
struct Costs {
    std::function<int32_t(GoalId)> goal;
    std::function<int32_t(std::string_view key)> key;  // a key with its quotes and colon
    std::function<GoalId(GoalId, GoalId)> both;
    std::function<int64_t(GoalId)> supply;
    int32_t comma = 1;  // with its space
};

struct ObjectProgress {
    std::vector<bool> used{};           // per name of the shape; empty: none
    std::vector<std::string> extras{};  // used keys that are none of the names, sorted
    int32_t place = 0;                  // declared order: names before this one cannot come any more
    bool behind = false;                // declared order: an extra key has come, only such can follow
    uint32_t open = 0;                  // bit i: shape.some[i] is not met yet
    int64_t members = 0;
};

struct ArrayProgress {
    int64_t items = 0;
    std::vector<int64_t> held{};  // per shape.contains: items that held so far
    int64_t different = 0;        // unique: values that are used up
};

ObjectProgress begin(const ObjectShape& shape);
ArrayProgress begin(const ArrayShape& shape);

// Tokens to the closing brace, which is counted, from behind a member (or the opening brace).
// kUnreachable: cannot be finished. Throws Refused where that needs too long a search.
int32_t cost_to_close(const ObjectShape& shape, const ObjectProgress& at, text::Languages& languages,
                      bool declared_order, const Costs& costs);
int32_t cost_to_close(const ArrayShape& shape, const ArrayProgress& at, const Costs& costs);

}  // namespace sglite::json
