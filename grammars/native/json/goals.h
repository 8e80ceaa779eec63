// What a JSON value must be, taken apart by type: the border between schemas and the machine that
// reads JSON. A schema becomes goals lazily; a goal holds everything that is asked of one value.
//
// Strings and numbers are languages. Objects and arrays are alternatives ("shapes"), each a plain
// conjunction whose parts can be met one by one: all of `not`, `anyOf`, `oneOf`, `if`, `$ref`,
// `dependent*` and `unevaluated*` are gone here.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../text/languages.h"
#include "spelling.h"
#include "value.h"

namespace sglite::json {

constexpr std::array<std::string_view, 3> kLiterals{"null", "false", "true"};

using GoalId = int32_t;
constexpr GoalId kNever = -1;  // no value is asked for: what cannot be met has this number

struct Style {
    enum class Whitespace { kSingle, kCompact, kFlexible };
    bool declared_order = true;  // declared keys in their order, extra ones behind
    Whitespace whitespace = Whitespace::kSingle;
    bool any_spelling = false;
};

struct ObjectShape {
    int32_t id = -1;  // dense, over all shapes of objects
    // The keys that the schemas speak of and that may be present, in their declared order.
    std::vector<std::string> names{};
    std::vector<GoalId> values{};  // per name, never kNever
    std::vector<bool> required{};  // per name
    // Keys that may stand beside them, none of them in `names`: disjoint classes of keys, each with
    // what the value must be. Usually one. Never kNever, never empty.
    struct Extra {
        text::LangId keys;
        GoalId value;
    };
    std::vector<Extra> extras{};
    int64_t low = 0, high = -1;  // number of members; high -1: without end
    // Members of which at least one must be there: a key of `keys` with a value of `value`.
    struct Some {
        text::LangId keys;
        GoalId value;
    };
    std::vector<Some> some{};
};

struct ArrayShape {
    int32_t id = -1;              // dense, over all shapes of arrays
    std::vector<GoalId> first{};  // of the leading items; kNever: no item may stand there
    GoalId rest = kNever;         // of all further ones
    int64_t low = 0, high = -1;   // number of items; high -1: without end
    // From item `begin` on, `low` to `high` items are values of `holds`; the others of `fails`.
    struct Contains {
        int64_t begin;
        GoalId holds, fails;
        int64_t low, high;
    };
    std::vector<Contains> contains{};
    bool unique = false;
};

struct Goal {
    bool null = false, truth = false, falsity = false;
    text::LangId strings = text::kNoText;  // the contents of strings
    text::LangId numbers = text::kNoText;  // the texts of numbers
    std::vector<ObjectShape> objects{};    // only those that can be met
    std::vector<ArrayShape> arrays{};
    // Upper bound on the tokens of a shortest value, in the style; never kUnreachable.
    int32_t cost = 0;
    // How many different values there are, at least, saturating at kPlenty: kPlenty as well where
    // no items of the document must differ.
    int64_t supply = 0;
    // Of a goal without some values: the goal whose shapes count, and the numbers of the objects
    // and arrays that are left out.
    const Goal* base = nullptr;
    std::vector<int32_t> barred{};

    const Goal& shaped() const { return base == nullptr ? *this : *base; }
};
constexpr int64_t kPlenty = 1 << 20;

class Goals {
  public:
    // Reads `schema`, finds every goal that can arise from it, and drops what cannot be met.
    // Throws Refused with the JSON pointer of what is not supported, wrong or past the limits, and
    // with "nothing can match" for a schema that no value satisfies.
    Goals(Value schema, text::Languages& languages, Spelling& spelling, const Style& style);
    ~Goals();

    GoalId root() const;
    const Goal& goal(GoalId id) const;  // the reference stays valid
    // Values of both; kNever if there are none.
    GoalId both(GoalId a, GoalId b);
    // A goal that was made from others, with its cost.
    GoalId add(Goal goal);
    // The least cost of values that are no objects and no arrays.
    int32_t scalar_cost(const Goal& goal) const;
    // Upper bound on the tokens of a value that differs from so many others.
    int32_t nth(GoalId id, int64_t others) const;
    // All texts of a number.
    text::LangId texts_of(const text::Decimal& number);
    // What is enforced and how: a pointer and a line per schema that can matter, and at last
    // "text" with the manner of writing. For `grammars.explain`.
    std::vector<std::pair<std::string, std::string>> explain() const;
    size_t memory() const;

  private:
    struct Inside;
    std::unique_ptr<Inside> inside_;
};

}  // namespace sglite::json
