// Strings whose characters mostly lead to one place again: identifiers, words, all but a slash.
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <unordered_map>

#include "../slices.h"
#include "lexer.h"

namespace sglite::json {

// Characters of ASCII, and all others together.
using CharacterSet = std::bitset<StringSlice::kBeyond + 1>;

// Behind a first character of `first`, texts of up to `most` characters of `loop` lead to places
// that all characters of `loop` can follow, or, behind `most` of them, none if `hard`.
struct Steady {
    CharacterSet first{};
    CharacterSet loop{};
    CharacterSet ends{};  // that can follow at none of these places
    int32_t most = 0;
    bool hard = false;
};

class Steadies {
  public:
    // `barred`: bytes that no text holds.
    Steadies(Lexer& lexer, const std::bitset<256>& barred) : lexer_(lexer), barred_(barred) {}

    // Null where few characters go on so.
    const Steady* find(BaseId from);

  private:
    static constexpr BaseId kMixed = -4;  // to several bases
    // Per character where it leads, as far as texts as long as a token can tell, and a base itself.
    struct Leads {
        std::array<BaseId, StringSlice::kBeyond + 1> alike, to;
    };
    bool is_worth_a_look(BaseId from);
    const Leads& leads(BaseId from);
    CharacterSet followers(BaseId from);
    bool goes_on(BaseId from, const CharacterSet& characters);
    BaseId beyond(BaseId from);
    bool follow(BaseId from, int low, int high, int more, BaseId& to);
    void explore(BaseId from, Steady& found);

    Lexer& lexer_;
    const std::bitset<256>& barred_;
    std::unordered_map<BaseId, std::unique_ptr<Leads>> leads_;
    std::unordered_map<BaseId, Steady> known_;
};

}  // namespace sglite::json
