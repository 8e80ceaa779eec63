// Objects and arrays while they are read: interned sets of shapes with their progress.
//
// A value may have to meet one of several goals at once ("lanes"), and a goal one of several
// shapes; an item is one of them that is still possible. Nothing here knows of bytes or of what
// stands around the object or array.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "distinct.h"
#include "goals.h"
#include "lexer.h"
#include "pools.h"
#include "progress.h"

namespace sglite::json {

// What can be asked of the next value, and which items are left once it is met.
template <typename Item>
struct Next {
    GoalId goal;
    Item item;
};

struct ObjectItem {
    int32_t lane;
    const ObjectShape* shape;
    ObjectProgress at;
    int32_t close;  // tokens up to the closing brace, from behind a member
    // Objects that this one must not become, as far as the members so far are theirs too, and how
    // many these are. Before the value of a member is known: those that have its key.
    std::vector<int32_t> rivals{};
    int32_t agreeing = 0;
};

// Extra keys that one item takes in one way.
struct KeyKind {
    text::LangId keys;
    int32_t lane;
    int32_t behind;  // tokens from behind the colon to behind the closing brace
};

// What one item asks behind a name of the plan.
struct NamePrice {
    size_t name;  // its place in the plan
    int32_t lane;
    int32_t behind;  // tokens from behind the colon to behind the closing brace
};

struct ObjectState {
    std::vector<ObjectItem> items;
    std::vector<std::string> extras;  // keys that some item has as extra ones, used or of rivals
    std::vector<int32_t> closing;     // lanes that are met by closing here
    int32_t plan = -1;                // of the keys that can come; -1: not known yet
    LexId key = kDeadLex;             // at the beginning of a key; kDeadLex: none can come
    bool uniform = false;             // all extra keys ask the same of what follows them
    // Whether which further keys are the lightest depends on the next one: some are still missing.
    bool scarce = false;
    bool watched = false;        // whether some item has rivals
    std::vector<KeyKind> kinds;  // of extra keys; empty: not known yet
};

class Objects {
  public:
    Objects(Goals& goals, text::Languages& languages, Lexer& lexer, Costs& costs,
            Distinct& distinct, bool declared)
        : goals_(goals),
          languages_(languages),
          lexer_(lexer),
          costs_(costs),
          distinct_(distinct),
          declared_(declared) {}

    // Behind the opening brace of a value with these goals, one per lane. -1: no object fits.
    int32_t begin(const std::vector<GoalId>& lanes);
    const ObjectState& operator[](int32_t id) const { return states_[id]; }
    // The same, with what is known of its keys.
    const ObjectState& with_keys(int32_t id);
    // Of the extra keys, those that ask the same of their values, for some item; they overlap.
    const std::vector<KeyKind>& kinds_of_keys(int32_t id);
    // Of the names of the plan, per item that takes them; nothing is built for their members.
    std::vector<NamePrice> prices_of_names(int32_t id);
    // What the member `key` leads to.
    std::vector<Next<ObjectItem>> member(int32_t id, const std::string& key);
    // The same item once the value of the member `key` is known.
    ObjectItem agreed(ObjectItem item, std::string_view key, int32_t value);
    // The state of these items; not of none.
    int32_t intern(std::vector<ObjectItem> items);
    // The least cost of an object that meets the goal.
    int32_t least(const Goal& goal);
    size_t memory() const { return memory_; }

  private:
    // What is left of a shape's room once its required keys have come.
    struct Room {
        int32_t missing = 0;        // required names that have not come
        int32_t first = INT32_MAX;  // of them
        bool plain;                 // nothing but required names and a greatest number decides

        explicit Room(const ObjectItem& item);
    };
    // Where a search among the keys has come: they are tried in one order only.
    struct Turn {
        size_t name = 0;      // names before this one are passed by
        std::string extra{};  // so are extra keys up to this one
    };

    static std::string key_of(const std::vector<ObjectItem>& items);
    std::vector<ObjectItem> beginnings(const Goal& goal, int32_t lane);
    bool is_rival(const ObjectItem& item) const;
    std::vector<std::string> extras_of_rivals(const ObjectItem& item) const;
    int32_t cost(const ObjectItem& item, const Turn& turn);
    int32_t cost_of_members(const ObjectItem& item, const Turn& turn);
    bool fits(const ObjectItem& item, const Room& room, size_t name) const;
    void add_next(const ObjectItem& item, std::string_view key, GoalId goal, ObjectProgress after,
                  int32_t close, const Turn& turn, std::vector<Next<ObjectItem>>& found);
    void add_kind(const ObjectItem& item, const ObjectShape::Extra& extra, uint32_t met,
                  std::vector<KeyKind>& kinds);
    bool can_close(const ObjectItem& item) const;
    bool takes_name(const ObjectItem& item, size_t name);
    text::LangId extra_keys(const ObjectItem& item);
    void take(const ObjectItem& item, const std::string& key, GoalId value, ObjectProgress after,
              const Turn& turn, std::vector<Next<ObjectItem>>& found);
    ObjectProgress after_name(const ObjectItem& item, size_t name) const;
    ObjectProgress after_extra(const ObjectItem& item, const std::string& key) const;
    void count(const ObjectShape& shape, ObjectProgress& at) const;

    Goals& goals_;
    text::Languages& languages_;
    Lexer& lexer_;
    Costs& costs_;
    Distinct& distinct_;
    const bool declared_;
    std::deque<ObjectState> states_;
    std::unordered_map<std::string, int32_t> ids_;
    std::unordered_map<std::string, int32_t> known_costs_;  // of items with rivals
    size_t memory_ = 0;
};

struct ArrayItem {
    int32_t lane;
    const ArrayShape* shape;
    ArrayProgress at;
    int32_t close;  // tokens up to the closing bracket, from behind an item
    // Arrays that this one must not become, as far as the items so far are theirs too, and how many
    // these are. Before the value of an item is known: those that are long enough.
    std::vector<int32_t> rivals{};
    int32_t agreeing = 0;
};

struct ArrayState {
    std::vector<ArrayItem> items;
    std::vector<int32_t> used;     // unique: numbers of the values so far, sorted
    std::vector<int32_t> closing;  // lanes that are met by closing here
    bool unique = false;           // whether values must be remembered
    bool watched = false;          // or known: some item has rivals
};

class Arrays {
  public:
    Arrays(Goals& goals, Costs& costs, Distinct& distinct)
        : goals_(goals), costs_(costs), distinct_(distinct) {}

    // Behind the opening bracket of a value with these goals, one per lane. -1: no array fits.
    int32_t begin(const std::vector<GoalId>& lanes);
    const ArrayState& operator[](int32_t id) const { return states_[id]; }
    // What a further item leads to. Those of unique shapes differ from the used values.
    std::vector<Next<ArrayItem>> item(int32_t id);
    // Whether a further item can come.
    bool has_item(int32_t id);
    // The same item once its value is known; `used`: the values up to it.
    ArrayItem agreed(ArrayItem item, int32_t value, const std::vector<int32_t>& used);
    int32_t intern(std::vector<ArrayItem> items, std::vector<int32_t> used);
    // The least cost of an array that meets the goal.
    int32_t least(const Goal& goal);
    size_t memory() const { return memory_; }

  private:
    std::vector<ArrayItem> beginnings(const Goal& goal, int32_t lane);
    bool is_rival(const ArrayItem& item) const;
    int32_t cost(const ArrayItem& item, const std::vector<int32_t>& used);
    void add_next(const ArrayItem& item, GoalId goal, ArrayProgress after,
                  const std::vector<int32_t>& used, std::vector<Next<ArrayItem>>& found);
    void add_items(const ArrayItem& item, const std::vector<int32_t>& used,
                   std::vector<Next<ArrayItem>>& found);
    void spread(const ArrayItem& item, size_t part, GoalId goal, ArrayProgress after,
                const std::vector<int32_t>& used, std::vector<Next<ArrayItem>>& found);
    std::vector<Next<ArrayItem>> next(const ArrayState& state, const std::vector<int32_t>& used);
    bool can_close(const ArrayItem& item) const;
    void cap(const ArrayShape& shape, ArrayProgress& at) const;

    Goals& goals_;
    Costs& costs_;
    Distinct& distinct_;
    std::deque<ArrayState> states_;
    std::unordered_map<std::vector<int32_t>, int32_t, NumbersHash> ids_;
    std::unordered_map<int32_t, bool> has_item_;
    std::unordered_map<std::vector<int32_t>, int32_t, NumbersHash> known_costs_;  // with rivals
    size_t memory_ = 0;
};

}  // namespace sglite::json
