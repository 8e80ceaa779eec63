// Schemas to formulas: the keywords that speak of one type of values.
#include <algorithm>

#include "reader.h"

namespace sglite::json {
namespace {

int32_t type_mask(std::string_view name) {
    static constexpr std::pair<std::string_view, int32_t> kTypes[] = {
        {"string", bit(Type::kString)},   {"object", bit(Type::kObject)},
        {"array", bit(Type::kArray)},     {"number", kNumbers},
        {"integer", bit(Type::kInteger)}, {"boolean", kBooleans},
        {"null", bit(Type::kNull)},
    };
    for (const auto& [known, mask] : kTypes) {
        if (known == name) return mask;
    }
    return 0;
}

}  // namespace

void Reader::read_types(const Keywords& keywords, std::vector<Lit>& parts) {
    if (const Value* value = keywords[Keyword::kType]) {
        int32_t mask = 0;
        const auto add = [&](const Value& name) {
            const int32_t known = type_mask(name.text);
            if (known == 0) {
                document_.refuse("unknown type '" + name.text + "'",
                                 keywords.pointer(Keyword::kType));
            }
            mask |= known;
        };
        if (value->kind == Value::Kind::kArray) {
            for (const Value& name : value->items) add(name);
        } else {
            add(*value);
        }
        parts.push_back(formulas_.type(mask, keywords.pointer(Keyword::kType)));
    }
    if (const Value* value = keywords[Keyword::kEnum]) {
        if (value->kind != Value::Kind::kArray) keywords.refuse(Keyword::kEnum, "must be a list");
        parts.push_back(formulas_.listed(value->items, keywords.pointer(Keyword::kEnum)));
    }
    if (const Value* value = keywords[Keyword::kConst]) {
        parts.push_back(formulas_.constant(*value, keywords.pointer(Keyword::kConst)));
    }
}

void Reader::read_bound(const Keywords& keywords, Keyword plain, Keyword exclusive, bool is_low,
                        std::vector<Lit>& parts) {
    const text::Decimal* value = keywords.number(plain);
    const Value* other = keywords[exclusive];
    bool excluded = false;
    if (other != nullptr &&
        (other->kind == Value::Kind::kTrue || other->kind == Value::Kind::kFalse)) {
        excluded = other->kind == Value::Kind::kTrue;  // the form of draft 4
        other = nullptr;
    }
    const auto add = [&](const text::Decimal& limit, bool without, Keyword keyword) {
        const int32_t number = formulas_.number(limit);
        const bool strictly_above = is_low == without;
        const Lit above =
            formulas_.atom(Op::kAbove, keywords.pointer(keyword), number, strictly_above);
        parts.push_back(is_low ? above : formulas_.failing(above));
    };
    if (value != nullptr) add(*value, excluded, plain);
    if (other != nullptr) add(*keywords.number(exclusive), true, exclusive);
}

void Reader::read_numbers(const Keywords& keywords, std::vector<Lit>& parts) {
    read_bound(keywords, Keyword::kMinimum, Keyword::kExclusiveMinimum, true, parts);
    read_bound(keywords, Keyword::kMaximum, Keyword::kExclusiveMaximum, false, parts);
    if (const text::Decimal* unit = keywords.number(Keyword::kMultipleOf)) {
        if (unit->negative || unit->digits.empty()) {
            keywords.refuse(Keyword::kMultipleOf, "must be above 0");
        }
        parts.push_back(formulas_.atom(Op::kMultiple, keywords.pointer(Keyword::kMultipleOf),
                                       formulas_.number(*unit)));
    }
}

void Reader::read_strings(const Keywords& keywords, std::vector<Lit>& parts) {
    const int64_t low = keywords.count(Keyword::kMinLength);
    const int64_t high = keywords.count(Keyword::kMaxLength);
    const auto add = [&](TextSet set, Keyword keyword) {
        set.pointer = keywords.pointer(keyword);
        const int32_t pointer = set.pointer;
        parts.push_back(formulas_.atom(Op::kText, pointer, formulas_.text_set(std::move(set))));
    };
    if (low > 0 || high >= 0) {
        TextSet set{TextSet::Kind::kLength};
        set.low = std::max<int64_t>(low, 0);
        set.high = high;
        if (high >= 0 && low > high) {
            constexpr int32_t kOthers = (1 << kTypes) - 1 - bit(Type::kString);
            parts.push_back(formulas_.type(kOthers, keywords.pointer(Keyword::kMaxLength)));
        } else {
            add(std::move(set), low > 0 ? Keyword::kMinLength : Keyword::kMaxLength);
        }
    }
    if (const std::string* pattern = keywords.text(Keyword::kPattern)) {
        add({TextSet::Kind::kPattern, *pattern}, Keyword::kPattern);
    }
    if (const std::string* format = keywords.text(Keyword::kFormat)) {
        add({TextSet::Kind::kFormat, *format}, Keyword::kFormat);
    }
    if (keywords.has(Keyword::kQuote)) {
        const Quote quote = keywords.quote();
        TextSet set{TextSet::Kind::kQuote, quote.document};
        set.whole_words = quote.whole_words;
        add(std::move(set), Keyword::kQuote);
    }
}

void Reader::read_counts(const Keywords& keywords, Keyword low, Keyword high, Op op,
                         std::vector<Lit>& parts) {
    if (const int64_t count = keywords.count(low); count > 0) {
        parts.push_back(formulas_.atom(op, keywords.pointer(low), static_cast<int32_t>(count)));
    }
    if (const int64_t count = keywords.count(high); count >= 0) {
        parts.push_back(formulas_.failing(
            formulas_.atom(op, keywords.pointer(high), static_cast<int32_t>(count) + 1)));
    }
}

void Reader::read_members(const Keywords& keywords, std::vector<Lit>& parts) {
    KeySet others;
    for (const auto& member : keywords.members(Keyword::kProperties)) {
        const Place place = keywords.named(Keyword::kProperties, member);
        const int32_t name = formulas_.name(member.first);
        others.names.push_back(name);
        parts.push_back(formulas_.atom(Op::kMembers, place.pointer, formulas_.one_key(name),
                                       formulas_.schema(place)));
    }
    for (const auto& member : keywords.members(Keyword::kPatternProperties)) {
        const Place place = keywords.named(Keyword::kPatternProperties, member);
        TextSet set{TextSet::Kind::kPattern, member.first};
        set.pointer = place.pointer;
        const int32_t pattern = formulas_.text_set(std::move(set));
        others.without.push_back(pattern);
        const Lit value = formulas_.schema(place);
        if (value == kTrue) {
            texts_.language(pattern);  // a wrong pattern is refused
            continue;
        }
        const int32_t keys = formulas_.keys({-1, {}, {pattern}, {}});
        parts.push_back(formulas_.atom(Op::kMembers, place.pointer, keys, value));
    }
    if (keywords.has(Keyword::kAdditionalProperties)) {
        const Lit value = schema(keywords, Keyword::kAdditionalProperties);
        std::ranges::sort(others.names);
        if (value != kTrue) {
            parts.push_back(formulas_.atom(Op::kMembers,
                                           keywords.pointer(Keyword::kAdditionalProperties),
                                           formulas_.keys(std::move(others)), value));
        }
    }
    for (const Value& name : keywords.names(Keyword::kRequired)) {
        parts.push_back(
            formulas_.has(formulas_.name(name.text), keywords.pointer(Keyword::kRequired)));
    }
    if (keywords.has(Keyword::kPropertyNames)) {
        const Lit lit = schema(keywords, Keyword::kPropertyNames);
        const int32_t pointer = keywords.pointer(Keyword::kPropertyNames);
        TextSet set{TextSet::Kind::kSatisfying};
        set.lit = lit;
        set.pointer = pointer;
        KeySet wrong;
        if (lit != kFalse) wrong.without.push_back(formulas_.text_set(std::move(set)));
        if (lit != kTrue) {
            parts.push_back(
                formulas_.atom(Op::kMembers, pointer, formulas_.keys(std::move(wrong)), kFalse));
        }
    }
    read_counts(keywords, Keyword::kMinProperties, Keyword::kMaxProperties, Op::kMemberCount,
                parts);
}

void Reader::read_items(const Keywords& keywords, std::vector<Lit>& parts) {
    const Value* items = keywords[Keyword::kItems];
    const bool is_list = items != nullptr && items->kind == Value::Kind::kArray;
    const Keyword prefix = is_list ? Keyword::kItems : Keyword::kPrefixItems;
    const Keyword behind = is_list ? Keyword::kAdditionalItems : Keyword::kItems;
    int32_t index = 0;
    for (const Place& place : keywords.schemas(prefix)) {
        const Lit value = formulas_.schema(place);
        if (value != kTrue) {
            parts.push_back(formulas_.atom(Op::kItems, place.pointer, index, index + 1, value));
        }
        ++index;
    }
    if (keywords.has(behind)) {
        const Lit value = schema(keywords, behind);
        if (value != kTrue) {
            parts.push_back(formulas_.atom(Op::kItems, keywords.pointer(behind), index, -1, value));
        }
    }
    read_counts(keywords, Keyword::kMinItems, Keyword::kMaxItems, Op::kItemCount, parts);
    if (keywords.flag(Keyword::kUniqueItems)) {
        parts.push_back(formulas_.atom(Op::kUnique, keywords.pointer(Keyword::kUniqueItems)));
    }
    if (keywords.has(Keyword::kContains)) {
        const Lit value = schema(keywords, Keyword::kContains);
        const int64_t low = keywords.count(Keyword::kMinContains);
        const int64_t high = keywords.count(Keyword::kMaxContains);
        const int32_t pointer = keywords.pointer(Keyword::kContains);
        parts.push_back(formulas_.contains(0, low < 0 ? 1 : low, value, pointer));
        if (high >= 0) parts.push_back(formulas_.contains_at_most(0, high, value, pointer));
    }
}

}  // namespace sglite::json
