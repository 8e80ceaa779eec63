// The instruction sets of this build, and which of them this machine can run.
#pragma once

#include <string_view>
#include <vector>

#include "step.h"

namespace sglite {

struct Isa {
    std::string_view name;
    StepFunction step;
};

// What this machine can run, the best one first.
std::vector<Isa> detect_isas();

}  // namespace sglite
