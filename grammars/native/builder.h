// Expressions, and how they are laid out as a network. The front ends call this from Python.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "network.h"
#include "text/regex.h"
#include "vocabulary.h"

namespace sglite {

// Expressions are numbered in the order of their making and may be used any number of times.
class Builder {
  public:
    explicit Builder(std::shared_ptr<Vocabulary> vocabulary);

    int literal(std::string text);                   // UTF-8
    int characters(Ranges ranges, bool complement);  // in any order, overlapping or not
    int any_bytes();
    int sequence(std::vector<int> parts);
    int choice(std::vector<int> parts);      // of none: matches nothing
    int repeat(int part, int min, int max);  // max -1: without end
    // What a pattern of Python's `re` matches in full. Throws Refused, its pointer the position.
    int pattern(std::string_view pattern);
    // Any text up to the first `marker`, which is not empty, and the marker.
    int until(const std::u32string& marker);
    // What a machine of its own matches. Throws Refused where the machine does.
    int embed(MakeMachine make);

    int rule(std::string name);  // declares a rule, to be defined later
    int call(int rule);          // the expression that stands for it
    void define(int rule, int body);

    // Throws Refused where a rule lacks a definition or the network grows beyond `most_edges`.
    Network lay_out(int root, size_t most_edges) const;

    const std::shared_ptr<Vocabulary>& vocabulary() const { return vocabulary_; }

  private:
    enum class Kind {
        kLiteral,
        kCharacters,
        kBytes,
        kSequence,
        kChoice,
        kRepeat,
        kUntil,
        kMachine,
        kCall
    };
    struct Expression {
        Kind kind;
        std::vector<int> parts{};
        std::string text{};
        int min = 0, max = 0;
        int number = 0;  // of the set, the rule or the machine
        bool can_be_empty = false;
        std::vector<std::array<int, 3>> edges{};  // until: from, to, set
    };
    class Layout;

    int add(Expression expression);
    int check(int expression) const;
    int set(Ranges ranges);
    int tree(const text::Regex& tree);
    int concat(const std::vector<text::Regex>& parts);
    int text_machine(text::Regex tree);
    int counted(int part, int min, int max);
    std::optional<text::Regex> regular(int expression, int64_t& size) const;

    std::shared_ptr<Vocabulary> vocabulary_;
    std::vector<Expression> expressions_;
    std::vector<int> bodies_;  // per rule
    std::vector<std::string> names_;
    std::vector<Embedded> machines_;
    std::vector<Ranges> sets_;
    std::vector<Fragment> fragments_;  // per set
    std::map<Ranges, int> set_ids_;
};

}  // namespace sglite
