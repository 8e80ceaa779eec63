// Whether a value meets a goal, by definition.
#include "admits.h"

#include <algorithm>
#include <unordered_set>

namespace sglite::json {
namespace {

class Judge {
  public:
    Judge(const Goals& goals, text::Languages& languages) : goals_(goals), languages_(languages) {}

    bool meets(GoalId id, const Value& value) {
        if (id == kNever) return false;
        const Goal& goal = goals_.goal(id);
        switch (value.kind) {
            case Value::Kind::kNull:
                return goal.null;
            case Value::Kind::kTrue:
                return goal.truth;
            case Value::Kind::kFalse:
                return goal.falsity;
            case Value::Kind::kString:
                return languages_.contains(goal.strings, value.text);
            case Value::Kind::kNumber:
                return languages_.contains(goal.numbers, value.number.text());
            case Value::Kind::kArray:
                return std::ranges::any_of(goal.arrays,
                                           [&](const auto& shape) { return fits(shape, value); });
            case Value::Kind::kObject:
                break;
        }
        return std::ranges::any_of(goal.objects,
                                   [&](const auto& shape) { return fits(shape, value); });
    }

  private:
    static bool counts(int64_t count, int64_t low, int64_t high) {
        return count >= low && (high < 0 || count <= high);
    }

    // The goal of the value at a key; kNever: no such member may be.
    GoalId value_at(const ObjectShape& shape, const std::string& key) {
        const auto name = std::ranges::find(shape.names, key);
        if (name != shape.names.end()) return shape.values[name - shape.names.begin()];
        for (const auto& extra : shape.extras) {
            if (languages_.contains(extra.keys, key)) return extra.value;
        }
        return kNever;
    }

    bool fits(const ObjectShape& shape, const Value& value) {
        if (!counts(static_cast<int64_t>(value.members.size()), shape.low, shape.high)) {
            return false;
        }
        for (size_t i = 0; i < shape.names.size(); ++i) {
            if (shape.required[i] && value.find(shape.names[i]) == nullptr) return false;
        }
        for (const auto& [key, inner] : value.members) {
            if (!meets(value_at(shape, key), inner)) return false;
        }
        return std::ranges::all_of(shape.some, [&](const auto& some) {
            return std::ranges::any_of(value.members, [&](const auto& member) {
                return languages_.contains(some.keys, member.first) &&
                       meets(some.value, member.second);
            });
        });
    }

    bool fits(const ArrayShape& shape, const Value& value) {
        const std::vector<Value>& items = value.items;
        if (!counts(static_cast<int64_t>(items.size()), shape.low, shape.high)) return false;
        std::unordered_set<std::string> different;
        for (size_t i = 0; i < items.size(); ++i) {
            if (!meets(i < shape.first.size() ? shape.first[i] : shape.rest, items[i])) {
                return false;
            }
            if (shape.unique && !different.insert(identity(items[i])).second) return false;
        }
        return std::ranges::all_of(shape.contains, [&](const auto& part) {
            // An item that both holds and fails may be counted or not.
            int64_t least = 0, most = 0;
            for (size_t i = static_cast<size_t>(part.begin); i < items.size(); ++i) {
                const bool holds = meets(part.holds, items[i]), fails = meets(part.fails, items[i]);
                if (!holds && !fails) return false;
                least += !fails;
                most += holds;
            }
            return most >= part.low && (part.high < 0 || least <= part.high);
        });
    }

    const Goals& goals_;
    text::Languages& languages_;
};

}  // namespace

bool admits(const Goals& goals, text::Languages& languages, GoalId goal, const Value& value) {
    return Judge(goals, languages).meets(goal, value);
}

}  // namespace sglite::json
