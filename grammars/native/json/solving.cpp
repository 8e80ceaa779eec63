// Which goals can be met, and at which least costs.
#include <algorithm>

#include "goals_inside.h"

namespace sglite::json {
void Goals::Inside::settle() {
    evaluated_ = kNever;  // a refusal may have left it
    is_solved_ = false;
    const size_t first = finished_;
    for (;;) {
        solve();
        if (!drop_scarce()) break;
        for (size_t i = first; i < found.size(); ++i) {
            found[i].cost = kUnreachable;
            for (const ArrayShape& shape : found[i].arrays) array_costs_[shape.id] = kUnreachable;
        }
        supplies_.clear();
    }
    is_solved_ = true;
    for (; finished_ < found.size(); ++finished_) {
        placed(finished_, [&](GoalId id) { finish(id); });
    }
}

// Costs

int32_t Goals::Inside::goal(GoalId id) {
    if (id == kNever) return kUnreachable;
    use(id);
    return found[id].cost;
}

// The goal in work depends on this one.
void Goals::Inside::use(GoalId id) {
    if (evaluated_ == kNever || id == kNever || id < static_cast<GoalId>(finished_)) return;
    std::vector<GoalId>& users = users_[id];
    if (users.empty() || users.back() != evaluated_) users.push_back(evaluated_);
}

void Goals::Inside::solve() {
    for (size_t checked = finished_; checked < found.size();) {
        for (; discovered_ < found.size(); ++discovered_) {
            placed(discovered_, [&](GoalId id) { discover(id); });
        }
        // What a goal is made of was mostly found behind it.
        for (size_t i = found.size(); i > checked; --i) {
            placed(i - 1, [&](GoalId id) { evaluate(id); });
        }
        checked = discovered_;
        while (!queue_.empty() && discovered_ == found.size()) {
            const GoalId id = queue_.back();
            queue_.pop_back();
            queued_[id] = false;
            placed(id, [&](GoalId goal) { evaluate(goal); });
        }
    }
}

void Goals::Inside::evaluate(GoalId id) {
    work.spend(4);
    evaluated_ = id;
    const Goal& goal = found[id];
    int32_t cost = scalar_cost(goal);
    for (size_t i = 0; i < found[id].objects.size(); ++i) {
        cost = std::min(cost, cost_of(found[id].objects[i]));
    }
    bool has_fallen = false;
    for (size_t i = 0; i < found[id].arrays.size(); ++i) {
        const int32_t now = cost_of(found[id].arrays[i]);
        int32_t& before = array_costs_[found[id].arrays[i].id];
        has_fallen = has_fallen || (has_unique_ && now < before);
        before = std::min(before, now);
        cost = std::min(cost, now);
    }
    evaluated_ = kNever;
    if (cost >= found[id].cost && !has_fallen) return;
    found[id].cost = cost;
    for (const GoalId user : users_[id]) {
        if (queued_[user]) continue;
        queued_[user] = true;
        queue_.push_back(user);
    }
}

int32_t Goals::Inside::scalar_cost(const Goal& goal) {
    int32_t cost = kUnreachable;
    if (goal.null) cost = literals_[0];
    if (goal.falsity) cost = std::min(cost, literals_[1]);
    if (goal.truth) cost = std::min(cost, literals_[2]);
    if (goal.strings != text::kNoText) {
        cost = std::min(cost, 2 + spelling.rest(languages.start(goal.strings)));
    }
    if (goal.numbers != text::kNoText) {
        cost = std::min(cost, languages.distance(languages.start(goal.numbers)));
    }
    return cost;
}

int32_t Goals::Inside::cost_of(const ObjectShape& shape) {
    int64_t close = 1, members = 0;
    work.spend(static_cast<int64_t>(shape.names.size()));
    for (size_t i = 0; i < shape.names.size(); ++i) {
        if (!shape.required[i]) continue;
        ++members;
        const int32_t value = goal(shape.values[i]);
        if (value >= kUnreachable) return kUnreachable;
        close += static_cast<int64_t>(value) + key(shape.names[i]) + comma;
        if (close >= kUnreachable) return unpayable();
    }
    if (shape.some.empty() && members >= shape.low) {
        if (shape.high >= 0 && members > shape.high) return kUnreachable;
        return 1 + from_begin(static_cast<int32_t>(close));
    }
    for (const GoalId value : shape.values) use(value);
    for (const auto& extra : shape.extras) use(extra.value);
    const ObjectShape now = living(shape);
    return add_cost(
        1, from_begin(cost_to_close(now, begin(now), languages, style.declared_order, *this)));
}

int32_t Goals::Inside::cost_of(const ArrayShape& shape) {
    work.spend(static_cast<int64_t>(shape.first.size()));
    if (shape.low == 0 && shape.contains.empty()) return 2;
    for (const GoalId item : shape.first) use(item);
    use(shape.rest);
    for (const auto& part : shape.contains) use(part.holds), use(part.fails);
    const ArrayShape now = living(shape);
    return add_cost(1, from_begin(cost_to_close(now, begin(now), *this)));
}

// Without what cannot be met, or not as far as is known yet.
ObjectShape Goals::Inside::living(const ObjectShape& shape) const {
    ObjectShape now = shape;
    size_t kept = 0;
    for (size_t i = 0; i < shape.names.size(); ++i) {
        if (alive(shape.values[i]) == kNever && !shape.required[i]) continue;
        if (kept != i) now.names[kept] = std::move(now.names[i]);
        now.values[kept] = shape.values[i];
        now.required[kept] = shape.required[i];
        ++kept;
    }
    now.names.resize(kept);
    now.values.resize(kept);
    now.required.resize(kept);
    std::erase_if(now.extras, [&](const auto& extra) { return alive(extra.value) == kNever; });
    return now;
}

ArrayShape Goals::Inside::living(const ArrayShape& shape) const {
    ArrayShape now = shape;
    for (GoalId& item : now.first) item = alive(item);
    now.rest = alive(shape.rest);
    for (auto& part : now.contains) {
        part.holds = alive(part.holds);
        part.fails = alive(part.fails);
    }
    return now;
}

// Takes out arrays whose items cannot differ; whether there were any.
bool Goals::Inside::drop_scarce() {
    if (!has_unique_) return false;
    for (size_t i = finished_; i < found.size(); ++i) {
        for (size_t k = 0; k < found[i].arrays.size(); ++k) {
            const ArrayShape shape = found[i].arrays[k];
            if (shape.unique && !shape.contains.empty()) {
                placed(i, [&](GoalId) { prepare(shape); });
            }
        }
    }
    solve();
    bool dropped = false;
    for (size_t i = finished_; i < found.size(); ++i) {
        placed(i, [&](GoalId id) {
            dropped |= std::erase_if(found[id].arrays, [&](const ArrayShape& shape) {
                           if (!shape.unique || cost_of(shape) >= kUnreachable) return false;
                           return !check_unique(living(shape), *this);
                       }) > 0;
        });
    }
    return dropped;
}

// Leaves the shapes that can be met, without the members and items that cannot.
void Goals::Inside::finish(GoalId id) {
    Goal& goal = found[id];
    std::erase_if(goal.objects, [&](ObjectShape& shape) { return cost_of(shape) >= kUnreachable; });
    std::erase_if(goal.arrays, [&](ArrayShape& shape) {
        const int32_t cost = cost_of(shape);
        if (shape.unique && cost >= kNotFound && cost < kUnreachable) {
            throw Refused("'uniqueItems' over such items needs a search for different values");
        }
        return cost >= kUnreachable;
    });
    for (ObjectShape& shape : goal.objects) shape = living(shape);
    for (ArrayShape& shape : goal.arrays) shape = living(shape);
    goal.supply = has_unique_ && goal.cost < kUnreachable ? supply_of(id).count : kPlenty;
}

}  // namespace sglite::json
