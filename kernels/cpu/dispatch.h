// The instruction sets of this build, and which of them this machine can run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "probe.h"
#include "step.h"

namespace sglite {

struct Isa {
    std::string_view name;
    StepFunction step;
    ProbeFunction probe;
    int lanes;  // of its vectors
};

// What this machine can run, the best one first.
std::vector<Isa> detect_isas();

// The one of this name, the best one for "". Throws std::invalid_argument.
Isa choose_isa(const std::string& name);

}  // namespace sglite
