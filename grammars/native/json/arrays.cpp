#include <algorithm>

#include "containers.h"

namespace sglite::json {

int32_t Arrays::begin(const std::vector<GoalId>& lanes) {
    std::vector<ArrayItem> items;
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
        for (const ArrayShape& shape : goals_.goal(lanes[lane]).arrays) {
            ArrayProgress at = json::begin(shape);
            const int32_t close = cost_to_close(shape, at, costs_);
            if (close < kUnreachable) {
                items.push_back({static_cast<int32_t>(lane), &shape, std::move(at), close});
            }
        }
    }
    return items.empty() ? -1 : intern(std::move(items), {});
}

int32_t Arrays::intern(std::vector<ArrayItem> items, std::vector<int32_t> used) {
    const auto order = [](const ArrayItem& item) {
        return std::tuple(item.lane, item.shape->id, item.at.items, item.at.held);
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
    }
    key.insert(key.end(), used.begin(), used.end());
    const auto [place, fresh] =
        ids_.try_emplace(std::move(key), static_cast<int32_t>(states_.size()));
    if (!fresh) return place->second;
    ArrayState state{std::move(items), std::move(used), {}, unique};
    for (const ArrayItem& item : state.items) {
        if (can_close(item) && (state.closing.empty() || state.closing.back() != item.lane)) {
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
    int64_t border = std::max(shape.low, static_cast<int64_t>(shape.first.size()));
    border = std::max(border, shape.high);
    for (const auto& part : shape.contains) border = std::max(border, part.begin);
    at.items = std::min(at.items, border);
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
    for (const ArrayItem& item : state.items) {
        const ArrayShape& shape = *item.shape;
        if (shape.high >= 0 && item.at.items >= shape.high) continue;
        const bool leading = item.at.items < static_cast<int64_t>(shape.first.size());
        const GoalId base = leading ? shape.first[item.at.items] : shape.rest;
        if (base == kNever) continue;
        ArrayProgress after = item.at;
        ++after.items;
        spread(item, 0, base, std::move(after), used, found);
    }
    return found;
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
    if (shape.unique) {
        for (const int32_t value : used) {
            goal = goals_.except(goal, values_[value]);
            if (goal == kNever) return;
        }
    }
    cap(shape, after);
    const int32_t close = cost_to_close(shape, after, costs_);
    if (close < kUnreachable) found.push_back({goal, {item.lane, &shape, std::move(after), close}});
}

int32_t Arrays::value(const std::string& text) {
    Value read = json::read(text);
    const auto [place, fresh] =
        value_ids_.try_emplace(identity(read), static_cast<int32_t>(values_.size()));
    if (fresh) values_.push_back(std::move(read));
    return place->second;
}

}  // namespace sglite::json
