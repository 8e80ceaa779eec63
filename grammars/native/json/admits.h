// Whether a value meets a goal, by definition: what the machine that reads texts is held against.
#pragma once

#include "goals.h"

namespace sglite::json {

bool admits(const Goals& goals, text::Languages& languages, GoalId goal, const Value& value);

}  // namespace sglite::json
