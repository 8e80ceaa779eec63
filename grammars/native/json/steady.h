// Strings whose characters mostly lead to one place again: identifiers, words, all but a slash.
#pragma once

#include <bitset>
#include <unordered_map>

#include "../slices.h"
#include "lexer.h"

namespace sglite::json {

// Characters of ASCII, and all others together.
using CharacterSet = std::bitset<StringSlice::kBeyond + 1>;

// Where characters lead: many of them to one base, from which many lead back to it. Bases that no
// text as long as a token tells apart count as the same.
struct Steady {
    CharacterSet first;  // lead there
    CharacterSet dead;   // lead nowhere
    CharacterSet loop;   // lead back from there
    CharacterSet ends;   // lead nowhere from there
};

class Steadies {
  public:
    // `barred`: bytes that no text holds.
    Steadies(Lexer& lexer, const std::bitset<256>& barred) : lexer_(lexer), barred_(barred) {}

    // Null where too few characters lead to any one base.
    const Steady* find(BaseId from);

  private:
    static constexpr BaseId kMixed = -4;  // to several bases
    struct Leads {
        std::array<BaseId, StringSlice::kBeyond + 1> to;
    };
    const Leads& leads(BaseId from);
    BaseId beyond(BaseId from);
    bool follow(BaseId from, int low, int high, int more, BaseId& to);

    Lexer& lexer_;
    const std::bitset<256>& barred_;
    std::unordered_map<BaseId, Leads> leads_;
    std::unordered_map<BaseId, Steady> known_;
};

}  // namespace sglite::json
