// Left recursion, taken out of a network without a change of its language.
#pragma once

#include "network.h"

namespace sglite {

// Rewrites the rules that can begin with themselves before reading a byte, directly, through other
// rules, or behind rules that can match the empty text. Throws Refused where the rewritten rules
// would outgrow the limit.
void remove_left_recursion(Network& network);

}  // namespace sglite
