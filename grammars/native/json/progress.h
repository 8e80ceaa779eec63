// How far an object or an array has come within one shape, and what it still needs.
//
// This decides what is alive: a shape can be finished exactly if its cost is not kUnreachable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "goals.h"

namespace sglite::json {

// What the search asks about goals and texts. Costs are bounds on tokens.
class Costs {
  public:
    Costs(Spelling& spelling, const Style& style)
        : comma(spelling.of(is_single(style) ? ", " : ",")),
          colon(spelling.of(is_single(style) ? ": " : ":")),
          end_of_key(spelling.of(is_single(style) ? "\": " : "\":")),
          spelling_(spelling) {}
    virtual ~Costs() = default;

    virtual int32_t goal(GoalId goal) = 0;  // kUnreachable for one that cannot be met (or not yet)
    // The same for a value that differs from so many others.
    virtual int32_t nth(GoalId goal, int64_t others) = 0;
    virtual GoalId both(GoalId a, GoalId b) = 0;
    virtual int64_t supply(GoalId goal) = 0;  // different values, at most kPlenty

    // With its quotes and colon.
    int32_t key(const std::string& key) { return 1 + spelling_.rests(key).front() + end_of_key; }
    // One that is made up: any of the same length may be priced in its place.
    int32_t extra_key(std::string_view key) const {
        return 1 + static_cast<int32_t>(written(key).size()) + end_of_key;
    }
    // What `close`, from behind an item or member, is from the opening bracket on.
    int32_t from_begin(int32_t close) const {
        return close > 1 && close < kUnreachable ? close - comma : close;
    }

    // kUnreachable, of what could be met but for its length.
    int32_t unpayable() {
        too_long = true;
        return kUnreachable;
    }

    bool too_long = false;       // whether that was met
    bool limited = true;         // whether searches are given up; behind a beginning they are not
    const int32_t comma, colon;  // with their spaces
    const int32_t end_of_key;    // a quote and the colon

  private:
    static bool is_single(const Style& style) {
        return style.whitespace == Style::Whitespace::kSingle;
    }

    Spelling& spelling_;
};

struct ObjectProgress {
    std::vector<bool> used{};           // per name of the shape
    std::vector<std::string> extras{};  // used keys that are none of the names, sorted
    int32_t place = 0;    // declared order: names before this one cannot come any more
    bool behind = false;  // declared order: an extra key has come, only such can follow
    uint32_t open = 0;    // bit i: shape.some[i] is not met yet
    int64_t members = 0;

    bool operator==(const ObjectProgress&) const = default;
};

struct ArrayProgress {
    int64_t items = 0;            // up to counted_items()
    std::vector<int64_t> held{};  // per shape.contains: items that held so far

    bool operator==(const ArrayProgress&) const = default;
};

// Beyond so many items their number makes no difference.
int64_t counted_items(const ArrayShape& shape);

// At most so many `some` demands in one shape.
constexpr size_t kMostSome = 12;

ObjectProgress begin(const ObjectShape& shape);
ArrayProgress begin(const ArrayShape& shape);

// Tokens up to the closing brace, which is counted, from behind a member (or the opening brace).
// kUnreachable: cannot be finished. Throws Refused where that needs too long a search.
int32_t cost_to_close(const ObjectShape& shape, const ObjectProgress& at,
                      text::Languages& languages, bool declared_order, Costs& costs);

// The same for arrays; that items must differ is left out here, see check_unique.
int32_t cost_to_close(const ArrayShape& shape, const ArrayProgress& at, Costs& costs);

// Whether the least number of items can always differ, whichever values come first. Throws Refused
// where that would need a search among the values.
bool check_unique(const ArrayShape& shape, Costs& costs);

}  // namespace sglite::json
