// The languages of the text sets that a document names.
#include "texts.h"

#include "../text/formats.h"

namespace sglite::json {

using text::LangId;

LangId Texts::language(int32_t text_set) {
    if (const LangId known = formulas_.text_set(text_set).language; known >= 0) return known;
    const int32_t pointer = formulas_.text_set(text_set).pointer;
    LangId found = text::kNoText;
    try {
        found = find(formulas_.text_set(text_set));
    } catch (const Refused& refused) {
        const TextSet::Kind kind = formulas_.text_set(text_set).kind;
        if (kind == TextSet::Kind::kSatisfying) throw;
        std::string reason = refused.what();
        if (!refused.pointer.empty()) reason += ", at character " + refused.pointer;
        document_.refuse(reason, pointer);
    }
    formulas_.text_set(text_set).language = found;
    return found;
}

LangId Texts::find(const TextSet& set) {
    switch (set.kind) {
        case TextSet::Kind::kPattern:
            return languages_.pattern(set.text, text::Dialect::kEcma, true);
        case TextSet::Kind::kFormat:
            return text::format(languages_, set.text).value_or(text::kAnyText);
        case TextSet::Kind::kLength:
            return languages_.length(set.low, set.high);
        case TextSet::Kind::kQuote:
            return languages_.quote(set.text, set.whole_words);
        case TextSet::Kind::kSatisfying:
            return satisfying(set.lit);
        case TextSet::Kind::kWords:
            break;
    }
    return languages_.words({set.words.begin(), set.words.end()});
}

}  // namespace sglite::json
