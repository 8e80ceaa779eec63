// The languages of the text sets that a document names.
#pragma once

#include <functional>

#include "formula.h"

namespace sglite::json {

class Texts {
  public:
    Texts(Document& document, Formulas& formulas, text::Languages& languages)
        : document_(document), formulas_(formulas), languages_(languages) {}

    // Strings that satisfy a formula; set by whoever can tell.
    std::function<text::LangId(Lit)> satisfying;

    // Throws Refused with the place that names the set.
    text::LangId language(int32_t text_set);
    bool contains(int32_t text_set, std::string_view text) {
        return languages_.contains(language(text_set), text);
    }

  private:
    text::LangId find(const TextSet& set);

    Document& document_;
    Formulas& formulas_;
    text::Languages& languages_;
};

}  // namespace sglite::json
