// Objects that must differ from others: which members are left, and at what cost.
//
// While the members of an object agree with those of a rival, their values matter. A value that
// would leave nothing but rivals to become is barred. Whether that is so is found by a search along
// the rivals: it ends wherever the object differs from all of them.
#include <algorithm>
#include <map>

#include "containers.h"

namespace sglite::json {

Objects::Room::Room(const ObjectItem& item) {
    const ObjectShape& shape = *item.shape;
    for (size_t i = 0; i < shape.names.size(); ++i) {
        if (!shape.required[i] || item.at.used[i]) continue;
        if (missing++ == 0) first = static_cast<int32_t>(i);
    }
    plain = shape.some.empty() && item.at.members + missing >= shape.low;
}

bool Objects::is_rival(const ObjectItem& item) const {
    return std::ranges::any_of(item.rivals, [&](int32_t rival) {
        return distinct_[rival].members.size() == static_cast<size_t>(item.agreeing);
    });
}

// Their keys that are none of the names and not used yet, sorted.
std::vector<std::string> Objects::extras_of_rivals(const ObjectItem& item) const {
    std::vector<std::string> found;
    for (const int32_t rival : item.rivals) {
        for (const auto& [key, value] : distinct_[rival].members) {
            const auto& names = item.shape->names;
            if (std::ranges::find(names, key) != names.end()) continue;
            if (!std::ranges::binary_search(item.at.extras, key)) found.push_back(key);
        }
    }
    std::ranges::sort(found);
    const auto rest = std::ranges::unique(found);
    found.erase(rest.begin(), rest.end());
    return found;
}

// Leaves out the values with which the object could only become a rival.
void Objects::add_next(const ObjectItem& item, std::string_view key, GoalId goal,
                       ObjectProgress after, int32_t close, const Turn& turn,
                       std::vector<Next<ObjectItem>>& found) {
    ObjectItem next{item.lane, item.shape, std::move(after), close};
    std::map<int32_t, std::vector<int32_t>> classes;  // rivals by their value at the key
    for (const int32_t rival : item.rivals) {
        const int32_t value = distinct_[rival].find(key);
        if (value < 0) continue;
        next.rivals.push_back(rival);
        classes[value].push_back(rival);
    }
    std::vector<std::pair<int32_t, int32_t>> costs;
    for (auto& [value, rivals] : classes) {
        costs.emplace_back(
            value,
            cost({item.lane, item.shape, next.at, 0, std::move(rivals), item.agreeing + 1}, turn));
    }
    if (!next.rivals.empty()) next.agreeing = item.agreeing + 1;
    for (const Allowance& allowance : allowances(close, costs)) {
        const GoalId rest = distinct_.except(goal, allowance.barred);
        next.close = allowance.close;
        if (rest != kNever) found.push_back({rest, next});
    }
}

// Up to the closing brace, whatever rivals there are, with keys that are not passed by.
int32_t Objects::cost(const ObjectItem& item, const Turn& turn) {
    if (item.rivals.empty()) {
        return cost_to_close(*item.shape, item.at, languages_, declared_, costs_);
    }
    if (can_close(item) && !is_rival(item)) return 1;
    std::string key = key_of({item});
    key += std::to_string(turn.name) + turn.extra;
    if (const auto known = known_costs_.find(key); known != known_costs_.end()) {
        return known->second;
    }
    const int32_t least = cost_of_members(item, turn);
    memory_ += key.size() + 64;
    return known_costs_[std::move(key)] = least;
}

int32_t Objects::cost_of_members(const ObjectItem& item, const Turn& turn) {
    const ObjectShape& shape = *item.shape;
    const Room room(item);
    int32_t least = kUnreachable;
    const auto price = [&](int32_t key, const std::vector<Next<ObjectItem>>& ways) {
        for (const auto& [goal, next] : ways) {
            const int32_t value = add_cost(goals_.goal(goal).cost, costs_.comma);
            least = std::min(least, add_cost(key, add_cost(value, next.close)));
        }
    };
    for (size_t name = turn.name; name < shape.names.size(); ++name) {
        if (!fits(item, room, name)) continue;
        std::vector<Next<ObjectItem>> ways;
        take(item, shape.names[name], shape.values[name], after_name(item, name), {name + 1, ""},
             ways);
        price(costs_.key(shape.names[name]), ways);
        if (shape.required[name]) return least;  // it cannot be passed by
    }
    if (shape.extras.empty() || (declared_ && room.missing > 0)) return least;
    if (shape.high >= 0 && item.at.members + room.missing + 1 > shape.high) return least;
    const std::vector<std::string> theirs = extras_of_rivals(item);
    for (const auto& extra : shape.extras) {
        const auto add = [&](const std::string& key) {
            std::vector<Next<ObjectItem>> ways;
            take(item, key, extra.value, after_extra(item, key), {shape.names.size(), key}, ways);
            price(costs_.extra_key(key), ways);
        };
        for (const std::string& key : theirs) {
            if (key > turn.extra && languages_.contains(extra.keys, key)) add(key);
        }
        // Any other key makes a difference.
        const size_t enough = item.at.extras.size() + theirs.size() + 1;
        for (const std::string& key : languages_.examples(extra.keys, enough)) {
            if (std::ranges::binary_search(item.at.extras, key)) continue;
            if (std::ranges::binary_search(theirs, key)) continue;
            add(key);
            break;
        }
    }
    return least;
}

ObjectItem Objects::agreed(ObjectItem item, std::string_view key, int32_t value) {
    if (item.rivals.empty()) return item;
    std::erase_if(item.rivals, [&](int32_t rival) { return distinct_[rival].find(key) != value; });
    if (item.rivals.empty()) item.agreeing = 0;
    item.close = cost(item, {});
    return item;
}

}  // namespace sglite::json
