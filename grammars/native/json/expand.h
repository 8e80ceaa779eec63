// Formulas to alternatives: for one type, conjunctions of atoms whose union the formula is.
#pragma once

#include "disjoint.h"
#include "truth.h"

namespace sglite::json {

// Atoms that hold together, in the order in which the document gives them.
using Atoms = std::vector<Lit>;

class Expander {
  public:
    Expander(Document& document, Formulas& formulas, Reader& reader, Truths& truths,
             Disjoint& disjoint, Work& work)
        : document_(document),
          formulas_(formulas),
          reader_(reader),
          truths_(truths),
          disjoint_(disjoint),
          work_(work) {}

    // Alternatives of numbers, arrays or objects that satisfy all of `lits`. In them a negated
    // kMembers atom of one name has the value kFalse ("required"), and kItems atoms are positive.
    // Throws Refused above a number of alternatives.
    std::vector<Atoms> run(const std::vector<Lit>& lits, Type type);

  private:
    // One of the options holds, each a conjunction.
    struct Fork {
        std::vector<std::vector<Lit>> options;
        int32_t pointer;
    };

    bool add(Lit lit, int depth);
    bool add_atom(Lit lit, const Node& node, int depth);
    bool add_fork(Fork fork, int depth);
    bool exactly_one(const Node& node, bool negative, int depth);
    bool settle();
    void branch();
    void emit();
    void restore(size_t atoms);
    void mark(Lit lit);
    bool is_held(Lit lit) const {
        return static_cast<size_t>(lit) < held_.size() && held_[lit] != 0;
    }

    Document& document_;
    Formulas& formulas_;
    Reader& reader_;
    Truths& truths_;
    Disjoint& disjoint_;
    Work& work_;

    Type type_ = Type::kObject;
    Atoms atoms_;
    std::vector<uint8_t> held_;  // per literal
    std::vector<Fork> forks_;
    std::vector<Atoms> found_;
    int depth_ = 0;
};

}  // namespace sglite::json
