// Schemas to formulas: reads one schema of the document at a time, when somebody asks for it.
#pragma once

#include "formula.h"
#include "keywords.h"
#include "texts.h"

namespace sglite::json {

class Reader {
  public:
    Reader(Document& document, Formulas& formulas, Texts& texts)
        : document_(document), formulas_(formulas), texts_(texts) {}

    // The formula of a schema node. Throws Refused for wrong and unsupported keywords.
    Lit body(Lit schema);
    // The same schema behind chains of lone references.
    Lit settled(Lit lit);

    // The schemas that were read so far: those that can matter.
    const std::vector<Place>& seen() const { return seen_; }

  private:
    Lit read(Place place);
    Lit schema(const Keywords& keywords, Keyword keyword);
    std::vector<Lit> schemas(const Keywords& keywords, Keyword keyword);
    // One family of keywords each; they append what must hold together.
    void read_types(const Keywords& keywords, std::vector<Lit>& parts);
    void read_numbers(const Keywords& keywords, std::vector<Lit>& parts);
    void read_bound(const Keywords& keywords, Keyword plain, Keyword exclusive, bool is_low,
                    std::vector<Lit>& parts);
    void read_strings(const Keywords& keywords, std::vector<Lit>& parts);
    void read_members(const Keywords& keywords, std::vector<Lit>& parts);
    void read_items(const Keywords& keywords, std::vector<Lit>& parts);
    void read_logic(const Keywords& keywords, std::vector<Lit>& parts);
    void read_dependencies(const Keywords& keywords, Keyword keyword, std::vector<Lit>& parts);
    void read_counts(const Keywords& keywords, Keyword low, Keyword high, Op op,
                     std::vector<Lit>& parts);

    Document& document_;
    Formulas& formulas_;
    Texts& texts_;
    std::vector<Place> seen_;
};

}  // namespace sglite::json
