// Networks, and so context-free grammars, as machines.
#pragma once

#include "machine.h"
#include "network.h"

namespace sglite {

// Finishes the network, and so throws Refused; the vocabulary must outlive the machines.
MakeMachine network_machines(Network network, const Vocabulary& vocabulary, bool check_bytes);

}  // namespace sglite
