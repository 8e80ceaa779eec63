// Which goals can be met, and at which least costs.
#include <algorithm>

#include "goals_inside.h"

namespace sglite::json {
namespace {

// What a character of a string adds to its length in bytes when it is written.
int32_t written_size(uint8_t byte) {
    const bool is_short = byte == '"' || byte == '\\' || (byte >= 8 && byte <= 13 && byte != 11);
    return is_short ? 2 : byte < 0x20 ? 6 : 1;
}

}  // namespace

void Goals::Inside::settle() {
    evaluated_ = kNever;  // a refusal may have left it
    const size_t first = finished_;
    for (;;) {
        solve();
        if (!drop_scarce()) break;
        for (size_t i = first; i < found.size(); ++i) found[i].cost = kUnreachable;
        supplies_.clear();
    }
    for (; finished_ < found.size(); ++finished_) finish(static_cast<GoalId>(finished_));
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

int32_t Goals::Inside::key(std::string_view key) {
    int32_t cost = 2 + comma;  // quotes, and a colon with its space
    for (const char c : key) cost += written_size(static_cast<uint8_t>(c));
    return cost;
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
    for (size_t i = 0; i < found[id].arrays.size(); ++i) {
        cost = std::min(cost, cost_of(found[id].arrays[i]));
    }
    evaluated_ = kNever;
    if (cost >= found[id].cost) return;
    found[id].cost = cost;
    for (const GoalId user : users_[id]) {
        if (queued_[user]) continue;
        queued_[user] = true;
        queue_.push_back(user);
    }
}

int32_t Goals::Inside::scalar_cost(const Goal& goal) const {
    int32_t cost = goal.null || goal.truth ? 4 : goal.falsity ? 5 : kUnreachable;
    if (goal.strings != text::kNoText) {
        cost = std::min(cost, 2 + languages.distance(languages.start(goal.strings)));
    }
    if (goal.numbers != text::kNoText) {
        cost = std::min(cost, languages.distance(languages.start(goal.numbers)));
    }
    return cost;
}

int32_t Goals::Inside::cost_of(const ObjectShape& shape) {
    int64_t cost = 2, members = 0;
    work.spend(static_cast<int64_t>(shape.names.size()));
    for (size_t i = 0; i < shape.names.size(); ++i) {
        if (!shape.required[i]) continue;
        ++members;
        cost += static_cast<int64_t>(goal(shape.values[i])) + key(shape.names[i]) + comma;
        if (cost >= kUnreachable) return kUnreachable;
    }
    if (shape.some.empty() && members >= shape.low) {
        if (shape.high >= 0 && members > shape.high) return kUnreachable;
        return static_cast<int32_t>(cost);
    }
    for (const GoalId value : shape.values) use(value);
    for (const auto& extra : shape.extras) use(extra.value);
    const ObjectShape now = living(shape);
    return add_cost(1, cost_to_close(now, begin(now), languages, style.declared_order, *this));
}

int32_t Goals::Inside::cost_of(const ArrayShape& shape) {
    work.spend(static_cast<int64_t>(shape.first.size()));
    if (shape.low == 0 && shape.contains.empty()) return 2;
    for (const GoalId item : shape.first) use(item);
    use(shape.rest);
    for (const auto& part : shape.contains) use(part.holds), use(part.fails);
    const ArrayShape now = living(shape);
    return add_cost(1, cost_to_close(now, begin(now), *this));
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
    std::erase_if(goal.arrays, [&](ArrayShape& shape) { return cost_of(shape) >= kUnreachable; });
    for (ObjectShape& shape : goal.objects) shape = living(shape);
    for (ArrayShape& shape : goal.arrays) shape = living(shape);
    goal.supply = has_unique_ && goal.cost < kUnreachable ? supply_of(id).count : kPlenty;
}

}  // namespace sglite::json
