// Strings, keys and numbers while they are read: interned states with remembered steps.
//
// A state says where the content stands, a "base", and where its spelling does: at the border of
// two characters, within one, or within an escape. Bases step on decoded content, states on the
// bytes as they are written.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "../text/languages.h"
#include "pools.h"

namespace sglite::json {

using LexId = int32_t;
using BaseId = int32_t;
constexpr int32_t kDeadLex = -1;
constexpr int32_t kQuoted = -2;  // the closing quote was read, and the content is accepted

// The keys that may come at one place of one object.
struct KeyPlan {
    std::vector<std::string> names{};    // sorted
    std::vector<int32_t> allowed{};      // [names + 1]: how many of the names before are allowed
    text::LangId extra = text::kNoText;  // other keys; some of `names` may be among them

    bool is_allowed(size_t name) const { return allowed[name] != allowed[name + 1]; }
};

class Lexer {
  public:
    // `writes_all`: whether no byte is barred from the languages.
    Lexer(text::Languages& languages, bool any_spelling, bool writes_all)
        : languages_(languages), any_(any_spelling), writes_all_(writes_all) {
        add_plan({{}, {0}, text::kNoText});
    }

    // The contents of a string, or the text of a number, for several languages at once ("lanes").
    // kDeadLex where all of them are empty.
    LexId begin_string(std::span<const text::LangId> lanes) { return begin(lanes, kBorder); }
    LexId begin_number(std::span<const text::LangId> lanes) { return begin(lanes, kNumber); }
    int32_t add_plan(KeyPlan plan);
    const KeyPlan& plan(int32_t id) const { return *plans_[id]; }
    // kDeadLex where no key can come.
    LexId begin_key(int32_t plan);

    // Goes on by a byte as it is written.
    int32_t next(LexId lex, uint8_t byte) {
        const int32_t* const next = states_[lex].next;
        return next != nullptr && next[byte] != kUnknown ? next[byte] : find_next(lex, byte);
    }
    // The decoded content that this step adds, up to four bytes; returns how many.
    int content(LexId lex, uint8_t byte, char* out) const;

    // Whether a string is between two characters, where the bases below are meant.
    bool at_border(LexId lex) const { return states_[lex].spelling == kBorder; }
    bool in_escape(LexId lex) const;
    BaseId base(LexId lex) const { return states_[lex].base; }
    BaseId next_content(BaseId base, uint8_t byte);
    text::Reach reach(BaseId base);
    // The lanes whose language holds the content; of an accepted key: lane 0.
    const std::vector<int32_t>& accepted(BaseId base);

    // Of keys. `low` to `high`: the plan's names that begin with the content, of `depth` bytes.
    struct Key {
        int32_t low, high, depth;
        text::TextState extra;  // kDeadText: no other key begins so
    };
    bool is_key(BaseId base) const { return bases_[base].plan >= 0; }
    Key key(BaseId base) const;
    // The plan that `low` and `high` speak of: that of the object, or a part of it.
    const KeyPlan& plan_of(BaseId base) const { return *plans_[bases_[base].plan]; }
    // The classes of the bytes that lead on from a base to the same place each; null: not known.
    const uint8_t* classes(BaseId base) const;
    // Of strings and numbers: the live lanes, each with its state.
    std::vector<std::pair<int32_t, text::TextState>> lanes(BaseId base) const;
    // Ways to finish an escape, the cheapest among them. Of a state in no escape: itself.
    struct Ending {
        LexId lex;
        int32_t bytes;
        std::string content{};  // the character
    };
    std::vector<Ending> endings(LexId lex);

    // A state with the same next steps for texts as long as a token.
    LexId clipped(LexId lex);
    BaseId clipped_base(BaseId base);
    size_t memory() const;

  private:
    static constexpr int32_t kUnknown = -3;
    static constexpr int32_t kNoNames = 0;              // a plan
    static constexpr int32_t kBorder = 0, kNumber = 7;  // spellings without more to say
    struct Base {
        std::vector<int32_t> parts;  // lanes and TextStates in turn; of keys: the parts of Key
        int32_t plan;                // of keys, else -1
        int32_t* next = nullptr;     // per byte; made when first asked for
        std::unique_ptr<std::vector<int32_t>> accepted{};
    };
    struct State {
        BaseId base;
        int32_t spelling;
        int32_t* next = nullptr;
    };

    LexId begin(std::span<const text::LangId> lanes, int32_t spelling);
    BaseId add_base(std::vector<int32_t> parts, int32_t plan);
    LexId add_state(BaseId base, int32_t spelling);
    int32_t* make_row();
    int32_t find_next(LexId lex, uint8_t byte);
    int32_t step(LexId lex, uint8_t byte);
    BaseId find_content(BaseId base, uint8_t byte);
    int32_t part_of(int32_t plan, int32_t low, int32_t high);
    BaseId find_key_content(BaseId base, uint8_t byte);
    LexId at_character(BaseId base, uint32_t code);
    LexId read_raw(BaseId base, int32_t rest, uint8_t byte);
    LexId read_short(BaseId base, uint8_t byte);
    void find_endings(const Ending& begun, std::vector<Ending>& found);
    LexId read_hex(BaseId base, int32_t spelling, uint8_t byte);
    bool allows(BaseId base, uint32_t low, uint32_t high);
    bool allows_unit(BaseId base, uint32_t low, uint32_t high);
    bool allows_escape(BaseId base);

    text::Languages& languages_;
    const bool any_, writes_all_;
    std::vector<std::unique_ptr<KeyPlan>> plans_;
    std::unordered_map<std::string, int32_t> plan_parts_;
    std::vector<Base> bases_;
    std::vector<State> states_;
    std::vector<std::unique_ptr<int32_t[]>> rows_;  // of several states each
    size_t rows_left_ = 0, rows_made_ = 0;
    std::unordered_map<std::vector<int32_t>, BaseId, NumbersHash> base_ids_;
    std::unordered_map<uint64_t, LexId> state_ids_;
};

}  // namespace sglite::json
