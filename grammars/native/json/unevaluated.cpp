// `unevaluatedProperties` and `unevaluatedItems` as formulas.
#include "unevaluated.h"

#include <algorithm>

namespace sglite::json {
namespace {

constexpr size_t kMostPatterns = 6;
constexpr size_t kMostContained = 6;
constexpr int64_t kMostSteps = 200'000;

void add_once(std::vector<int32_t>& list, int32_t value) {
    if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

size_t prefix_length(const Keywords& keywords) {
    const Value* items = keywords[Keyword::kItems];
    if (items != nullptr && items->kind == Value::Kind::kArray) return items->items.size();
    const Value* prefix = keywords[Keyword::kPrefixItems];
    return prefix == nullptr ? 0 : prefix->items.size();
}

}  // namespace

void Unevaluated::read(const Keywords& keywords, std::vector<Lit>& parts) {
    collect(keywords.place());
    if (keywords.has(Keyword::kUnevaluatedProperties)) read_members(keywords, parts);
    if (keywords.has(Keyword::kUnevaluatedItems)) read_items(keywords, parts);
}

// Guards every walk over the subschemas of one value; `open_` is left as it was by the caller.
void Unevaluated::enter(const Place& place) {
    if (++steps_ > kMostSteps) {
        document_.refuse("too many subschemas to find what they evaluate", place.pointer);
    }
    if (std::ranges::find(open_, place.schema) != open_.end()) {
        document_.refuse("the schema refers to itself without a value between", place.pointer);
    }
    open_.push_back(place.schema);
}

std::vector<Unevaluated::Inner> Unevaluated::inner(const Keywords& keywords) {
    std::vector<Inner> found;
    const auto add = [&](const Place& place, Lit condition) {
        if (place.schema->kind == Value::Kind::kObject) found.push_back({place, condition});
    };
    for (const Keyword keyword : {Keyword::kRef, Keyword::kDynamicRef, Keyword::kRecursiveRef}) {
        if (keywords.has(keyword)) add(keywords.target(keyword), kTrue);
    }
    for (const Place& place : keywords.schemas(Keyword::kAllOf)) add(place, kTrue);
    for (const Keyword keyword : {Keyword::kAnyOf, Keyword::kOneOf}) {
        for (const Place& place : keywords.schemas(keyword)) add(place, formulas_.schema(place));
    }
    if (keywords.has(Keyword::kIf)) {
        const Place place = keywords.schema(Keyword::kIf);
        const Lit condition = formulas_.schema(place);
        add(place, condition);
        if (keywords.has(Keyword::kThen)) add(keywords.schema(Keyword::kThen), condition);
        if (keywords.has(Keyword::kElse)) add(keywords.schema(Keyword::kElse), negated(condition));
    }
    for (const Keyword keyword : {Keyword::kDependentSchemas, Keyword::kDependencies}) {
        for (const auto& member : keywords.members(keyword)) {
            const Place place = keywords.named(keyword, member);
            const int32_t key = formulas_.one_key(formulas_.name(member.first));
            add(place, negated(formulas_.atom(Op::kMembers, place.pointer, key, kFalse)));
        }
    }
    return found;
}

void Unevaluated::collect(const Place& place) {
    enter(place);
    const Keywords keywords(document_, place);
    for (const auto& [name, value] : keywords.members(Keyword::kProperties)) {
        add_once(names_, formulas_.name(name));
    }
    for (const auto& member : keywords.members(Keyword::kPatternProperties)) {
        TextSet set{TextSet::Kind::kPattern, member.first};
        set.pointer = keywords.pointer(Keyword::kPatternProperties, member.first);
        add_once(patterns_, formulas_.text_set(std::move(set)));
    }
    longest_ = std::max(longest_, static_cast<int32_t>(prefix_length(keywords)));
    for (const Inner& part : inner(keywords)) collect(part.place);
    open_.pop_back();
}

bool Unevaluated::is_evaluated(const Keywords& keywords, const Keys& keys) {
    if (keywords.has(Keyword::kAdditionalProperties)) return true;
    if (keys.name >= 0) {
        const std::string_view name = formulas_.name_text(keys.name);
        for (const auto& member : keywords.members(Keyword::kProperties)) {
            if (member.first == name) return true;
        }
    }
    for (const auto& member : keywords.members(Keyword::kPatternProperties)) {
        TextSet set{TextSet::Kind::kPattern, member.first};
        const int32_t pattern = formulas_.text_set(std::move(set));
        if (std::ranges::find(keys.with, pattern) != keys.with.end()) return true;
    }
    return false;
}

bool Unevaluated::is_evaluated(const Keywords& keywords, int32_t index) {
    const Value* items = keywords[Keyword::kItems];
    if (items != nullptr && items->kind != Value::Kind::kArray) return true;
    if (items != nullptr && keywords.has(Keyword::kAdditionalItems)) return true;
    return index < static_cast<int32_t>(prefix_length(keywords));
}

// Holds where the schema or one of its subschemas has evaluated these keys or this index.
template <typename Which>
Lit Unevaluated::evaluated(const Place& place, const Which& which, bool outermost) {
    constexpr bool kIsItem = std::is_same_v<Which, int32_t>;
    const Keywords keywords(document_, place);
    const Keyword own = kIsItem ? Keyword::kUnevaluatedItems : Keyword::kUnevaluatedProperties;
    if ((keywords.has(own) && !outermost) || is_evaluated(keywords, which)) return kTrue;
    enter(place);
    std::vector<Lit> ways;
    for (const Inner& part : inner(keywords)) {
        const Lit inside = evaluated(part.place, which, false);
        if (inside == kFalse) continue;
        ways.push_back(formulas_.all({part.condition, inside}, part.place.pointer));
        if (ways.back() == kTrue) break;
    }
    open_.pop_back();
    return formulas_.any(std::move(ways), place.pointer);
}

void Unevaluated::read_members(const Keywords& keywords, std::vector<Lit>& parts) {
    const int32_t pointer = keywords.pointer(Keyword::kUnevaluatedProperties);
    const Lit rest = formulas_.schema(keywords.schema(Keyword::kUnevaluatedProperties));
    if (rest == kTrue) return;
    if (patterns_.size() > kMostPatterns) {
        document_.refuse("more than " + std::to_string(kMostPatterns) + " patterns beside it",
                         pointer);
    }
    std::ranges::sort(names_);
    // Classes that are evaluated under the same condition share one clause.
    std::vector<std::pair<Lit, std::vector<Lit>>> clauses;
    const auto add = [&](const Keys& keys, int32_t set) {
        const Lit condition = evaluated(keywords.place(), keys, true);
        if (condition == kTrue) return;
        auto clause = std::ranges::find(clauses, condition, [](const auto& c) { return c.first; });
        if (clause == clauses.end()) {
            clauses.push_back({condition, {}});
            clause = clauses.end() - 1;
        }
        clause->second.push_back(formulas_.atom(Op::kMembers, pointer, set, rest));
    };
    for (const int32_t name : names_) {
        Keys keys{name, {}};
        for (const int32_t pattern : patterns_) {
            if (texts_.contains(pattern, formulas_.name_text(name))) keys.with.push_back(pattern);
        }
        add(keys, formulas_.one_key(name));
    }
    for (uint32_t bits = 0; bits < 1u << patterns_.size(); ++bits) {
        Keys keys{-1, {}};
        KeySet set{-1, names_, {}, {}};
        for (size_t i = 0; i < patterns_.size(); ++i) {
            (bits >> i & 1 ? set.with : set.without).push_back(patterns_[i]);
        }
        keys.with = set.with;
        add(keys, formulas_.keys(std::move(set)));
    }
    for (auto& [condition, members] : clauses) {
        const Lit all = formulas_.all(std::move(members), pointer);
        parts.push_back(formulas_.any({condition, all}, pointer));
    }
}

void Unevaluated::find_contained(const Place& place, Lit condition, std::vector<Contained>& found) {
    enter(place);
    const Keywords keywords(document_, place);
    if (keywords.has(Keyword::kContains) && document_.draft(place) >= Draft::k2020) {
        found.push_back({condition, formulas_.schema(keywords.schema(Keyword::kContains))});
    }
    for (const Inner& part : inner(keywords)) {
        find_contained(part.place, formulas_.all({condition, part.condition}, place.pointer),
                       found);
    }
    open_.pop_back();
}

Lit Unevaluated::items_at(int32_t index, int32_t end, Lit rest,
                          const std::vector<Contained>& contained, int32_t pointer) {
    std::vector<Lit> sure{rest};
    std::vector<Contained> unsure;
    for (const Contained& part : contained) {
        if (part.condition == kTrue) {
            sure.push_back(part.item);
        } else {
            unsure.push_back(part);
        }
    }
    if (unsure.size() > kMostContained) {
        document_.refuse("more than " + std::to_string(kMostContained) + " 'contains' beside it",
                         pointer);
    }
    std::vector<Lit> ways;
    for (uint32_t bits = 0; bits < 1u << unsure.size(); ++bits) {
        std::vector<Lit> held, item = sure;
        for (size_t i = 0; i < unsure.size(); ++i) {
            if (!(bits >> i & 1)) continue;
            held.push_back(unsure[i].condition);
            item.push_back(unsure[i].item);
        }
        const Lit value = formulas_.any(std::move(item), pointer);
        if (value != kTrue) {
            held.push_back(formulas_.atom(Op::kItems, pointer, index, end, value));
        }
        ways.push_back(formulas_.all(std::move(held), pointer));
    }
    return formulas_.any(std::move(ways), pointer);
}

void Unevaluated::read_items(const Keywords& keywords, std::vector<Lit>& parts) {
    const int32_t pointer = keywords.pointer(Keyword::kUnevaluatedItems);
    const Lit rest = formulas_.schema(keywords.schema(Keyword::kUnevaluatedItems));
    if (rest == kTrue) return;
    std::vector<Contained> contained;
    find_contained(keywords.place(), kTrue, contained);
    for (int32_t index = 0; index <= longest_; ++index) {
        const Lit condition = evaluated(keywords.place(), index, true);
        if (condition == kTrue) continue;
        const int32_t end = index < longest_ ? index + 1 : -1;
        const Lit items = items_at(index, end, rest, contained, pointer);
        parts.push_back(formulas_.any({condition, items}, pointer));
    }
}

}  // namespace sglite::json
