// What is enforced of a document, and how, place by place.
#include "../text/formats.h"
#include "goals_inside.h"

namespace sglite::json {
namespace {

std::string_view how(Keyword keyword) {
    switch (keyword) {
        case Keyword::kType:
            return "the first byte of a value tells its type; 1.0 is an integer";
        case Keyword::kEnum:
        case Keyword::kConst:
            return "as listed, by value: 1 equals 1.0, keys come in any order";
        case Keyword::kMinimum:
        case Keyword::kMaximum:
        case Keyword::kExclusiveMinimum:
        case Keyword::kExclusiveMaximum:
        case Keyword::kMultipleOf:
            return "exactly, digit by digit";
        case Keyword::kMinLength:
        case Keyword::kMaxLength:
            return "counted in characters behind escapes";
        case Keyword::kPattern:
            return "an automaton over characters; a match may stand anywhere";
        case Keyword::kProperties:
        case Keyword::kPatternProperties:
        case Keyword::kAdditionalProperties:
        case Keyword::kPropertyNames:
            return "by the key, in whatever spelling; no key stands twice";
        case Keyword::kRequired:
        case Keyword::kMinProperties:
        case Keyword::kMaxProperties:
            return "an object ends, and goes on, only where this can still hold";
        case Keyword::kItems:
        case Keyword::kPrefixItems:
        case Keyword::kAdditionalItems:
            return "by the index of the item";
        case Keyword::kMinItems:
        case Keyword::kMaxItems:
        case Keyword::kContains:
        case Keyword::kMinContains:
        case Keyword::kMaxContains:
            return "counted; an array ends, and goes on, only where this can still hold";
        case Keyword::kUniqueItems:
            return "items that are used up are taken out of those that may follow, by value";
        case Keyword::kRef:
        case Keyword::kDynamicRef:
        case Keyword::kRecursiveRef:
            return "the schema that is meant holds as well";
        case Keyword::kNot:
        case Keyword::kIf:
        case Keyword::kThen:
        case Keyword::kElse:
        case Keyword::kAllOf:
        case Keyword::kAnyOf:
        case Keyword::kOneOf:
        case Keyword::kDependencies:
        case Keyword::kDependentRequired:
        case Keyword::kDependentSchemas:
            return "resolved into alternatives when the schema is compiled";
        case Keyword::kUnevaluatedItems:
        case Keyword::kUnevaluatedProperties:
            return "resolved into alternatives by what the subschemas that hold have evaluated";
        case Keyword::kFormat:
        case Keyword::kCount:
            break;
    }
    return {};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> Goals::explain() const {
    std::vector<std::pair<std::string, std::string>> lines;
    for (const Reader::Seen& seen : inside_->reader.seen()) {
        std::string text(how(seen.keyword));
        if (seen.keyword == Keyword::kFormat) {
            const bool known = text::format(inside_->languages, seen.value->text).has_value();
            text = "'" + seen.value->text + "' is ";
            text += known ? "enforced by an automaton over characters"
                          : "no format of JSON Schema: an annotation, not enforced";
        }
        lines.emplace_back(inside_->document.pointers.text(seen.pointer) + "/" +
                               std::string(spelling(seen.keyword)),
                           std::move(text));
    }
    return lines;
}

}  // namespace sglite::json
