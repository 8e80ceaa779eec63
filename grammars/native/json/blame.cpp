// Where a schema that no value satisfies goes wrong.
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

}  // namespace sglite::json
