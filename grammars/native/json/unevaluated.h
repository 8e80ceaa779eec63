// `unevaluatedProperties` and `unevaluatedItems` as formulas.
//
// For every class of keys (or of indexes) there is a formula that says when some subschema of the
// object in hand has evaluated them: a member must be one that was evaluated, or satisfy the
// keyword. No alternatives are listed; that the formula speaks of the same subschemas twice is all.
#pragma once

#include "keywords.h"
#include "texts.h"

namespace sglite::json {

class Unevaluated {
  public:
    Unevaluated(Document& document, Formulas& formulas, Texts& texts)
        : document_(document), formulas_(formulas), texts_(texts) {}

    // Appends what the two keywords of a schema demand. Throws Refused.
    void read(const Keywords& keywords, std::vector<Lit>& parts);

  private:
    // Keys that no subschema tells apart: one name, or all others in exactly these text sets.
    struct Keys {
        int32_t name;
        std::vector<int32_t> with;
    };
    // Items in places where some schema holds them evaluated if they satisfy `item`.
    struct Contained {
        Lit condition, item;
    };
    struct Inner {  // a subschema that speaks of the same value, if `condition` holds
        Place place;
        Lit condition;
    };

    void read_members(const Keywords& keywords, std::vector<Lit>& parts);
    void read_items(const Keywords& keywords, std::vector<Lit>& parts);
    Lit items_at(int32_t index, int32_t end, Lit rest, const std::vector<Contained>& contained,
                 int32_t pointer);
    std::vector<Inner> inner(const Keywords& keywords);
    void collect(const Place& place);
    bool is_evaluated(const Keywords& keywords, const Keys& keys);
    bool is_evaluated(const Keywords& keywords, int32_t index);
    template <typename Which>
    Lit evaluated(const Place& place, const Which& which, bool outermost);
    void find_contained(const Place& place, Lit condition, std::vector<Contained>& found);
    void enter(const Place& place);

    Document& document_;
    Formulas& formulas_;
    Texts& texts_;
    std::vector<const Value*> open_;
    std::vector<int32_t> names_, patterns_;  // that any of the subschemas speaks of
    int32_t longest_ = 0;                    // of their prefixes
    int64_t steps_ = 0;
};

}  // namespace sglite::json
