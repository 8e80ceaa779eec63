// Readers of keyword values: the value in its type, or an error with the pointer.
#include "keywords.h"

namespace sglite::json {
namespace {

constexpr int64_t kHighestCount = 1'000'000;

struct Entry {
    std::string_view spelling;
    Draft since = Draft::k4;
};

constexpr std::array<Entry, static_cast<size_t>(Keyword::kCount)> kEntries = {{
    {"type"},
    {"enum"},
    {"const", Draft::k6},
    {"minimum"},
    {"maximum"},
    {"exclusiveMinimum"},
    {"exclusiveMaximum"},
    {"multipleOf"},
    {"minLength"},
    {"maxLength"},
    {"pattern"},
    {"format"},
    {"x-sglite-quote"},
    {"properties"},
    {"required"},
    {"patternProperties"},
    {"additionalProperties"},
    {"propertyNames", Draft::k6},
    {"minProperties"},
    {"maxProperties"},
    {"items"},
    {"prefixItems", Draft::k2020},
    {"additionalItems"},
    {"minItems"},
    {"maxItems"},
    {"uniqueItems"},
    {"contains", Draft::k6},
    {"minContains", Draft::k2019},
    {"maxContains", Draft::k2019},
    {"$ref"},
    {"$dynamicRef", Draft::k2020},
    {"$recursiveRef", Draft::k2019},
    {"allOf"},
    {"anyOf"},
    {"oneOf"},
    {"not"},
    {"if", Draft::k7},
    {"then", Draft::k7},
    {"else", Draft::k7},
    {"dependencies"},
    {"dependentRequired", Draft::k2019},
    {"dependentSchemas", Draft::k2019},
    {"unevaluatedItems", Draft::k2019},
    {"unevaluatedProperties", Draft::k2019},
}};

const std::unordered_map<std::string_view, Keyword>& keywords() {
    static const auto kTable = [] {
        std::unordered_map<std::string_view, Keyword> table;
        for (size_t i = 0; i < kEntries.size(); ++i) {
            table.emplace(kEntries[i].spelling, static_cast<Keyword>(i));
        }
        return table;
    }();
    return kTable;
}

// Of drafts before the fourth, and what 2020-12 no longer has.
bool is_unsupported(std::string_view keyword, Draft draft) {
    return keyword == "divisibleBy" || keyword == "disallow" || keyword == "extends" ||
           (keyword == "$recursiveRef" && draft == Draft::k2020);
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

}  // namespace

std::string_view spelling(Keyword keyword) {
    return kEntries[static_cast<size_t>(keyword)].spelling;
}

Keywords::Keywords(Document& document, const Place& place) : document_(document), place_(place) {
    if (place.schema->kind != Value::Kind::kObject) {
        static constexpr std::string_view kNames[] = {
            "null", "false", "true", "a number", "a string", "an array", "an object"};
        document.refuse("a schema must be an object or a boolean, not " +
                            std::string(kNames[static_cast<size_t>(place.schema->kind)]),
                        place.pointer);
    }
    const Draft draft = document.draft(place);
    const auto& table = keywords();
    for (const auto& [key, value] : place.schema->members) {
        if (is_unsupported(key, draft)) {
            document.refuse("keyword " + quoted(key) +
                                " is not supported; remove it or state the constraint in "
                                "another way",
                            document.pointers.inside(place.pointer, key));
        }
        const auto found = table.find(key);
        if (found == table.end()) continue;
        const auto index = static_cast<size_t>(found->second);
        if (draft >= kEntries[index].since) values_[index] = &value;
    }
    if (draft <= Draft::k7 && has(Keyword::kRef)) {  // where it hides its siblings
        const Value* reference = (*this)[Keyword::kRef];
        values_.fill(nullptr);
        values_[static_cast<size_t>(Keyword::kRef)] = reference;
    }
}

int32_t Keywords::pointer(Keyword keyword) const {
    return document_.pointers.inside(place_.pointer, spelling(keyword));
}

int32_t Keywords::pointer(Keyword keyword, std::string_view name) const {
    return document_.pointers.inside(pointer(keyword), name);
}

void Keywords::refuse(Keyword keyword, const std::string& reason) const {
    document_.refuse(quoted(spelling(keyword)) + " " + reason, pointer(keyword));
}

int64_t Keywords::count(Keyword keyword) const {
    const text::Decimal* value = number(keyword);
    if (value == nullptr) return -1;
    if (value->negative || !value->is_integer()) refuse(keyword, "must be a whole number >= 0");
    const size_t length = value->digits.size();
    if (value->exponent > 7 || length + static_cast<size_t>(value->exponent) > 7 ||
        std::stoll("0" + value->digits + std::string(value->exponent, '0')) > kHighestCount) {
        refuse(keyword, "of " + value->text() + " is more than " + std::to_string(kHighestCount) +
                            "; lower it or leave it out");
    }
    return std::stoll("0" + value->digits + std::string(value->exponent, '0'));
}

bool Keywords::flag(Keyword keyword) const {
    const Value* value = (*this)[keyword];
    if (value == nullptr) return false;
    if (value->kind != Value::Kind::kTrue && value->kind != Value::Kind::kFalse) {
        refuse(keyword, "must be true or false");
    }
    return value->kind == Value::Kind::kTrue;
}

const text::Decimal* Keywords::number(Keyword keyword) const {
    const Value* value = (*this)[keyword];
    if (value == nullptr) return nullptr;
    if (value->kind != Value::Kind::kNumber) refuse(keyword, "must be a number");
    return &value->number;
}

const std::string* Keywords::text(Keyword keyword) const {
    const Value* value = (*this)[keyword];
    if (value == nullptr) return nullptr;
    if (value->kind != Value::Kind::kString) refuse(keyword, "must be a string");
    return &value->text;
}

Quote Keywords::quote() const {
    const Value* document = nullptr;
    Quote quote{};
    for (const auto& [key, value] : members(Keyword::kQuote)) {
        const bool is_flag = value.kind == Value::Kind::kTrue || value.kind == Value::Kind::kFalse;
        if (key == "document" && value.kind == Value::Kind::kString) {
            document = &value;
        } else if (key == "whole_words" && is_flag) {
            quote.whole_words = value.kind == Value::Kind::kTrue;
        } else {
            refuse(Keyword::kQuote, "takes 'document', a string, and 'whole_words', true or false");
        }
    }
    if (document == nullptr) refuse(Keyword::kQuote, "needs 'document', the text to quote from");
    quote.document = document->text;
    return quote;
}

const std::vector<std::pair<std::string, Value>>& Keywords::members(Keyword keyword) const {
    static const std::vector<std::pair<std::string, Value>> kNone;
    const Value* value = (*this)[keyword];
    if (value == nullptr) return kNone;
    if (value->kind != Value::Kind::kObject) refuse(keyword, "must be an object");
    return value->members;
}

const std::vector<Value>& Keywords::names(Keyword keyword) const {
    static const std::vector<Value> kNone;
    const Value* value = (*this)[keyword];
    if (value == nullptr) return kNone;
    bool right = value->kind == Value::Kind::kArray;
    for (const Value& item : value->items) right = right && item.kind == Value::Kind::kString;
    if (!right) refuse(keyword, "must be a list of strings");
    return value->items;
}

Place Keywords::schema(Keyword keyword) const {
    return document_.inside(place_, *(*this)[keyword], spelling(keyword));
}

std::vector<Place> Keywords::schemas(Keyword keyword) const {
    const Value* value = (*this)[keyword];
    std::vector<Place> found;
    if (value == nullptr) return found;
    if (value->kind != Value::Kind::kArray ||
        (value->items.empty() && keyword != Keyword::kItems)) {
        refuse(keyword, "must be a list of schemas, not empty");
    }
    for (size_t i = 0; i < value->items.size(); ++i) {
        found.push_back(document_.inside(place_, value->items[i], spelling(keyword), i));
    }
    return found;
}

Place Keywords::named(Keyword keyword, const std::pair<std::string, Value>& member) const {
    return document_.inside(place_, member.second, spelling(keyword), member.first);
}

Place Keywords::target(Keyword keyword) const {
    return document_.resolve(place_, spelling(keyword), *(*this)[keyword]);
}

bool lists_names(const Value& dependency) {
    return dependency.kind == Value::Kind::kArray || dependency.kind == Value::Kind::kString;
}

}  // namespace sglite::json
