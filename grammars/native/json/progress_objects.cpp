// What an object still needs: required keys, demanded members, a least number of members.
#include <algorithm>
#include <bit>
#include <optional>

#include "progress.h"

namespace sglite::json {
namespace {

using text::LangId;
using text::Languages;

constexpr int kMostSteps = 20'000;
constexpr int64_t kMostMembers = 500;  // that are to come in any event

// A search for the cheapest members that close an object.
class Closing {
  public:
    Closing(const ObjectShape& shape, const ObjectProgress& at, Languages& languages, bool declared,
            Costs& costs)
        : shape_(shape), at_(at), languages_(languages), declared_(declared), costs_(costs) {}

    int32_t run() {
        chosen_.assign(shape_.names.size(), kNever);
        for (size_t i = 0; i < shape_.names.size(); ++i) {
            if (!shape_.required[i] || at_.used[i]) continue;
            if (!can_come(i)) return kUnreachable;
            chosen_[i] = shape_.values[i];
            ++count_;
        }
        meet(at_.open);
        return best_;
    }

  private:
    // An extra key that some demands need: one of `keys`, with a value of `value`.
    struct Group {
        LangId keys;
        GoalId value;
    };

    bool can_come(size_t name) const {
        if (at_.used[name]) return false;
        return !declared_ || (!at_.behind && static_cast<int32_t>(name) >= at_.place);
    }

    int32_t name_cost(size_t name, GoalId value) {
        if (value == kNever) return kUnreachable;
        return add_cost(costs_.key(shape_.names[name]), add_cost(costs_.goal(value), costs_.comma));
    }

    // Tries every way to meet the demands in `open`, then closes.
    void meet(uint32_t open) {
        if (++steps_ > kMostSteps && costs_.limited) {
            throw Refused("an object with so many demands on its members needs too long a search");
        }
        if (shape_.high >= 0 && at_.members + count_ > shape_.high) return;
        if (open == 0) return close();
        const int demand = std::countr_zero(open);
        const uint32_t rest = open & (open - 1);
        const auto& some = shape_.some[demand];
        for (size_t i = 0; i < shape_.names.size(); ++i) {
            if (!can_come(i) || !languages_.contains(some.keys, shape_.names[i])) continue;
            const GoalId before = chosen_[i];
            const bool fresh = before == kNever;
            const GoalId value = costs_.both(fresh ? shape_.values[i] : before, some.value);
            if (value == kNever || costs_.goal(value) >= kUnreachable) continue;
            chosen_[i] = value;
            count_ += fresh;
            meet(rest);
            count_ -= fresh;
            chosen_[i] = before;
        }
        for (size_t g = 0; g < groups_.size(); ++g) {
            const Group before = groups_[g];
            if (narrow(groups_[g], some)) meet(rest);
            groups_[g] = before;
        }
        for (const auto& extra : shape_.extras) {
            groups_.push_back({extra.keys, extra.value});
            ++count_;
            if (narrow(groups_.back(), some)) meet(rest);
            --count_;
            groups_.pop_back();
        }
    }

    bool narrow(Group& group, const ObjectShape::Some& some) {
        group.value = costs_.both(group.value, some.value);
        if (group.value == kNever || costs_.goal(group.value) >= kUnreachable) return false;
        group.keys = languages_.both({group.keys, some.keys});
        return group.keys != text::kNoText;
    }

    // All demands are met by chosen names and groups; adds what a least number still asks for.
    void close() {
        int64_t cost = 1;
        for (size_t i = 0; i < chosen_.size(); ++i) {
            if (chosen_[i] != kNever) cost += name_cost(i, chosen_[i]);
        }
        std::vector<std::string> taken = at_.extras;
        const std::optional<int64_t> grouped = cost_of_groups(0, taken);
        if (!grouped) return;
        cost += *grouped;
        const int64_t missing = shape_.low - at_.members - count_;
        if (missing > 0) cost += cost_of_further(missing, taken);
        if (cost < best_) best_ = static_cast<int32_t>(cost);
    }

    // Different keys for the groups from `first` on: the first ones that fit. They go into `taken`.
    std::optional<int64_t> cost_of_groups(size_t first, std::vector<std::string>& taken) {
        if (first == groups_.size()) return 0;
        const Group& group = groups_[first];
        const size_t enough = taken.size() + groups_.size() - first;
        for (const std::string& key : languages_.examples(group.keys, enough)) {
            if (std::ranges::find(taken, key) != taken.end()) continue;
            taken.push_back(key);
            if (const auto rest = cost_of_groups(first + 1, taken))
                return *rest + extra_cost(key, group.value);
            taken.pop_back();
            if (++steps_ > kMostSteps) break;
        }
        return std::nullopt;
    }

    int64_t extra_cost(const std::string& key, GoalId value) {
        return add_cost(costs_.extra_key(key), add_cost(costs_.goal(value), costs_.comma));
    }

    // The cheapest `missing` members besides.
    int64_t cost_of_further(int64_t missing, const std::vector<std::string>& taken) {
        if (missing > kMostMembers && costs_.limited) {
            throw Refused("an object that needs more than 500 members besides the required ones");
        }
        steps_ += static_cast<int>(missing);
        std::vector<std::string_view> used(taken.begin(), taken.end());
        std::ranges::sort(used);
        std::vector<int64_t> prices;
        for (size_t i = 0; i < chosen_.size(); ++i) {
            if (chosen_[i] == kNever && can_come(i))
                prices.push_back(name_cost(i, shape_.values[i]));
        }
        for (const auto& extra : shape_.extras) {
            const auto wanted = static_cast<size_t>(missing) + taken.size();
            for (const std::string& key : languages_.examples(extra.keys, wanted)) {
                if (std::ranges::binary_search(used, key)) continue;
                prices.push_back(extra_cost(key, extra.value));
            }
        }
        if (static_cast<int64_t>(prices.size()) < missing) return kUnreachable;
        std::ranges::nth_element(prices, prices.begin() + (missing - 1));
        int64_t sum = 0;
        for (int64_t i = 0; i < missing; ++i)
            sum = std::min<int64_t>(sum + prices[i], kUnreachable);
        return sum;
    }

    const ObjectShape& shape_;
    const ObjectProgress& at_;
    Languages& languages_;
    const bool declared_;
    Costs& costs_;

    std::vector<GoalId> chosen_;  // per name: its value if it is to come, else kNever
    std::vector<Group> groups_;
    int64_t count_ = 0;  // members to come
    int32_t best_ = kUnreachable;
    int steps_ = 0;
};

}  // namespace

ObjectProgress begin(const ObjectShape& shape) {
    if (shape.some.size() > kMostSome) {
        throw Refused("an object with so many demands on its members needs too long a search");
    }
    ObjectProgress at;
    at.used.assign(shape.names.size(), false);
    at.open = (1u << shape.some.size()) - 1;
    return at;
}

int32_t cost_to_close(const ObjectShape& shape, const ObjectProgress& at, Languages& languages,
                      bool declared_order, Costs& costs) {
    return Closing(shape, at, languages, declared_order, costs).run();
}

}  // namespace sglite::json
