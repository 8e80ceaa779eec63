// Before texts are read, everything that could fail later is done once, or refused with its place.
#include <algorithm>

#include "goals_inside.h"

namespace sglite::json {
namespace {

constexpr size_t kMostWays = 4096;  // in which the items or members of one shape may count
constexpr int64_t kLongest = 1000;  // parts that an item which must differ may need

[[noreturn]] void refuse_long() {
    throw Refused("'uniqueItems' over items with more than " + std::to_string(kLongest) +
                  " parts that must be there");
}

}  // namespace

void Goals::Inside::prepare() {
    if (has_unique_) check_items();
    for (prepared_ = 0; prepared_ < found.size(); ++prepared_) {
        if (alive(static_cast<GoalId>(prepared_)) == kNever) continue;
        placed(prepared_, [&](GoalId id) {
            for (size_t i = 0; i < found[id].objects.size(); ++i) {
                patterned(id, Type::kObject, [&] { settle_keys(found[id].objects[i]); });
                prepare(found[id].objects[i]);
            }
            for (size_t i = 0; i < found[id].arrays.size(); ++i) prepare(found[id].arrays[i]);
            settle();  // what is asked for together is new
            patterned(id, Type::kString, [&] { languages.settle(found[id].strings); });
            languages.settle(found[id].numbers);
        });
    }
}

// Items that must differ are told from each other part by part, one within the other.
void Goals::Inside::check_items() {
    std::vector<GoalId> open;
    for (const Goal& goal : found) {
        for (const ArrayShape& shape : goal.arrays) {
            if (!shape.unique) continue;
            open.insert(open.end(), shape.first.begin(), shape.first.end());
            open.push_back(shape.rest);
        }
    }
    std::set<GoalId> seen;
    while (!open.empty()) {
        const GoalId id = open.back();
        open.pop_back();
        if (alive(id) == kNever || !seen.insert(id).second) continue;
        placed(static_cast<size_t>(id), [&](GoalId) {
            for (const ObjectShape& shape : found[id].objects) {
                const auto required = std::ranges::count(shape.required, true);
                if (std::max<int64_t>(shape.low, required) > kLongest) refuse_long();
                open.insert(open.end(), shape.values.begin(), shape.values.end());
                for (const auto& extra : shape.extras) open.push_back(extra.value);
            }
            for (const ArrayShape& shape : found[id].arrays) {
                if (shape.low > kLongest) refuse_long();
                open.insert(open.end(), shape.first.begin(), shape.first.end());
                open.push_back(shape.rest);
            }
        });
    }
}

void Goals::Inside::settle_keys(const ObjectShape& shape) {
    std::vector<text::LangId> keys;
    for (const auto& extra : shape.extras) keys.push_back(extra.keys);
    for (const text::LangId extra : keys) languages.settle(extra);
    if (shape.some.empty()) return;
    for (const auto& some : shape.some) keys.push_back(some.keys);
    languages.settle(keys);
}

// A member may meet any of the demands that fit its key.
void Goals::Inside::prepare(const ObjectShape& shape) {
    if (shape.some.empty()) return;
    size_t ways = 0;
    const auto meet = [&](GoalId value, const auto& fits) {
        std::vector<GoalId> all{value};
        for (const auto& some : shape.some) {
            if (!fits(some.keys)) continue;
            for (size_t i = all.size(); i-- > 0;) {
                if (const GoalId both = this->both(all[i], some.value); both != kNever) {
                    all.push_back(both);
                }
            }
            if ((ways += all.size()) > kMostWays) {
                throw Refused(
                    "so many demands on the members of one object need too long a search");
            }
        }
    };
    for (size_t i = 0; i < shape.names.size(); ++i) {
        meet(shape.values[i],
             [&](text::LangId keys) { return languages.contains(keys, shape.names[i]); });
    }
    for (const auto& extra : shape.extras) {
        meet(extra.value, [&](text::LangId keys) {
            return !languages.empty(languages.both({keys, extra.keys}));
        });
    }
}

// An item may count for any part of `contains`, or not.
void Goals::Inside::prepare(const ArrayShape& shape) {
    if (shape.contains.empty()) return;
    size_t ways = 0;
    int64_t border = static_cast<int64_t>(shape.first.size());
    for (const auto& part : shape.contains) border = std::max(border, part.begin);
    for (int64_t index = 0; index <= border; ++index) {
        const bool leading = index < static_cast<int64_t>(shape.first.size());
        std::vector<GoalId> all{leading ? shape.first[index] : shape.rest};
        for (const auto& part : shape.contains) {
            if (index < part.begin) continue;
            std::vector<GoalId> more;
            for (const GoalId goal : all) {
                for (const GoalId side : {part.fails, part.holds}) {
                    if (const GoalId both = this->both(goal, side); both != kNever) {
                        more.push_back(both);
                    }
                }
            }
            all = std::move(more);
            if ((ways += all.size()) > 16 * kMostWays) {
                throw Refused("so many 'contains' in one array need too long a search");
            }
        }
    }
}

}  // namespace sglite::json
