// The compiled form of a grammar: a recursive transition network over bytes.
//
// Every rule is a small nondeterministic automaton: byte edges, empty edges and calls of other
// rules. A matcher's position is a set of stacks of nodes (see states.h). Machines of other kinds
// can stand in place of rules. Only live nodes are kept: from each node the end of its rule can be
// reached.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "characters.h"
#include "machine.h"
#include "refused.h"
#include "vocabulary.h"

namespace sglite {

struct ByteEdge {
    ByteRange bytes;
    int32_t to;
};

struct Call {
    int32_t rule;
    int32_t then;  // the node to go on from when the rule is done
};

struct Node {
    std::vector<ByteEdge> bytes;
    std::vector<int32_t> empty;
    std::vector<Call> calls;
    int32_t cost = kUnreachable;  // tokens to the end of the rule
    int32_t machine = -1;         // for the two nodes of an embedded machine
    bool is_exit = false;
};

struct Rule {
    int32_t start = -1;
    int32_t exit = -1;   // none in the rule of an embedded machine
    std::string name{};  // empty for rules that the layout made
    int32_t rank = 0;    // greater than those of the rules that can begin with it
};

// A machine of its own, called like a rule. The rule has a node for its start and one for any
// later position; where the machine is complete, the rule is done. It matches no empty text: where
// the machine does, the layout has an empty edge past the call.
struct Embedded {
    MakeMachine make;
    int32_t cost;  // of the matches that are not empty, kUnreachable if there are none
    int32_t start = -1;
    int32_t inside = -1;
};

struct Network {
    std::vector<Node> nodes;
    std::vector<Rule> rules;
    std::vector<Embedded> machines;
    int32_t root = 0;
};

// Takes out left recursion, computes the costs, drops what is dead, and checks the promises: some
// text matches and, with `check_bytes`, every byte of a match is a token of its own.
// Texts with bytes that the tokeniser cannot write at all (control characters and parts of rare
// characters that occur in no token) are no part of the language; for printable ASCII and
// whitespace that is an error as well. Throws Refused.
void finish(Network& network, const Vocabulary& vocabulary, bool check_bytes);

}  // namespace sglite
