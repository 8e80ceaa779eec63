// What the values of a goal cost beside others that they must differ from.
//
// The value behind `n` others costs at most as much as one of any n + 1 different values: the
// bound of an array of unique items is the sum of these, and writing the cheapest item that is left
// keeps within it.
#include <algorithm>
#include <bit>
#include <set>

#include "goals_inside.h"

namespace sglite::json {
namespace {

constexpr size_t kMostRanks = 1024;
constexpr int kDeepestRanks = 4;

// Bounds of texts that come shortest first: the shortest that is left is one of them.
void rise(std::vector<int32_t>& costs) {
    for (size_t i = 1; i < costs.size(); ++i) costs[i] = std::max(costs[i], costs[i - 1]);
}

}  // namespace

int32_t Goals::Inside::nth(GoalId id, int64_t others) {
    if (id == kNever || others == 0 || goal(id) >= kUnreachable) return goal(id);
    const size_t count = std::bit_ceil(std::min(static_cast<size_t>(others) + 1, kMostRanks));
    const Ranks ranks = this->ranks(id, count, 0);
    if (ranks.costs.size() > static_cast<size_t>(others)) return ranks.costs[others];
    if (found[id].objects.empty() && found[id].arrays.empty()) return ranks.heaviest;
    const bool is_solved = is_solved_ || id < static_cast<GoalId>(finished_);
    if (!is_solved) return ranks.is_whole ? ranks.heaviest : kNotFound;
    if (ranks.costs.size() < count && supply_of(id).count >= kPlenty) {
        throw Refused("'uniqueItems' over items nested so deep needs a search");
    }
    return ranks.heaviest;
}

Goals::Inside::Ranks Goals::Inside::ranks(GoalId id, size_t count, int depth) {
    if (goal(id) >= kUnreachable) return {{}, 0, id == kNever};
    Ranks all{scalar_ranks(id, count)};
    if (!all.costs.empty()) all.heaviest = all.costs.back();
    // Shapes may have values in common: of each kind the one with the most values is looked at.
    const auto add_best = [&](const auto& shapes) {
        std::vector<int32_t> best;
        for (const auto& shape : shapes) {
            if (all.costs.size() + best.size() >= count && depth > 0) break;
            Ranks one = ranks_of(shape, count, depth);
            std::ranges::sort(one.costs);
            all.is_whole = all.is_whole && one.is_whole;
            all.heaviest = std::max(all.heaviest, one.heaviest);
            if (one.costs.size() > best.size() ||
                (one.costs.size() == best.size() && one.costs < best)) {
                best = std::move(one.costs);
            }
        }
        all.costs.insert(all.costs.end(), best.begin(), best.end());
    };
    add_best(found[id].objects);
    add_best(found[id].arrays);
    std::ranges::sort(all.costs);
    if (all.costs.size() > count) all.costs.resize(count);
    return all;
}

const std::vector<int32_t>& Goals::Inside::scalar_ranks(GoalId id, size_t count) {
    auto& [asked, ranks] = scalar_ranks_[id];
    if (asked >= count) return ranks;
    asked = count;
    ranks.clear();
    const Goal& goal = found[id];
    if (goal.null) ranks.push_back(literals_[0]);
    if (goal.falsity) ranks.push_back(literals_[1]);
    if (goal.truth) ranks.push_back(literals_[2]);
    if (goal.strings != text::kNoText) {
        std::vector<int32_t> costs;
        for (const std::string& text : languages.examples(goal.strings, count)) {
            costs.push_back(2 + spelling.rests(text).front());
        }
        rise(costs);
        ranks.insert(ranks.end(), costs.begin(), costs.end());
    }
    if (goal.numbers != text::kNoText) {
        std::vector<int32_t> costs;
        std::set<std::string> values;
        // Many texts may mean one number.
        for (const std::string& text : languages.examples(goal.numbers, 8 * count)) {
            if (costs.size() < count && values.insert(identity(read(text))).second) {
                costs.push_back(static_cast<int32_t>(text.size()));
            }
        }
        ranks.insert(ranks.end(), costs.begin(), costs.end());
    }
    std::ranges::sort(ranks);
    return ranks;
}

// Of objects that differ from the lightest in one member.
Goals::Inside::Ranks Goals::Inside::ranks_of(const ObjectShape& shape, size_t count, int depth) {
    const int32_t least = cost_of(shape);
    if (least >= kUnreachable) return {{}, 0, false};
    Ranks all{{least}, least, depth < kDeepestRanks};
    if (depth >= kDeepestRanks) return all;
    const int64_t required = std::ranges::count(shape.required, true);
    // Then the lightest one has nothing but what is required.
    const bool is_bare = shape.some.empty() && required >= shape.low;
    const bool has_room = is_bare && (shape.high < 0 || required < shape.high);
    for (size_t i = 0; i < shape.names.size() && all.costs.size() < count; ++i) {
        if (!shape.required[i] && !has_room) continue;
        const Ranks parts = ranks(shape.values[i], count, depth + 1);
        all.is_whole = all.is_whole && parts.is_whole;
        if (parts.costs.empty()) continue;
        const int32_t before = shape.required[i] ? -std::min(goal(shape.values[i]), parts.costs[0])
                                                 : add_cost(key(shape.names[i]), comma);
        for (size_t part = shape.required[i] ? 1 : 0; part < parts.costs.size(); ++part) {
            all.costs.push_back(add_cost(least, before + parts.costs[part]));
        }
        all.heaviest = add_cost(all.heaviest, before + parts.heaviest);
    }
    for (size_t i = 0; i < shape.extras.size() && has_room && all.costs.size() < count; ++i) {
        const auto& extra = shape.extras[i];
        const int32_t behind = add_cost(goal(extra.value), comma);
        if (behind >= kUnreachable) {
            all.is_whole = false;
            continue;
        }
        for (const std::string& name : languages.examples(extra.keys, count)) {
            all.costs.push_back(add_cost(least, add_cost(extra_key(name), behind)));
        }
        all.heaviest = std::max(all.heaviest, all.costs.back());
    }
    return all;
}

// Of arrays that grow from the lightest, and of those with the heaviest items of each length.
Goals::Inside::Ranks Goals::Inside::ranks_of(const ArrayShape& shape, size_t count, int depth) {
    const int32_t least = array_costs_[shape.id];
    if (least >= kUnreachable) return {{}, 0, false};
    Ranks all{{least}, least, depth < kDeepestRanks};
    if (depth >= kDeepestRanks) return all;
    const auto leading = static_cast<int64_t>(shape.first.size());
    const auto item = [&](int64_t i) { return i < leading ? shape.first[i] : shape.rest; };
    if (!shape.contains.empty()) {
        const bool is_open =
            std::ranges::all_of(shape.contains, [](auto& c) { return c.high < 0; });
        if (!is_open || shape.high >= 0 || shape.rest == kNever) return all;
        for (const int32_t more : ranks(shape.rest, count, depth + 1).costs) {
            all.costs.push_back(add_cost(least, more + comma));
            all.heaviest = std::max(all.heaviest, all.costs.back());
        }
        return all;
    }
    int64_t ways = 1;  // to write arrays of this length
    int32_t heaviest = 2;
    for (int64_t length = 0; all.costs.size() < count; ++length) {
        if (length >= shape.low && length > 1) {
            const int64_t others = length == shape.low ? ways - 1 : ways;
            all.costs.insert(all.costs.end(), std::min<size_t>(others, count), heaviest);
        }
        if (length >= shape.low) all.heaviest = std::max(all.heaviest, heaviest);
        const GoalId next = item(length);
        if (next == kNever || (shape.high >= 0 && length >= shape.high)) break;
        const Ranks parts = ranks(next, count, depth + 1);
        all.is_whole = all.is_whole && parts.is_whole;
        const auto choices = static_cast<int64_t>(parts.costs.size()) - (shape.unique ? length : 0);
        if (choices <= 0) break;
        for (size_t i = shape.low; length == 0 && shape.low <= 1 && i < parts.costs.size(); ++i) {
            all.costs.push_back(add_cost(parts.costs[i], 2));
        }
        ways = std::min<int64_t>(ways * choices, kMostRanks);
        heaviest = add_cost(heaviest, parts.heaviest + (length == 0 ? 0 : comma));
    }
    return all;
}

}  // namespace sglite::json
