// Whether two formulas surely have no value in common: by types, or by the tags of objects.
#pragma once

#include <unordered_map>

#include "truth.h"

namespace sglite::json {

class Disjoint {
  public:
    Disjoint(Formulas& formulas, Truths& truths, Texts& texts)
        : formulas_(formulas), truths_(truths), texts_(texts) {}

    // False where it is not easily seen.
    bool at(Lit a, Lit b, Type type, int depth = 3);

  private:
    const std::vector<Lit>& atoms(Lit lit, Type type);
    bool overlap(Lit a, Lit b, int depth);
    bool strings_differ(const std::vector<Lit>& atoms);
    bool numbers_differ(const std::vector<Lit>& atoms);
    bool objects_differ(const std::vector<Lit>& a, const std::vector<Lit>& b, int depth);
    bool holds(Lit atom, const text::Decimal& value);
    std::vector<Lit> values_at(const std::vector<Lit>& atoms, int32_t name);

    Formulas& formulas_;
    Truths& truths_;
    Texts& texts_;
    std::unordered_map<uint64_t, std::vector<Lit>> atoms_;
    std::unordered_map<uint64_t, bool> known_;
};

}  // namespace sglite::json
