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
    // Whether the base of a key alone says what it costs. Of those that may still be one of the
    // names it always does.
    bool by_base = false;
    int32_t extra = kUnreachable;  // by_base: what every other key costs from behind its colon
    std::unordered_map<BaseId, int32_t> known{};
};

}  // namespace sglite::json
