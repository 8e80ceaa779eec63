// Expressions, and how they are laid out as a network. The front ends call this from Python.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "network.h"

namespace sglite {

// Expressions are numbered in the order of their making and may be used any number of times.
class Builder {
  public:
    int literal(std::string bytes);
    int characters(Ranges ranges, Spelling spelling);
    int any_bytes();
    int sequence(std::vector<int> parts);
    int choice(std::vector<int> parts);      // of none: matches nothing
    int repeat(int part, int min, int max);  // max -1: without end
    // A finite automaton over characters: edges are (from, to, ranges).
    int automaton(int states, int start, const std::vector<int>& accepting,
                  const std::vector<std::tuple<int, int, Ranges>>& edges, Spelling spelling);
    // Items in any order, each at most once, those marked required exactly once, `extra` (or -1)
    // any number of times; `separator` between them, `close` behind.
    int free_order(const std::vector<std::pair<int, bool>>& items, int extra, int separator,
                   int close);

    // What a machine of its own matches. Throws Refused where the machine does.
    int embed(MakeMachine make);

    int rule(std::string name);  // declares a rule, to be defined later
    int call(int rule);          // the expression that stands for it
    void define(int rule, int body);

    // Throws Refused where a rule lacks a definition or the network grows beyond `most_edges`.
    Network lay_out(int root, size_t most_edges) const;

  private:
    enum class Kind {
        kLiteral,
        kCharacters,
        kBytes,
        kSequence,
        kChoice,
        kRepeat,
        kAutomaton,
        kFreeOrder,
        kMachine,
        kCall
    };
    struct Expression {
        Kind kind;
        std::vector<int> parts{};
        std::string bytes{};
        int min = 0, max = 0;
        int fragment = -1;
        int start = 0;  // or the number of the rule, or of the machine
        bool can_be_empty = false;
        std::vector<std::array<int, 3>> edges{};  // automaton: from, to, fragment
        std::vector<bool> required{};
    };
    class Layout;

    int add(Expression expression);
    int check(int expression) const;
    int fragment(const Ranges& ranges, Spelling spelling);

    std::vector<Expression> expressions_;
    std::vector<int> bodies_;  // per rule
    std::vector<std::string> names_;
    std::vector<Embedded> machines_;
    std::vector<Fragment> fragments_;
    std::map<std::pair<Ranges, Spelling>, int> fragment_ids_;
};

}  // namespace sglite
