// How many different values a goal has: needed where items must differ.
#include <algorithm>
#include <set>

#include "goals_inside.h"

namespace sglite::json {
namespace {

constexpr int kDeepestSupply = 64;

int64_t times(int64_t a, int64_t b) {
    if (a == 0 || b == 0) return 0;
    return a > kPlenty / b ? kPlenty : std::min(a * b, kPlenty);
}

int64_t plus(int64_t a, int64_t b) { return std::min(a + b, kPlenty); }

}  // namespace

int64_t Goals::Inside::supply(GoalId id) {
    const Supply& supply = supply_of(id);
    if (!supply.exact) {
        throw Refused(
            "'uniqueItems' over such items needs to count their values, which is not "
            "supported");
    }
    return supply.count;
}

const Goals::Inside::Supply& Goals::Inside::supply_of(GoalId id) {
    // A value that can hold one of its own kind comes in any depth.
    const auto [place, fresh] = supplies_.try_emplace(id, Supply{kPlenty, true});
    if (!fresh) return place->second;
    Supply total;
    const Goal& goal = found[id];
    total.count = goal.null + goal.truth + goal.falsity;
    const auto add = [&](const Supply& part) {
        total.count = plus(total.count, part.count);
        total.exact = total.exact && part.exact;
    };
    // Alternatives may have values in common.
    const auto add_ways = [&](const auto& shapes) {
        Supply most;
        int alive = 0;
        for (const auto& shape : shapes) {
            if (cost_of(shape) >= kUnreachable) continue;
            const Supply part = count(living(shape));
            if (part.count >= most.count) most = part;
            ++alive;
        }
        most.exact = most.exact && (alive < 2 || most.count >= kPlenty);
        add(most);
    };
    if (goal.strings == text::kAnyText) {
        total.count = kPlenty;
    } else if (goal.strings != text::kNoText) {
        add({languages.count(goal.strings, kPlenty), true});
    }
    if (total.count < kPlenty && goal.numbers != text::kNoText) add(count_numbers(numbers[id]));
    if (++supply_depth_ > kDeepestSupply) {
        total.exact = total.count >= kPlenty;
    } else {
        if (total.count < kPlenty) add_ways(goal.objects);
        if (total.count < kPlenty) add_ways(goal.arrays);
    }
    --supply_depth_;
    if (total.count >= kPlenty) total.exact = true;
    return supplies_[id] = total;
}

Goals::Inside::Supply Goals::Inside::count_numbers(const std::vector<Scalars::Numbers>& ways) {
    Supply most;
    bool lists = true;
    std::set<std::string> listed;
    for (const Scalars::Numbers& way : ways) {
        lists = lists && way.is_list;
        for (const text::Decimal& value : way.list) listed.insert(value.text());
        if (way.is_list) continue;
        std::set<std::string> without;
        for (const text::Decimal& value : way.without) without.insert(value.text());
        const int64_t count = text::count_values(way.spec, kPlenty);
        if (count >= kPlenty) return {kPlenty, true};
        most.count = std::max(most.count, count - static_cast<int64_t>(without.size()));
    }
    if (lists) return {static_cast<int64_t>(listed.size()), true};
    most.exact = ways.size() == 1;
    return most;
}

Goals::Inside::Supply Goals::Inside::count(const ObjectShape& shape) {
    Supply total{1, true};
    int64_t required = 0;
    for (size_t i = 0; i < shape.names.size(); ++i) {
        required += shape.required[i];
        const Supply& value = supply_of(shape.values[i]);
        total.count = times(total.count, value.count + !shape.required[i]);
        total.exact = total.exact && value.exact;
    }
    const bool has_room = shape.high < 0 || shape.high > required;
    for (const auto& extra : shape.extras) {
        if (!has_room || !shape.some.empty()) continue;
        if (shape.low <= required + 1 && languages.count(extra.keys, kPlenty) >= kPlenty) {
            return {kPlenty, true};
        }
    }
    const bool is_cut = shape.low > required ||
                        (shape.high >= 0 && shape.high < static_cast<int64_t>(shape.names.size()));
    if (is_cut || !shape.some.empty() || !shape.extras.empty()) return {1, false};
    return total;
}

Goals::Inside::Supply Goals::Inside::count(const ArrayShape& shape) {
    if (!shape.contains.empty()) return {1, false};
    Supply total{0, true};
    int64_t ways = 1;
    for (int64_t size = 0; total.count < kPlenty; ++size) {
        if (size >= shape.low) total.count = plus(total.count, ways);
        if (shape.high >= 0 && size >= shape.high) break;
        const auto leading = static_cast<int64_t>(shape.first.size());
        const GoalId item = size < leading ? shape.first[size] : shape.rest;
        if (item == kNever) break;
        const Supply& values = supply_of(item);
        int64_t choices = values.count;
        total.exact = total.exact && values.exact;
        if (shape.unique && choices < kPlenty) {
            const bool alike = leading == 0 || size == 0;
            total.exact = total.exact && alike;
            choices = std::max<int64_t>(choices - size, 0);
        }
        if (choices == 0) break;
        ways = times(ways, choices);
        if (shape.low > size + 1 && ways >= kPlenty) return {kPlenty, true};
    }
    return total;
}

}  // namespace sglite::json
