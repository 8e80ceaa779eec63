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
    std::vector<std::string> extras;  // used keys that some item has as extra ones
    std::vector<int32_t> closing;     // lanes that are met by closing here
    int32_t plan = -1;                // of the keys that can come; -1: not known yet
    LexId key = kDeadLex;             // at the beginning of a key; kDeadLex: none can come
    bool uniform = false;             // all extra keys ask the same of what follows them
    // Whether which further keys are the lightest depends on the next one: some are still missing.
    bool scarce = false;
    std::vector<KeyKind> kinds;  // of extra keys; empty: not known yet
};

class Objects {
  public:
    Objects(Goals& goals, text::Languages& languages, Lexer& lexer, Costs& costs, bool declared)
        : goals_(goals), languages_(languages), lexer_(lexer), costs_(costs), declared_(declared) {}

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
    // The state of these items; not of none.
    int32_t intern(std::vector<ObjectItem> items);
    size_t memory() const { return memory_; }

  private:
    struct Room;

    void add_kind(const ObjectItem& item, const ObjectShape::Extra& extra, uint32_t met,
                  std::vector<KeyKind>& kinds);
    bool can_close(const ObjectItem& item) const;
    bool takes_name(const ObjectItem& item, size_t name);
    text::LangId extra_keys(const ObjectItem& item);
    void take(const ObjectItem& item, const std::string& key, GoalId value, ObjectProgress after,
              std::vector<Next<ObjectItem>>& found);
    ObjectProgress after_name(const ObjectItem& item, size_t name) const;
    ObjectProgress after_extra(const ObjectItem& item, const std::string& key) const;
    int32_t cost(const ObjectShape& shape, const ObjectProgress& at);
    void count(const ObjectShape& shape, ObjectProgress& at) const;

    Goals& goals_;
    text::Languages& languages_;
    Lexer& lexer_;
    Costs& costs_;
    const bool declared_;
    std::deque<ObjectState> states_;
    std::unordered_map<std::string, int32_t> ids_;
    size_t memory_ = 0;
};

struct ArrayItem {
    int32_t lane;
    const ArrayShape* shape;
    ArrayProgress at;
    int32_t close;  // tokens up to the closing bracket, from behind an item
};

struct ArrayState {
    std::vector<ArrayItem> items;
    std::vector<int32_t> used;     // unique: numbers of the values so far, sorted
    std::vector<int32_t> closing;  // lanes that are met by closing here
    bool unique = false;           // whether values must be remembered
};

class Arrays {
  public:
    Arrays(Goals& goals, Costs& costs) : goals_(goals), costs_(costs) {}

    // Behind the opening bracket of a value with these goals, one per lane. -1: no array fits.
    int32_t begin(const std::vector<GoalId>& lanes);
    const ArrayState& operator[](int32_t id) const { return states_[id]; }
    // What a further item leads to. Those of unique shapes differ from the used values.
    std::vector<Next<ArrayItem>> item(int32_t id);
    // Whether a further item can come.
    bool has_item(int32_t id);
    int32_t intern(std::vector<ArrayItem> items, std::vector<int32_t> used);
    // The number of a value, for `used`.
    int32_t value(const std::string& text);
    size_t memory() const { return memory_; }

  private:
    void spread(const ArrayItem& item, size_t part, GoalId goal, ArrayProgress after,
                const std::vector<int32_t>& used, std::vector<Next<ArrayItem>>& found);
    std::vector<Next<ArrayItem>> next(const ArrayState& state, const std::vector<int32_t>& used);
    bool can_close(const ArrayItem& item) const;
    void cap(const ArrayShape& shape, ArrayProgress& at) const;

    Goals& goals_;
    Costs& costs_;
    std::deque<ArrayState> states_;
    std::unordered_map<std::vector<int32_t>, int32_t, NumbersHash> ids_;
    std::unordered_map<int32_t, bool> has_item_;
    std::vector<Value> values_;
    std::unordered_map<std::string, int32_t> value_ids_;
    size_t memory_ = 0;
};

}  // namespace sglite::json
