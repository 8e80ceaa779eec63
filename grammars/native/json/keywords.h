// The keywords of one schema, looked up once, as far as its draft knows them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "document.h"

namespace sglite::json {

enum class Keyword : uint8_t {
    kType,
    kEnum,
    kConst,
    kMinimum,
    kMaximum,
    kExclusiveMinimum,
    kExclusiveMaximum,
    kMultipleOf,
    kMinLength,
    kMaxLength,
    kPattern,
    kFormat,
    kQuote,
    kProperties,
    kRequired,
    kPatternProperties,
    kAdditionalProperties,
    kPropertyNames,
    kMinProperties,
    kMaxProperties,
    kItems,
    kPrefixItems,
    kAdditionalItems,
    kMinItems,
    kMaxItems,
    kUniqueItems,
    kContains,
    kMinContains,
    kMaxContains,
    kRef,
    kDynamicRef,
    kRecursiveRef,
    kAllOf,
    kAnyOf,
    kOneOf,
    kNot,
    kIf,
    kThen,
    kElse,
    kDependencies,
    kDependentRequired,
    kDependentSchemas,
    kUnevaluatedItems,
    kUnevaluatedProperties,
    kCount,
};

std::string_view spelling(Keyword keyword);

// What `x-sglite-quote`, a keyword of our own, says: {"document": TEXT, "whole_words": BOOL}.
struct Quote {
    std::string_view document;
    bool whole_words = false;
};

// The values of the keywords of one schema, and readers that check them. All throw Refused.
class Keywords {
  public:
    // Of an object.
    Keywords(Document& document, const Place& place);

    const Value* operator[](Keyword keyword) const { return values_[static_cast<size_t>(keyword)]; }
    bool has(Keyword keyword) const { return (*this)[keyword] != nullptr; }
    const Place& place() const { return place_; }
    Document& document() const { return document_; }

    int32_t pointer(Keyword keyword) const;
    int32_t pointer(Keyword keyword, std::string_view name) const;
    [[noreturn]] void refuse(Keyword keyword, const std::string& reason) const;

    // A whole number from 0 up, -1 without the keyword.
    int64_t count(Keyword keyword) const;
    bool flag(Keyword keyword) const;
    const text::Decimal* number(Keyword keyword) const;
    const std::string* text(Keyword keyword) const;
    Quote quote() const;
    // The members of an object, none without the keyword.
    const std::vector<std::pair<std::string, Value>>& members(Keyword keyword) const;
    // A list of strings, none without the keyword.
    const std::vector<Value>& names(Keyword keyword) const;
    // Schemas under the keyword.
    Place schema(Keyword keyword) const;
    std::vector<Place> schemas(Keyword keyword) const;
    Place named(Keyword keyword, const std::pair<std::string, Value>& member) const;
    Place target(Keyword keyword) const;

  private:
    Document& document_;
    const Place place_;
    std::array<const Value*, static_cast<size_t>(Keyword::kCount)> values_{};
};

// Whether a dependency is a list of names, or one name; else it is a schema.
bool lists_names(const Value& dependency);

}  // namespace sglite::json
