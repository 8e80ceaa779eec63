// Arrays while they are read.
#include <algorithm>
#include <map>

#include "containers.h"

namespace sglite::json {

// One item per shape that a goal allows.
std::vector<ArrayItem> Arrays::beginnings(const Goal& goal, int32_t lane) {
    std::vector<ArrayItem> found;
    for (const ArrayShape& shape : goal.shaped().arrays) {
        ArrayItem item{lane, &shape, json::begin(shape), 0};
        for (const int32_t value : goal.barred) {
            if (distinct_[value].kind() == Value::Kind::kArray) item.rivals.push_back(value);
        }
        item.close = cost(item, {});
        if (item.close < kUnreachable) found.push_back(std::move(item));
    }
    return found;
}

int32_t Arrays::begin(const std::vector<GoalId>& lanes) {
    std::vector<ArrayItem> items;
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
        const auto more = beginnings(goals_.goal(lanes[lane]), static_cast<int32_t>(lane));
        items.insert(items.end(), more.begin(), more.end());
    }
    return items.empty() ? -1 : intern(std::move(items), {});
}

int32_t Arrays::least(const Goal& goal) {
    int32_t least = kUnreachable;
    for (const ArrayItem& item : beginnings(goal, 0)) {
        least = std::min(least, costs_.from_begin(item.close));
    }
    return add_cost(1, least);
}

int32_t Arrays::intern(std::vector<ArrayItem> items, std::vector<int32_t> used) {
    const auto order = [](const ArrayItem& item) {
        return std::tuple(item.lane, item.shape->id, item.at.items, item.at.held, item.agreeing,
                          item.rivals);
    };
    if (items.size() > 1) {
        std::ranges::sort(items, {}, order);
        const auto rest = std::ranges::unique(items, {}, order);
        items.erase(rest.begin(), rest.end());
    }
    const bool unique =
        std::ranges::any_of(items, [](const ArrayItem& i) { return i.shape->unique; });
    if (!unique) used.clear();
    std::vector<int32_t> key{static_cast<int32_t>(items.size())};
    for (const ArrayItem& item : items) {
        key.insert(key.end(), {item.lane, item.shape->id, static_cast<int32_t>(item.at.items)});
        key.insert(key.end(), item.at.held.begin(), item.at.held.end());
        key.insert(key.end(), {item.agreeing, static_cast<int32_t>(item.rivals.size())});
        key.insert(key.end(), item.rivals.begin(), item.rivals.end());
    }
    key.insert(key.end(), used.begin(), used.end());
    const auto [place, fresh] =
        ids_.try_emplace(std::move(key), static_cast<int32_t>(states_.size()));
    if (!fresh) return place->second;
    ArrayState state{std::move(items), std::move(used), {}, unique, unique};
    for (const ArrayItem& item : state.items) {
        state.watched = state.watched || !item.rivals.empty();
        if (!can_close(item) || is_rival(item)) continue;
        if (state.closing.empty() || state.closing.back() != item.lane) {
            state.closing.push_back(item.lane);
        }
    }
    memory_ +=
        sizeof state + state.items.size() * sizeof(ArrayItem) + 8 * place->first.size() + 128;
    states_.push_back(std::move(state));
    return place->second;
}

bool Arrays::can_close(const ArrayItem& item) const {
    const ArrayShape& shape = *item.shape;
    if (item.at.items < shape.low) return false;
    for (size_t i = 0; i < shape.contains.size(); ++i) {
        if (item.at.held[i] < shape.contains[i].low) return false;
    }
    return true;
}

// Counts that nothing asks for any more are kept at one number.
void Arrays::cap(const ArrayShape& shape, ArrayProgress& at) const {
    at.items = std::min(at.items, counted_items(shape));
    for (size_t i = 0; i < at.held.size(); ++i) {
        if (shape.contains[i].high < 0) at.held[i] = std::min(at.held[i], shape.contains[i].low);
    }
}

std::vector<Next<ArrayItem>> Arrays::item(int32_t id) {
    const ArrayState& state = states_[id];
    return next(state, state.used);
}

bool Arrays::has_item(int32_t id) {
    if (const auto known = has_item_.find(id); known != has_item_.end()) return known->second;
    const ArrayState& state = states_[id];
    bool found = false;
    for (const auto& [goal, item] : next(state, {})) {
        // Of endlessly many values the used ones leave some.
        const bool plenty = !item.shape->unique || goals_.goal(goal).supply >= kPlenty;
        found = found || plenty;
    }
    found = found || !next(state, state.used).empty();
    has_item_[id] = found;
    return found;
}

std::vector<Next<ArrayItem>> Arrays::next(const ArrayState& state,
                                          const std::vector<int32_t>& used) {
    std::vector<Next<ArrayItem>> found;
    for (const ArrayItem& item : state.items) add_items(item, used, found);
    return found;
}

void Arrays::add_items(const ArrayItem& item, const std::vector<int32_t>& used,
                       std::vector<Next<ArrayItem>>& found) {
    const ArrayShape& shape = *item.shape;
    if (shape.high >= 0 && item.at.items >= shape.high) return;
    const bool leading = item.at.items < static_cast<int64_t>(shape.first.size());
    const GoalId base = leading ? shape.first[item.at.items] : shape.rest;
    if (base == kNever) return;
    ArrayProgress after = item.at;
    ++after.items;
    spread(item, 0, base, std::move(after), used, found);
}

// Every way in which an item may count, as far as the array can still be finished afterwards.
void Arrays::spread(const ArrayItem& item, size_t part, GoalId goal, ArrayProgress after,
                    const std::vector<int32_t>& used, std::vector<Next<ArrayItem>>& found) {
    const ArrayShape& shape = *item.shape;
    if (part < shape.contains.size()) {
        const auto& contains = shape.contains[part];
        if (item.at.items < contains.begin) return spread(item, part + 1, goal, after, used, found);
        if (const GoalId both =
                contains.fails == kNever ? kNever : goals_.both(goal, contains.fails);
            both != kNever) {
            spread(item, part + 1, both, after, used, found);
        }
        if (contains.holds == kNever) return;
        if (contains.high >= 0 && after.held[part] >= contains.high) return;
        const GoalId both = goals_.both(goal, contains.holds);
        if (both == kNever) return;
        ++after.held[part];
        return spread(item, part + 1, both, after, used, found);
    }
    cap(shape, after);
    add_next(item, goal, std::move(after), used, found);
}

// Leaves out the values that are used, and those with which the array could only become a rival.
void Arrays::add_next(const ArrayItem& item, GoalId goal, ArrayProgress after,
                      const std::vector<int32_t>& used, std::vector<Next<ArrayItem>>& found) {
    const ArrayShape& shape = *item.shape;
    ArrayItem next{item.lane, &shape, std::move(after), 0};
    next.close = cost_to_close(shape, next.at, costs_);
    if (next.close >= kUnreachable) return;
    std::map<int32_t, std::vector<int32_t>> classes;  // rivals by their next item
    const auto index = static_cast<size_t>(item.agreeing);
    for (const int32_t rival : item.rivals) {
        const std::vector<int32_t>& items = distinct_[rival].items;
        if (items.size() <= index) continue;
        next.rivals.push_back(rival);
        classes[items[index]].push_back(rival);
    }
    std::vector<std::pair<int32_t, int32_t>> costs;
    for (auto& [value, rivals] : classes) {
        if (shape.unique && std::ranges::binary_search(used, value)) continue;
        ArrayItem then{item.lane, &shape, next.at, 0, std::move(rivals), item.agreeing + 1};
        std::vector<int32_t> more;
        if (shape.unique) {
            more = used;
            more.insert(std::ranges::lower_bound(more, value), value);
        }
        costs.emplace_back(value, cost(then, more));
    }
    if (!next.rivals.empty()) next.agreeing = item.agreeing + 1;
    for (Allowance& allowance : allowances(next.close, costs)) {
        if (shape.unique) {
            allowance.barred.insert(allowance.barred.end(), used.begin(), used.end());
            std::ranges::sort(allowance.barred);
        }
        const GoalId rest = distinct_.except(goal, allowance.barred);
        next.close = allowance.close;
        if (rest != kNever) found.push_back({rest, next});
    }
}

bool Arrays::is_rival(const ArrayItem& item) const {
    return std::ranges::any_of(item.rivals, [&](int32_t rival) {
        return distinct_[rival].items.size() == static_cast<size_t>(item.agreeing);
    });
}

// Up to the closing bracket, whatever rivals there are.
int32_t Arrays::cost(const ArrayItem& item, const std::vector<int32_t>& used) {
    if (item.rivals.empty()) return cost_to_close(*item.shape, item.at, costs_);
    if (can_close(item) && !is_rival(item)) return 1;
    std::vector<int32_t> key{item.shape->id, item.agreeing, static_cast<int32_t>(item.at.items),
                             static_cast<int32_t>(item.rivals.size())};
    key.insert(key.end(), item.rivals.begin(), item.rivals.end());
    key.insert(key.end(), item.at.held.begin(), item.at.held.end());
    key.insert(key.end(), used.begin(), used.end());
    if (const auto known = known_costs_.find(key); known != known_costs_.end()) {
        return known->second;
    }
    std::vector<Next<ArrayItem>> found;
    add_items(item, used, found);
    int32_t least = kUnreachable;
    for (const auto& [goal, next] : found) {
        const int32_t rest = add_cost(costs_.comma, next.close);
        least = std::min(least, add_cost(goals_.goal(goal).cost, rest));
    }
    memory_ += 4 * key.size() + 64;
    return known_costs_[std::move(key)] = least;
}

ArrayItem Arrays::agreed(ArrayItem item, int32_t value, const std::vector<int32_t>& used) {
    if (item.rivals.empty()) return item;
    std::erase_if(item.rivals, [&](int32_t rival) {
        return distinct_[rival].items[static_cast<size_t>(item.agreeing) - 1] != value;
    });
    if (item.rivals.empty()) item.agreeing = 0;
    item.close = cost(item, item.shape->unique ? used : std::vector<int32_t>{});
    return item;
}

}  // namespace sglite::json
