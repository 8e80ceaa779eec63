// Where a schema that no value satisfies goes wrong, or one that is too much for us.
#include <set>

#include "goals_inside.h"

namespace sglite::json {
namespace {

constexpr int kMostSteps = 32;

// The schemas that must have a value wherever `place` has one.
std::vector<Place> demanded(Document& document, const Place& place) {
    std::vector<Place> found;
    if (place.schema->kind != Value::Kind::kObject) return found;
    const Keywords keywords(document, place);
    for (const Keyword keyword : {Keyword::kRef, Keyword::kDynamicRef, Keyword::kRecursiveRef}) {
        if (keywords.has(keyword)) found.push_back(keywords.target(keyword));
    }
    for (const Place& part : keywords.schemas(Keyword::kAllOf)) found.push_back(part);
    const Value* type = keywords[Keyword::kType];
    if (type == nullptr) return found;
    if (type->text == "object") {
        const auto& members = keywords.members(Keyword::kProperties);
        for (const Value& name : keywords.names(Keyword::kRequired)) {
            for (const auto& member : members) {
                if (member.first != name.text) continue;
                found.push_back(keywords.named(Keyword::kProperties, member));
            }
            if (found.size() > kMostSteps) break;
        }
    }
    const Value* items = keywords[Keyword::kItems];
    if (type->text == "array" && items != nullptr && items->kind != Value::Kind::kArray &&
        keywords.count(Keyword::kMinItems) > 0 && !keywords.has(Keyword::kPrefixItems)) {
        found.push_back(keywords.schema(Keyword::kItems));
    }
    return found;
}

}  // namespace

int32_t Goals::Inside::blame() {
    Place place = document.root();
    try {
        for (int steps = 0; steps < kMostSteps; ++steps) {
            bool goes_on = false;
            for (const Place& inner : demanded(document, place)) {
                work.refill();
                const GoalId id = goal_of({formulas.schema(inner)});
                settle();
                if (alive(id) != kNever) continue;
                place = inner;
                goes_on = true;
                break;
            }
            if (!goes_on) break;
        }
    } catch (const Refused&) {  // what was found so far is true
    }
    return place.pointer;
}

int32_t Goals::Inside::only_pattern(GoalId id, Type type) {
    std::vector<std::pair<Lit, Type>> open;
    for (const Lit lit : lits[id]) open.emplace_back(lit, type);
    std::set<std::pair<Lit, Type>> seen;
    std::set<int32_t> patterns;
    const auto add = [&](int32_t number) {
        const TextSet& set = formulas.text_set(number);
        if (set.kind == TextSet::Kind::kSatisfying) open.emplace_back(set.lit, Type::kString);
        const bool counts =
            set.kind == TextSet::Kind::kPattern || set.kind == TextSet::Kind::kFormat;
        if (counts) patterns.insert(set.pointer);
    };
    while (!open.empty()) {
        const auto [lit, of] = open.back();
        open.pop_back();
        if (truths.of(lit, of) != Truth::kOpen || !seen.emplace(lit & ~1, of).second) continue;
        const Node node = formulas.node(lit);
        switch (node.op) {
            case Op::kSchema:
                open.emplace_back(reader.body(lit & ~1), of);
                break;
            case Op::kAll:
            case Op::kOne:
                for (const Lit part : formulas.parts(node)) open.emplace_back(part, of);
                break;
            case Op::kText:
                add(node.a);
                break;
            case Op::kMembers:
                for (const int32_t set : formulas.key_set(node.a).with) add(set);
                for (const int32_t set : formulas.key_set(node.a).without) add(set);
                break;
            default:
                break;
        }
    }
    return patterns.size() == 1 ? *patterns.begin() : 0;
}

}  // namespace sglite::json
