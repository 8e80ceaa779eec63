// What an array still needs: a least number of items, and items of a kind.
#include <algorithm>
#include <map>

#include "progress.h"

namespace sglite::json {
namespace {

constexpr size_t kMostWays = 20'000;
constexpr int64_t kMostApart = 1000;  // items that are priced one by one

GoalId item_goal(const ArrayShape& shape, int64_t index) {
    return index < static_cast<int64_t>(shape.first.size()) ? shape.first[index] : shape.rest;
}

// What an item costs at most behind `others`.
int32_t cost_of_item(const ArrayShape& shape, GoalId goal, int64_t others, Costs& costs) {
    return shape.unique ? costs.nth(goal, others) : costs.goal(goal);
}

int32_t cost_without_contains(const ArrayShape& shape, int64_t items, Costs& costs) {
    int64_t cost = 1;
    const auto leading = static_cast<int64_t>(shape.first.size());
    for (int64_t i = items; i < std::min(shape.low, leading); ++i) {
        const int32_t item = cost_of_item(shape, shape.first[i], i, costs);
        if (item >= kUnreachable) return kUnreachable;
        cost += item + costs.comma;
    }
    int64_t index = std::max(items, leading);
    for (; shape.unique && index < std::min(shape.low, kMostApart); ++index) {
        const int32_t item = cost_of_item(shape, shape.rest, index, costs);
        if (item >= kUnreachable) return kUnreachable;
        cost += item + costs.comma;
    }
    if (const int64_t more = shape.low - index; more > 0) {
        const int32_t item = cost_of_item(shape, shape.rest, shape.low, costs);
        if (item >= kUnreachable) return kUnreachable;
        cost += more * (static_cast<int64_t>(item) + costs.comma);
    }
    return cost < kUnreachable ? static_cast<int32_t>(cost) : costs.unpayable();
}

// Adds items one by one, with the cheapest way to every set of counts.
class Filling {
  public:
    Filling(const ArrayShape& shape, const ArrayProgress& at, Costs& costs)
        : shape_(shape), at_(at), costs_(costs) {}

    int32_t run() {
        std::map<std::vector<int64_t>, int64_t> ways{{at_.held, 1}};
        const int64_t last = last_index();
        int64_t best = kUnreachable;
        size_t seen = 0;
        for (int64_t index = at_.items;; ++index) {
            for (const auto& [held, cost] : ways) {
                if (index >= shape_.low && enough(held)) best = std::min(best, cost);
            }
            if (index >= last || ways.empty() || (shape_.high >= 0 && index >= shape_.high)) break;
            std::map<std::vector<int64_t>, int64_t> longer;
            for (const auto& [held, cost] : ways) {
                if (cost < best) extend(index, held, cost, longer);
            }
            ways = std::move(longer);
            seen += ways.size();
            if (seen > kMostWays && costs_.limited) {
                throw Refused("'contains' with such counts needs too long a search");
            }
        }
        return static_cast<int32_t>(std::min<int64_t>(best, kUnreachable));
    }

  private:
    // No shortest array is longer.
    int64_t last_index() const {
        int64_t last = std::max<int64_t>(at_.items, shape_.low);
        last = std::max<int64_t>(last, static_cast<int64_t>(shape_.first.size()));
        for (size_t i = 0; i < shape_.contains.size(); ++i) {
            last = std::max(last, shape_.contains[i].begin);
        }
        for (size_t i = 0; i < shape_.contains.size(); ++i) {
            last += std::max<int64_t>(shape_.contains[i].low - at_.held[i], 0);
        }
        return last;
    }

    bool enough(const std::vector<int64_t>& held) const {
        for (size_t i = 0; i < held.size(); ++i) {
            if (held[i] < shape_.contains[i].low) return false;
        }
        return true;
    }

    void extend(int64_t index, const std::vector<int64_t>& held, int64_t cost,
                std::map<std::vector<int64_t>, int64_t>& longer) {
        for (const auto& [goal, bits] : kinds_at(index)) {
            std::vector<int64_t> after = held;
            bool possible = true;
            for (size_t i = 0; i < after.size(); ++i) {
                if (!(bits >> i & 1)) continue;
                const auto& part = shape_.contains[i];
                ++after[i];
                if (part.high >= 0 && after[i] > part.high) possible = false;
                if (part.high < 0) after[i] = std::min(after[i], std::max(part.low, held[i]));
            }
            if (!possible) continue;
            const int64_t before = others(index, held, bits);
            const int64_t price = cost + cost_of_item(shape_, goal, before, costs_) + costs_.comma;
            if (price >= kUnreachable) {
                costs_.unpayable();
                continue;
            }
            const auto [place, fresh] = longer.try_emplace(std::move(after), price);
            if (!fresh) place->second = std::min(place->second, price);
        }
    }

    // How many items before `index` may be of a kind: where items are not counted any more, a part
    // of `contains` that lacks some has counted its own.
    int64_t others(int64_t index, const std::vector<int64_t>& held, uint32_t bits) const {
        int64_t least = at_.items < counted_items(shape_) ? index : kUnreachable;
        for (size_t i = 0; i < held.size(); ++i) {
            const auto& part = shape_.contains[i];
            if (!(bits >> i & 1) || (part.high < 0 && held[i] >= part.low)) continue;
            least = std::min(least, held[i] + std::min(index, part.begin));
        }
        return least == kUnreachable ? index : least;
    }

    // The goals that an item at `index` may meet, with the parts of `contains` that then hold.
    const std::vector<std::pair<GoalId, uint32_t>>& kinds_at(int64_t index) {
        int64_t border = static_cast<int64_t>(shape_.first.size());
        for (const auto& part : shape_.contains) border = std::max(border, part.begin);
        const int64_t key = std::min(index, border);
        const auto [place, fresh] = kinds_.try_emplace(key);
        if (fresh) {
            const GoalId base = item_goal(shape_, index);
            if (base != kNever) spread(index, 0, base, 0, place->second);
        }
        return place->second;
    }

    void spread(int64_t index, size_t part, GoalId goal, uint32_t bits,
                std::vector<std::pair<GoalId, uint32_t>>& found) {
        if (goal == kNever || costs_.goal(goal) >= kUnreachable) return;
        if (part == shape_.contains.size()) return found.emplace_back(goal, bits), void();
        const auto& contains = shape_.contains[part];
        if (index < contains.begin) return spread(index, part + 1, goal, bits, found);
        if (contains.fails != kNever) {
            spread(index, part + 1, costs_.both(goal, contains.fails), bits, found);
        }
        if (contains.holds != kNever) {
            spread(index, part + 1, costs_.both(goal, contains.holds), bits | 1u << part, found);
        }
    }

    const ArrayShape& shape_;
    const ArrayProgress& at_;
    Costs& costs_;
    std::map<int64_t, std::vector<std::pair<GoalId, uint32_t>>> kinds_;
};

}  // namespace

int64_t counted_items(const ArrayShape& shape) {
    int64_t most = std::max({shape.low, shape.high, static_cast<int64_t>(shape.first.size())});
    for (const auto& part : shape.contains) most = std::max(most, part.begin);
    return most;
}

ArrayProgress begin(const ArrayShape& shape) {
    if (shape.contains.size() > kMostSome) {
        throw Refused("an array with so many 'contains' needs too long a search");
    }
    return {0, std::vector<int64_t>(shape.contains.size(), 0)};
}

int32_t cost_to_close(const ArrayShape& shape, const ArrayProgress& at, Costs& costs) {
    if (shape.high >= 0 && (at.items > shape.high || shape.low > shape.high)) return kUnreachable;
    if (shape.contains.empty()) return cost_without_contains(shape, at.items, costs);
    return Filling(shape, at, costs).run();
}

bool check_unique(const ArrayShape& shape, Costs& costs) {
    if (!shape.unique) return true;
    bool scarce = false;
    GoalId common = shape.low > 0 ? item_goal(shape, 0) : kNever;
    const auto distinct = std::min<int64_t>(shape.low, shape.first.size() + 1);
    for (int64_t i = 0; i < distinct; ++i) {
        const GoalId goal = item_goal(shape, i);
        if (goal == kNever) return false;
        if (goal != common) common = kNever;
        if (costs.supply(goal) < shape.low) scarce = true;
    }
    for (const auto& part : shape.contains) {
        if (part.holds == kNever) continue;
        // Of the items that may come those that hold count.
        const GoalId held = common == kNever ? item_goal(shape, part.begin) : common;
        const GoalId both = held == kNever ? kNever : costs.both(held, part.holds);
        const int64_t supply = both == kNever ? 0 : costs.supply(both);
        if (supply >= kPlenty && costs.supply(part.holds) >= kPlenty) continue;
        const bool simple = shape.contains.size() == 1 && shape.first.empty() && part.begin == 0;
        if (simple && supply < part.low) return false;
        const GoalId rest =
            part.fails == kNever || held == kNever ? kNever : costs.both(held, part.fails);
        if (!simple || rest == kNever || costs.supply(rest) < kPlenty) {
            throw Refused("'uniqueItems' beside 'contains' over few values needs a search");
        }
    }
    if (!scarce) return true;
    if (common != kNever && shape.contains.empty()) return false;
    throw Refused("'uniqueItems' with 'minItems' over items of few values needs a search");
}

}  // namespace sglite::json
