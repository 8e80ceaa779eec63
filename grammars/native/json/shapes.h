// Alternatives of atoms merged into the shapes of objects and arrays.
#pragma once

#include <optional>

#include "expand.h"
#include "goals.h"

namespace sglite::json {

class Shapes {
  public:
    // Finds goals: of a value that must satisfy all of some formulas.
    class Source {
      public:
        virtual ~Source() = default;
        virtual GoalId goal_of(std::vector<Lit> lits) = 0;  // kNever where none does at once
    };

    Shapes(Document& document, Formulas& formulas, Truths& truths, Texts& texts,
           text::Languages& languages, Source& source)
        : document_(document),
          formulas_(formulas),
          truths_(truths),
          texts_(texts),
          languages_(languages),
          source_(source) {}

    // Nothing where no object or array can have the shape.
    std::optional<ObjectShape> object(const Atoms& atoms);
    std::optional<ArrayShape> array(const Atoms& atoms);

  private:
    struct Rule {  // members with a key in `keys` have values that satisfy `value`
        const KeySet* keys;
        Lit value;
    };

    bool add_name(int32_t name);
    bool count_members(const Atoms& atoms, ObjectShape& shape);
    bool fill_names(const Atoms& atoms, ObjectShape& shape);
    void fill_extras(ObjectShape& shape);
    bool fill_some(const Atoms& atoms, ObjectShape& shape);
    text::LangId besides(const std::vector<int32_t>& names);
    text::LangId language(const KeySet& keys);

    Document& document_;
    Formulas& formulas_;
    Truths& truths_;
    Texts& texts_;
    text::Languages& languages_;
    Source& source_;

    // Of the object in hand.
    std::vector<int32_t> names_;
    std::vector<int32_t> slot_;  // per name of the document: its place in `names_`, or -1
    std::vector<Rule> rules_;    // for keys that are not single names
    std::vector<std::vector<Lit>> values_;  // per name
    std::vector<bool> required_;
};

}  // namespace sglite::json
