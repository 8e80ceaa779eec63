// What the keys of one object cost, in one frame.
#pragma once

#include <unordered_map>
#include <vector>

#include "machine.h"

namespace sglite::json {

struct JsonMachine::KeyCosts {
    struct Name {
        int32_t behind;                       // from behind the colon; kUnreachable: not allowed
        const std::vector<int32_t>* spelled;  // per byte: tokens to the end of the name
    };
    std::vector<Name> names{};  // of the plan
    // Of keys that are none of the names: whether the states of their kinds say what they cost, and
    // no used key is in the way.
    bool is_told = false;
    // All kinds cost the same: then the base of the key says it.
    bool by_base = false;
    BaseId kinds = kDeadLex;        // at the beginning of a key, with a lane per kind
    std::vector<int32_t> behind{};  // per kind: from behind the colon
    std::unordered_map<uint64_t, int32_t> known{};
};

}  // namespace sglite::json
