// Formulas over strings and over numbers, as languages.
#pragma once

#include <unordered_map>

#include "expand.h"

namespace sglite::json {

class Scalars {
  public:
    Scalars(Document& document, Formulas& formulas, Reader& reader, Truths& truths,
            Expander& expander, Texts& texts, text::Languages& languages, bool any_spelling)
        : document_(document),
          formulas_(formulas),
          reader_(reader),
          truths_(truths),
          expander_(expander),
          texts_(texts),
          languages_(languages),
          any_spelling_(any_spelling) {}

    // The contents of strings that satisfy all of the formulas.
    text::LangId strings(const std::vector<Lit>& lits);

    // Numbers that satisfy all of the atoms of an alternative.
    struct Numbers {
        text::NumberSpec spec;
        bool is_list = false;
        std::vector<text::Decimal> list;     // those of the spec, if `is_list`
        std::vector<text::Decimal> without;  // of the spec, in no list
    };
    struct Found {
        text::LangId language;
        std::vector<Numbers> ways;
    };
    Found numbers(const std::vector<Lit>& lits);
    // The texts of some numbers; `all_spellings`: those that are to be left out of others.
    text::LangId values(const std::vector<text::Decimal>& list, bool all_spellings = false);

  private:
    text::LangId string(Lit lit);
    text::LangId string_group(const Node& node);
    void refuse_multiple(const Refused& refused, const std::vector<Atoms>& ways);
    Numbers merged(const Atoms& atoms, text::NumberSpec::Kind kind);
    text::LangId language(const Numbers& numbers);

    Document& document_;
    Formulas& formulas_;
    Reader& reader_;
    Truths& truths_;
    Expander& expander_;
    Texts& texts_;
    text::Languages& languages_;
    const bool any_spelling_;
    std::unordered_map<int32_t, text::LangId> strings_;  // per node
};

}  // namespace sglite::json
