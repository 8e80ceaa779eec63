// Goals without some values.
#include "distinct.h"

#include <algorithm>

#include "containers.h"

namespace sglite::json {

using text::kNoText;
using text::LangId;
using Kind = Value::Kind;

std::vector<Allowance> allowances(int32_t close,
                                  const std::vector<std::pair<int32_t, int32_t>>& costs) {
    constexpr size_t kMost = 6;  // beyond that, several costs are one
    std::vector<int32_t> different{close};
    for (const auto& [value, cost] : costs) {
        if (cost > close && cost < kUnreachable) different.push_back(cost);
    }
    std::ranges::sort(different);
    different.erase(std::unique(different.begin(), different.end()), different.end());
    if (different.size() > kMost) {
        different[kMost - 1] = different.back();
        different.resize(kMost);
    }
    std::vector<Allowance> found;
    for (const int32_t most : different) {
        found.push_back({{}, most});
        for (const auto& [value, cost] : costs) {
            if (cost > most) found.back().barred.push_back(value);
        }
    }
    return found;
}

GoalId Distinct::except(GoalId goal, const std::vector<int32_t>& values) {
    std::vector<int32_t> key{goal};
    for (const int32_t value : values) {
        if (can_be(goal, value)) key.push_back(value);
    }
    if (key.size() == 1) return goal;
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    const GoalId found = find(goal, {key.begin() + 1, key.end()});
    memory_ += 4 * key.size() + 400;
    return known_[std::move(key)] = found;
}

// Of objects and arrays only roughly.
bool Distinct::can_be(GoalId id, int32_t value) {
    const Goal& goal = goals_.goal(id);
    const Values::Entry& entry = values_[value];
    switch (entry.kind()) {
        case Kind::kNull:
            return goal.null;
        case Kind::kTrue:
            return goal.truth;
        case Kind::kFalse:
            return goal.falsity;
        case Kind::kObject:
            return !goal.objects.empty();
        case Kind::kArray:
            return !goal.arrays.empty();
        default:
            break;
    }
    const uint64_t key = static_cast<uint64_t>(id) << 32 | static_cast<uint32_t>(value);
    const auto [place, fresh] = can_be_.try_emplace(key);
    if (fresh) {
        place->second = entry.kind() == Kind::kString
                            ? languages_.contains(goal.strings, entry.scalar.text)
                            : languages_.contains(goal.numbers, entry.scalar.number.text());
        memory_ += 48;
    }
    return place->second;
}

GoalId Distinct::find(GoalId id, const std::vector<int32_t>& values) {
    const Goal& goal = goals_.goal(id);
    Goal rest{goal.null, goal.truth, goal.falsity};
    for (const int32_t value : values) {
        switch (values_[value].kind()) {
            case Kind::kNull:
                rest.null = false;
                break;
            case Kind::kTrue:
                rest.truth = false;
                break;
            case Kind::kFalse:
                rest.falsity = false;
                break;
            case Kind::kObject:
            case Kind::kArray:
                rest.barred.push_back(value);
                break;
            default:
                break;
        }
    }
    rest.strings = strings(goal.strings, values);
    rest.numbers = numbers(goal.numbers, values);
    rest.base = &goal;
    rest.supply = goal.supply >= kPlenty ? kPlenty : 0;
    rest.cost = goals_.scalar_cost(rest);
    rest.cost = std::min(rest.cost, objects_.least(rest));
    rest.cost = std::min(rest.cost, arrays_.least(rest));
    return rest.cost >= kUnreachable ? kNever : goals_.add(std::move(rest));
}

LangId Distinct::strings(LangId all, const std::vector<int32_t>& values) {
    std::vector<std::string> words;
    for (const int32_t value : values) {
        if (values_[value].kind() == Kind::kString) words.push_back(values_[value].scalar.text);
    }
    if (words.empty()) return all;
    const LangId others = languages_.complement(languages_.words(std::move(words)));
    const LangId rest = languages_.both({all, others});
    return languages_.empty(rest) ? kNoText : rest;
}

// No text where it would take too many states: such a number is refused where it ends, and another
// digit of its exponent makes it another number.
LangId Distinct::texts_of(const text::Decimal& number) {
    try {
        return goals_.texts_of(number);
    } catch (const Refused&) {
        return kNoText;
    }
}

LangId Distinct::numbers(LangId all, const std::vector<int32_t>& values) {
    std::vector<LangId> without;
    for (const int32_t value : values) {
        if (values_[value].kind() != Kind::kNumber) continue;
        const auto [place, fresh] = numbers_.try_emplace(value, kNoText);
        if (fresh) place->second = texts_of(values_[value].scalar.number);
        if (place->second != kNoText) without.push_back(place->second);
    }
    if (without.empty()) return all;
    const LangId others = languages_.complement(languages_.either(std::move(without)));
    const LangId rest = languages_.both({all, others});
    return languages_.empty(rest) ? kNoText : rest;
}

}  // namespace sglite::json
