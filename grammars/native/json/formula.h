// Schemas as formulas: a pool of interned nodes over atoms, each of which speaks of one type of
// values and holds for all others. Negation is a bit, so everything else comes in one form only:
// "one of" is a negated "all of", "at most" a negated "at least", "required" a negated "no member
// of this name".
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../text/languages.h"
#include "../text/numbers.h"
#include "document.h"

namespace sglite::json {

// A node of the pool, twice, and 1 if it is negated.
using Lit = int32_t;
constexpr Lit kTrue = 0, kFalse = 1;
constexpr Lit kUnread = -1;
constexpr Lit negated(Lit lit) { return lit ^ 1; }
constexpr bool is_negated(Lit lit) { return (lit & 1) != 0; }
constexpr int32_t node_of(Lit lit) { return lit >> 1; }

// Types that exclude each other.
enum class Type : uint8_t {
    kNull,
    kFalse,
    kTrue,
    kInteger,
    kFraction,
    kString,
    kArray,
    kObject,
};
constexpr int kTypes = 8;
constexpr int32_t bit(Type type) { return 1 << static_cast<int>(type); }
constexpr int32_t kBooleans = bit(Type::kFalse) | bit(Type::kTrue);
constexpr int32_t kNumbers = bit(Type::kInteger) | bit(Type::kFraction);

enum class Op : uint8_t {
    kTrue,
    kAll,          // a, b: all of the parts [a, a + b)
    kOne,          // a, b: exactly one of the parts
    kSchema,       // a: a schema that is read when somebody asks
    kType,         // a: the type is in the mask
    kText,         // a: the string is in a text set
    kAbove,        // a, b: the number is above number a, or, with b = 0, equal
    kMultiple,     // a: the number is a multiple of number a
    kListed,       // a: the number is in list a
    kMembers,      // a, b: every member with a key in set a has a value that satisfies b
    kMemberCount,  // a: there are at least so many members
    kItems,        // a, b, c: every item at index a <= i < b (-1: no end) satisfies c
    kItemCount,    // a: there are at least so many items
    kContains,     // a, b, c: from index a on, at least b items satisfy c
    kUnique,       // all items differ
};

struct Node {
    Op op = Op::kTrue;
    bool strict = false;  // of an atom: false for values of other types, not true
    int32_t a = 0, b = 0, c = 0;
    int32_t pointer = 0;  // where the document says so first
};

// A set of texts, by how the document describes it.
struct TextSet {
    enum class Kind : uint8_t { kPattern, kFormat, kLength, kQuote, kWords, kSatisfying };
    Kind kind;
    std::string_view text{};     // pattern, name of the format, document
    bool whole_words = false;    // of a quote
    int64_t low = 0, high = -1;  // length
    std::vector<std::string_view> words{};
    Lit lit = kTrue;  // strings that satisfy this
    int32_t pointer = 0;
    text::LangId language = -1;  // once it is known
};

// A set of keys: one name, or all but some names and those in or outside of some text sets.
struct KeySet {
    int32_t name = -1;
    std::vector<int32_t> names{};            // not these; sorted
    std::vector<int32_t> with{}, without{};  // text sets
};

class Formulas {
  public:
    Formulas();

    const Node& node(Lit lit) const { return nodes_[node_of(lit)]; }
    size_t size() const { return nodes_.size(); }
    std::span<const Lit> parts(const Node& node) const {
        return std::span(parts_).subspan(node.a, node.b);
    }

    Lit all(std::vector<Lit> parts, int32_t pointer);
    Lit any(std::vector<Lit> parts, int32_t pointer);
    Lit exactly_one(const std::vector<Lit>& parts, int32_t pointer);
    Lit atom(Op op, int32_t pointer, int32_t a = 0, int32_t b = 0, int32_t c = 0);
    Lit type(int32_t mask, int32_t pointer);
    Lit member_count(int64_t low, int32_t pointer);
    Lit item_count(int64_t low, int32_t pointer);
    Lit contains(int32_t begin, int64_t low, Lit lit, int32_t pointer);
    Lit contains_at_most(int32_t begin, int64_t high, Lit lit, int32_t pointer);
    Lit has(int32_t name, int32_t pointer);  // objects have a member of this name
    // Values of the type of an atom that do not satisfy it, and all values of other types.
    Lit failing(Lit atom);
    // The value itself. Throws Refused for lone surrogates.
    Lit constant(const Value& value, int32_t pointer);
    Lit listed(const std::vector<Value>& values, int32_t pointer);
    Lit words(std::vector<std::string_view> words, int32_t pointer);
    // A schema to be read later; the same place gives the same literal.
    Lit schema(const Place& place);

    int32_t name(std::string_view name);  // `name` must live on
    std::string_view name_text(int32_t name) const { return names_[name]; }
    int32_t text_set(TextSet set);
    TextSet& text_set(int32_t id) { return texts_[id]; }
    int32_t one_key(int32_t name);
    int32_t keys(KeySet keys);
    const KeySet& key_set(int32_t id) const { return keys_[id]; }
    int32_t number(const text::Decimal& value);
    int32_t list(std::vector<text::Decimal> values);  // sorted, each once
    const text::Decimal& number_value(int32_t id) const { return numbers_[id]; }
    const std::vector<text::Decimal>& list(int32_t id) const { return lists_[id]; }

    const Place& place(const Node& node) const { return schemas_[node.a].place; }
    Lit body(const Node& node) const { return schemas_[node.a].body; }
    void set_body(const Node& node, Lit body) { schemas_[node.a].body = body; }

    size_t memory() const;

  private:
    struct Schema {
        Place place;
        Lit body = kUnread;
    };

    Lit intern(const Node& node);
    void grow();
    uint64_t hash(const Node& node) const;
    bool same(const Node& a, const Node& b) const;
    Lit group(Op op, const std::vector<Lit>& parts, int32_t pointer);

    std::vector<Node> nodes_;
    std::vector<int32_t> slots_;  // open addressing over the nodes; -1: free
    std::vector<Lit> parts_;
    std::vector<Schema> schemas_;
    std::unordered_map<uint64_t, std::vector<Lit>> by_schema_;
    std::vector<std::string_view> names_;
    std::unordered_map<std::string_view, int32_t> by_name_;
    std::vector<int32_t> one_key_;  // per name: its key set, or -1
    std::deque<TextSet> texts_;
    std::unordered_map<std::string, int32_t> by_text_;
    std::deque<KeySet> keys_;
    std::map<std::vector<int32_t>, int32_t> by_keys_;
    std::deque<text::Decimal> numbers_;
    std::unordered_map<std::string, int32_t> by_number_;
    std::deque<std::vector<text::Decimal>> lists_;
    std::unordered_map<std::string, int32_t> by_list_;
};

}  // namespace sglite::json
