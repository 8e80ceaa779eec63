// Objects while they are read.
#include <algorithm>

#include "containers.h"

namespace sglite::json {
namespace {

using text::LangId;

constexpr size_t kMostKinds = 64;  // of keys that are priced

void put(std::string& key, int64_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

bool same(const ObjectItem& a, const ObjectItem& b) {
    return a.lane == b.lane && a.shape == b.shape && a.at == b.at && a.rivals == b.rivals;
}

void insert_sorted(std::vector<std::string>& list, const std::string& text) {
    list.insert(std::ranges::lower_bound(list, text), text);
}

}  // namespace

// One item per shape that a goal allows.
std::vector<ObjectItem> Objects::beginnings(const Goal& goal, int32_t lane) {
    std::vector<ObjectItem> found;
    for (const ObjectShape& shape : goal.shaped().objects) {
        ObjectItem item{lane, &shape, json::begin(shape), 0};
        for (const int32_t value : goal.barred) {
            if (distinct_[value].kind() == Value::Kind::kObject) item.rivals.push_back(value);
        }
        item.close = cost(item, {});
        if (item.close < kUnreachable) found.push_back(std::move(item));
    }
    return found;
}

int32_t Objects::begin(const std::vector<GoalId>& lanes) {
    std::vector<ObjectItem> items;
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
        const auto more = beginnings(goals_.goal(lanes[lane]), static_cast<int32_t>(lane));
        items.insert(items.end(), more.begin(), more.end());
    }
    return items.empty() ? -1 : intern(std::move(items));
}

int32_t Objects::least(const Goal& goal) {
    int32_t least = kUnreachable;
    for (const ObjectItem& item : beginnings(goal, 0)) {
        least = std::min(least, costs_.from_begin(item.close));
    }
    return add_cost(1, least);
}

std::string Objects::key_of(const std::vector<ObjectItem>& items) {
    std::string key;
    for (const ObjectItem& item : items) {
        put(key, static_cast<int64_t>(item.lane) << 32 | item.shape->id);
        put(key, item.at.members);
        put(key, static_cast<int64_t>(item.at.open) << 32 | item.at.place << 1 | item.at.behind);
        for (size_t i = 0; i < item.at.used.size(); i += 64) {
            uint64_t bits = 0;
            const size_t end = std::min(item.at.used.size(), i + 64);
            for (size_t j = i; j < end; ++j)
                bits |= static_cast<uint64_t>(item.at.used[j]) << (j - i);
            put(key, static_cast<int64_t>(bits));
        }
        put(key, static_cast<int64_t>(item.at.extras.size()));
        for (const std::string& extra : item.at.extras) {
            put(key, static_cast<int64_t>(extra.size()));
            key += extra;
        }
        put(key, static_cast<int64_t>(item.rivals.size()) << 32 | item.agreeing);
        for (const int32_t rival : item.rivals) put(key, rival);
    }
    return key;
}

int32_t Objects::intern(std::vector<ObjectItem> items) {
    if (items.size() > 1) {
        std::ranges::stable_sort(items, [](const ObjectItem& a, const ObjectItem& b) {
            return std::pair(a.lane, a.shape->id) < std::pair(b.lane, b.shape->id);
        });
        std::vector<ObjectItem> distinct;
        for (ObjectItem& item : items) {
            bool known = false;
            for (size_t i = distinct.size(); i-- > 0 && !known;) {
                if (distinct[i].lane != item.lane || distinct[i].shape != item.shape) break;
                known = same(item, distinct[i]);
            }
            if (!known) distinct.push_back(std::move(item));
        }
        items = std::move(distinct);
    }
    std::string key = key_of(items);
    const auto [place, fresh] =
        ids_.try_emplace(std::move(key), static_cast<int32_t>(states_.size()));
    if (!fresh) return place->second;
    ObjectState state;
    for (const ObjectItem& item : items) {
        const bool closes = can_close(item) && !is_rival(item);
        if (closes && (state.closing.empty() || state.closing.back() != item.lane)) {
            state.closing.push_back(item.lane);
        }
        const auto add_extra = [&](const std::string& extra) {
            if (!std::ranges::binary_search(state.extras, extra))
                insert_sorted(state.extras, extra);
        };
        for (const std::string& extra : item.at.extras) add_extra(extra);
        for (const std::string& extra : extras_of_rivals(item)) add_extra(extra);
        state.watched = state.watched || !item.rivals.empty();
        memory_ += sizeof item + item.at.used.size() / 8;
    }
    memory_ += sizeof state + 2 * place->first.size() + 128;
    state.items = std::move(items);
    states_.push_back(std::move(state));
    return place->second;
}

bool Objects::can_close(const ObjectItem& item) const {
    const ObjectShape& shape = *item.shape;
    if (item.at.open != 0 || item.at.members < shape.low) return false;
    for (size_t i = 0; i < shape.names.size(); ++i) {
        if (shape.required[i] && !item.at.used[i]) return false;
    }
    return true;
}

// Keys

const ObjectState& Objects::with_keys(int32_t id) {
    if (states_[id].plan >= 0) return states_[id];
    std::vector<std::pair<std::string, bool>> names;
    std::vector<LangId> extras;
    bool uniform = true, scarce = false;
    GoalId asked = kNever;
    LangId before = text::kNoText;
    for (const ObjectItem& item : states_[id].items) {
        for (size_t i = 0; i < item.shape->names.size(); ++i) {
            if (takes_name(item, i)) names.emplace_back(item.shape->names[i], true);
        }
        for (const auto& extra : item.shape->extras) {
            uniform = uniform && (asked == kNever || asked == extra.value);
            asked = extra.value;
        }
        // Which further keys are the lightest depends on this one.
        const bool fills = item.at.members + Room(item).missing + 1 >= item.shape->low;
        scarce = scarce || !fills;
        uniform = uniform && item.shape->some.empty() && fills;
        // Which items are left may depend on it too.
        const LangId keys = extra_keys(item);
        uniform = uniform && (&item == states_[id].items.data() || keys == before);
        before = keys;
        if (keys != text::kNoText) extras.push_back(keys);
    }
    KeyPlan plan;
    plan.extra = extras.size() == 1 ? extras[0] : languages_.either(std::move(extras));
    // Extra keys that are used cannot come; those of rivals ask something else of their values.
    const std::vector<std::string>& apart = states_[id].extras;
    if (plan.extra != text::kNoText && !apart.empty()) {
        // Among endlessly many keys they need no language of their own.
        const text::TextState start = languages_.start(plan.extra);
        const bool endless = start != text::kDeadText && languages_.reach(start).free == INT32_MAX;
        for (const std::string& extra : apart) {
            const bool allowed = states_[id].watched && !member(id, extra).empty();
            if (allowed || endless) names.emplace_back(extra, allowed);
        }
        if (!endless) {
            const LangId others = languages_.complement(languages_.words(apart));
            plan.extra = languages_.both({plan.extra, others});
        }
    }
    std::ranges::sort(
        names, {}, [](const auto& n) { return std::pair(std::string_view(n.first), !n.second); });
    plan.allowed.push_back(0);
    for (auto& [name, allowed] : names) {
        if (!plan.names.empty() && plan.names.back() == name) continue;
        plan.names.push_back(std::move(name));
        plan.allowed.push_back(plan.allowed.back() + allowed);
    }
    memory_ += 64 * plan.names.size();
    states_[id].uniform = uniform;
    states_[id].scarce = scarce;
    states_[id].plan = lexer_.add_plan(std::move(plan));
    states_[id].key = lexer_.begin_key(states_[id].plan);
    return states_[id];
}

bool Objects::takes_name(const ObjectItem& item, size_t name) {
    const ObjectShape& shape = *item.shape;
    const Room room(item);
    if (!fits(item, room, name)) return false;
    if (room.plain && item.rivals.empty()) return true;
    std::vector<Next<ObjectItem>> found;
    take(item, shape.names[name], shape.values[name], after_name(item, name), {}, found);
    return !found.empty();
}

// Whether there is room for a name, and it is its turn.
bool Objects::fits(const ObjectItem& item, const Room& room, size_t name) const {
    const ObjectShape& shape = *item.shape;
    if (item.at.used[name]) return false;
    const auto place = static_cast<int32_t>(name);
    if (declared_ && (item.at.behind || place < item.at.place || place > room.first)) return false;
    const int32_t members = room.missing + !shape.required[name];
    return shape.high < 0 || item.at.members + members <= shape.high;
}

// The extra keys that an item takes here; those used already and those of rivals not left out.
LangId Objects::extra_keys(const ObjectItem& item) {
    const ObjectShape& shape = *item.shape;
    if (shape.extras.empty()) return text::kNoText;
    const Room room(item);
    if (declared_ && room.missing > 0) return text::kNoText;
    if (shape.high >= 0 && item.at.members + room.missing + 1 > shape.high) return text::kNoText;
    std::vector<LangId> found;
    for (const auto& extra : shape.extras) {
        if (room.plain) {
            found.push_back(extra.keys);
            continue;
        }
        // Which demands a key can meet depends on the key: one class for every set of them.
        std::vector<LangId> classes{extra.keys};
        for (size_t i = 0; i < shape.some.size(); ++i) {
            if (!(item.at.open >> i & 1)) continue;
            std::vector<LangId> finer;
            for (const LangId keys : classes) {
                for (const LangId part :
                     {shape.some[i].keys, languages_.complement(shape.some[i].keys)}) {
                    const LangId both = languages_.both({keys, part});
                    if (both != text::kNoText && !languages_.empty(both)) finer.push_back(both);
                }
            }
            classes = std::move(finer);
        }
        ObjectItem alone = item;
        alone.rivals.clear();
        for (const LangId keys : classes) {
            for (const std::string& key : languages_.examples(keys, item.at.extras.size() + 1)) {
                if (std::ranges::binary_search(item.at.extras, key)) continue;
                std::vector<Next<ObjectItem>> next;
                take(alone, key, extra.value, after_extra(item, key), {}, next);
                if (!next.empty()) found.push_back(keys);
                break;
            }
        }
    }
    return found.size() == 1 ? found[0] : languages_.either(std::move(found));
}

const std::vector<KeyKind>& Objects::kinds_of_keys(int32_t id) {
    std::vector<KeyKind>& kinds = states_[id].kinds;
    if (!kinds.empty()) return kinds;
    for (const ObjectItem& item : states_[id].items) {
        for (const auto& extra : item.shape->extras) {
            for (uint32_t met = item.at.open;; met = (met - 1) & item.at.open) {
                if (met == 0 || met == item.at.open || kinds.size() < kMostKinds) {
                    add_kind(item, extra, met, kinds);
                }
                if (met == 0) break;
            }
        }
    }
    return kinds;
}

// The keys of one class that meet these demands.
void Objects::add_kind(const ObjectItem& item, const ObjectShape::Extra& extra, uint32_t met,
                       std::vector<KeyKind>& kinds) {
    std::vector<LangId> all{extra.keys};
    GoalId goal = extra.value;
    for (uint32_t rest = met; rest != 0 && goal != kNever; rest &= rest - 1) {
        const auto& some = item.shape->some[std::countr_zero(rest)];
        all.push_back(some.keys);
        goal = goals_.both(goal, some.value);
    }
    if (goal == kNever) return;
    const LangId keys = all.size() == 1 ? all[0] : languages_.both(std::move(all));
    if (keys == text::kNoText) return;
    if (const Room room(item); room.plain) {
        if (declared_ && room.missing > 0) return;
        const ObjectShape& shape = *item.shape;
        if (shape.high >= 0 && item.at.members + room.missing + 1 > shape.high) return;
        const text::TextState start = languages_.start(keys);
        if (start != text::kDeadText && languages_.reach(start).free == INT32_MAX) {
            kinds.push_back({keys, item.lane, add_cost(costs_.goal(goal), item.close)});
            return;
        }
    }
    for (const std::string& key : languages_.examples(keys, item.at.extras.size() + 1)) {
        if (std::ranges::binary_search(item.at.extras, key)) continue;
        ObjectProgress after = after_extra(item, key);
        if (item.shape->high >= 0 && after.members > item.shape->high) return;
        after.open &= ~met;
        const int32_t close = cost_to_close(*item.shape, after, languages_, declared_, costs_);
        if (close < kUnreachable) {
            kinds.push_back({keys, item.lane, add_cost(costs_.goal(goal), close)});
        }
        return;
    }
}

std::vector<NamePrice> Objects::prices_of_names(int32_t id) {
    std::vector<NamePrice> prices;
    const std::vector<std::string>& names = lexer_.plan(with_keys(id).plan).names;
    for (const ObjectItem& item : states_[id].items) {
        const ObjectShape& shape = *item.shape;
        const bool plain = Room(item).plain && item.rivals.empty();
        for (size_t i = 0; i < shape.names.size(); ++i) {
            if (!takes_name(item, i)) continue;
            const std::string& name = shape.names[i];
            const GoalId value = shape.values[i];
            int32_t behind = kUnreachable;
            if (plain) {
                // The bound of a required member is part of that of the object.
                behind = shape.required[i] ? item.close - costs_.key(name) - costs_.comma
                                           : add_cost(costs_.goal(value), item.close);
            } else {
                std::vector<Next<ObjectItem>> found;
                take(item, name, value, after_name(item, i), {}, found);
                for (const auto& [goal, next] : found) {
                    behind = std::min(behind, add_cost(costs_.goal(goal), next.close));
                }
            }
            const auto place = std::ranges::lower_bound(names, name) - names.begin();
            prices.push_back({static_cast<size_t>(place), item.lane, behind});
        }
    }
    return prices;
}

// Members

std::vector<Next<ObjectItem>> Objects::member(int32_t id, const std::string& key) {
    std::vector<Next<ObjectItem>> found;
    for (const ObjectItem& item : states_[id].items) {
        const ObjectShape& shape = *item.shape;
        const auto name = std::ranges::find(shape.names, key) - shape.names.begin();
        if (static_cast<size_t>(name) < shape.names.size()) {
            if (takes_name(item, name)) {
                take(item, key, shape.values[name], after_name(item, name), {}, found);
            }
            continue;
        }
        if (std::ranges::binary_search(item.at.extras, key)) continue;
        const Room room(item);
        if (declared_ && room.missing > 0) continue;
        for (const auto& extra : shape.extras) {
            if (!languages_.contains(extra.keys, key)) continue;
            take(item, key, extra.value, after_extra(item, key), {}, found);
        }
    }
    return found;
}

// Every way in which a member with a value of `value` may count, as far as the object can still be
// finished afterwards: it may or may not meet each demand that fits its key.
void Objects::take(const ObjectItem& item, const std::string& key, GoalId value,
                   ObjectProgress after, const Turn& turn, std::vector<Next<ObjectItem>>& found) {
    const ObjectShape& shape = *item.shape;
    if (shape.high >= 0 && item.at.members + 1 > shape.high) return;
    uint32_t fitting = 0;
    for (size_t i = 0; i < shape.some.size(); ++i) {
        if ((after.open >> i & 1) && languages_.contains(shape.some[i].keys, key))
            fitting |= 1u << i;
    }
    for (uint32_t met = fitting;; met = (met - 1) & fitting) {
        GoalId goal = value;
        for (uint32_t rest = met; rest != 0 && goal != kNever; rest &= rest - 1) {
            goal = goals_.both(goal, shape.some[std::countr_zero(rest)].value);
        }
        if (goal != kNever) {
            ObjectProgress then = after;
            then.open &= ~met;
            const int32_t close = cost_to_close(shape, then, languages_, declared_, costs_);
            if (close < kUnreachable) {
                add_next(item, key, goal, std::move(then), close, turn, found);
            }
        }
        if (met == 0) break;
    }
}

void Objects::count(const ObjectShape& shape, ObjectProgress& at) const {
    if (shape.high >= 0) {
        ++at.members;
    } else {
        at.members = std::min(at.members + 1, shape.low);
    }
}

ObjectProgress Objects::after_name(const ObjectItem& item, size_t name) const {
    ObjectProgress after = item.at;
    after.used[name] = true;
    if (declared_) {
        // Names that were passed by can never come; nothing else tells such objects apart.
        for (size_t i = after.place; i < name; ++i) after.used[i] = true;
        after.place = static_cast<int32_t>(name) + 1;
    }
    count(*item.shape, after);
    return after;
}

ObjectProgress Objects::after_extra(const ObjectItem& item, const std::string& key) const {
    ObjectProgress after = item.at;
    insert_sorted(after.extras, key);
    after.behind = declared_;
    count(*item.shape, after);
    return after;
}

}  // namespace sglite::json
