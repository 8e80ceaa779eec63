// Alternatives of atoms merged into the shapes of objects and arrays.
#include "shapes.h"

#include <algorithm>

namespace sglite::json {
namespace {

using text::kNoText;
using text::LangId;

constexpr size_t kMostClasses = 256;

}  // namespace

std::optional<ObjectShape> Shapes::object(const Atoms& atoms) {
    ObjectShape shape;
    if (!count_members(atoms, shape) || !fill_names(atoms, shape)) return std::nullopt;
    fill_extras(shape);
    if (!fill_some(atoms, shape)) return std::nullopt;
    if (shape.high >= 0 && shape.low > shape.high) return std::nullopt;
    return shape;
}

bool Shapes::count_members(const Atoms& atoms, ObjectShape& shape) {
    for (const Lit atom : atoms) {
        const Node& node = formulas_.node(atom);
        if (node.op != Op::kMemberCount) continue;
        if (!is_negated(atom)) {
            shape.low = std::max<int64_t>(shape.low, node.a);
        } else if (shape.high < 0 || node.a - 1 < shape.high) {
            shape.high = node.a - 1;
        }
    }
    return shape.high < 0 || shape.low <= shape.high;
}

// Whether the name is new.
bool Shapes::add_name(int32_t name) {
    if (slot_.size() <= static_cast<size_t>(name)) slot_.resize(name + 64, -1);
    if (slot_[name] >= 0) return false;
    slot_[name] = static_cast<int32_t>(names_.size());
    names_.push_back(name);
    values_.emplace_back();
    required_.push_back(false);
    return true;
}

bool Shapes::fill_names(const Atoms& atoms, ObjectShape& shape) {
    for (const int32_t name : names_) slot_[name] = -1;
    names_.clear();
    rules_.clear();
    values_.clear();
    required_.clear();
    // Declared names come first, then those that are only required.
    for (const Lit atom : atoms) {
        const Node& node = formulas_.node(atom);
        if (node.op != Op::kMembers || is_negated(atom)) continue;
        const KeySet& keys = formulas_.key_set(node.a);
        if (keys.name < 0) {
            if (node.b != kTrue) rules_.push_back({&keys, node.b});
            continue;
        }
        add_name(keys.name);
        if (node.b != kTrue) values_[slot_[keys.name]].push_back(node.b);
    }
    for (const Lit atom : atoms) {
        const Node& node = formulas_.node(atom);
        if (node.op != Op::kMembers) continue;
        const KeySet& keys = formulas_.key_set(node.a);
        if (is_negated(atom) && keys.name >= 0) {
            add_name(keys.name);
            required_[slot_[keys.name]] = true;
        }
        // Which keys a rule speaks of must not depend on single names any more.
        for (const int32_t name : keys.names) add_name(name);
    }
    for (size_t i = 0; i < names_.size(); ++i) {
        for (const Rule& rule : rules_) {
            if (truths_.holds(*rule.keys, names_[i], texts_)) values_[i].push_back(rule.value);
        }
        const GoalId value = source_.goal_of(std::move(values_[i]));
        if (value == kNever) {
            if (required_[i]) return false;
            continue;
        }
        shape.names.emplace_back(formulas_.name_text(names_[i]));
        shape.values.push_back(value);
        shape.required.push_back(required_[i]);
    }
    return true;
}

LangId Shapes::besides(const std::vector<int32_t>& names) {
    if (names.empty()) return text::kAnyText;
    std::vector<std::string> words;
    for (const int32_t name : names) words.emplace_back(formulas_.name_text(name));
    return languages_.complement(languages_.words(std::move(words)));
}

LangId Shapes::language(const KeySet& keys) {
    std::vector<LangId> parts{besides(keys.names)};
    for (const int32_t set : keys.with) parts.push_back(texts_.language(set));
    for (const int32_t set : keys.without) {
        parts.push_back(languages_.complement(texts_.language(set)));
    }
    return languages_.both(std::move(parts));
}

// Classes of keys that are no names: one for each way to be in some of the text sets.
void Shapes::fill_extras(ObjectShape& shape) {
    std::vector<int32_t> sets;
    for (const Rule& rule : rules_) {
        for (const auto* part : {&rule.keys->with, &rule.keys->without}) {
            for (const int32_t set : *part) {
                if (std::ranges::find(sets, set) == sets.end()) sets.push_back(set);
            }
        }
    }
    struct Class {
        LangId keys;
        std::vector<int32_t> in{};  // of the sets
    };
    std::vector<Class> classes{{besides(names_)}};
    for (const int32_t set : sets) {
        const LangId language = texts_.language(set);
        const LangId others = languages_.complement(language);
        std::vector<Class> finer;
        for (Class& keys : classes) {
            const LangId inside = languages_.both({keys.keys, language});
            const LangId outside = languages_.both({keys.keys, others});
            if (!languages_.empty(outside)) finer.push_back({outside, keys.in});
            if (languages_.empty(inside)) continue;
            finer.push_back({inside, std::move(keys.in)});
            finer.back().in.push_back(set);
        }
        classes = std::move(finer);
        if (classes.size() > kMostClasses) {
            throw Refused("the patterns for the properties of one object overlap in more than " +
                          std::to_string(kMostClasses) + " ways");
        }
    }
    for (const Class& keys : classes) {
        const auto is_in = [&](int32_t set) {
            return std::ranges::find(keys.in, set) != keys.in.end();
        };
        std::vector<Lit> value;
        for (const Rule& rule : rules_) {
            if (std::ranges::all_of(rule.keys->with, is_in) &&
                std::ranges::none_of(rule.keys->without, is_in)) {
                value.push_back(rule.value);
            }
        }
        if (std::ranges::find(value, kFalse) != value.end()) continue;
        if (languages_.empty(keys.keys)) continue;
        const GoalId goal = source_.goal_of(std::move(value));
        if (goal == kNever) continue;
        const auto same = std::ranges::find(shape.extras, goal, &ObjectShape::Extra::value);
        if (same == shape.extras.end()) {
            shape.extras.push_back({keys.keys, goal});
        } else {
            same->keys = languages_.either({same->keys, keys.keys});
        }
    }
}

bool Shapes::fill_some(const Atoms& atoms, ObjectShape& shape) {
    for (const Lit atom : atoms) {
        const Node node = formulas_.node(atom);
        if (node.op != Op::kMembers || !is_negated(atom)) continue;
        const KeySet& keys = formulas_.key_set(node.a);
        if (keys.name >= 0) continue;
        const bool every = keys.names.empty() && keys.with.empty() && keys.without.empty();
        if (every && node.b == kFalse) {
            shape.low = std::max<int64_t>(shape.low, 1);
            continue;
        }
        const LangId language = this->language(keys);
        const GoalId value = source_.goal_of({negated(node.b)});
        if (value == kNever || language == kNoText || languages_.empty(language)) return false;
        shape.some.push_back({language, value});
    }
    return true;
}

std::optional<ArrayShape> Shapes::array(const Atoms& atoms) {
    ArrayShape shape;
    struct Counted {
        int32_t begin;
        Lit lit;
        int64_t low, high;
    };
    std::vector<Counted> counted;
    int32_t leading = 0;
    for (const Lit atom : atoms) {
        const Node& node = formulas_.node(atom);
        const bool negative = is_negated(atom);
        switch (node.op) {
            case Op::kUnique:
                shape.unique = true;
                break;
            case Op::kItemCount:
                if (!negative) {
                    shape.low = std::max<int64_t>(shape.low, node.a);
                } else if (shape.high < 0 || node.a - 1 < shape.high) {
                    shape.high = node.a - 1;
                }
                break;
            case Op::kItems:
                if (!negative) {
                    leading = std::max(leading, std::max(node.a, node.b));
                    break;
                }
                [[fallthrough]];
            case Op::kContains: {
                const bool is_items = node.op == Op::kItems;
                const Lit lit = is_items ? negated(node.c) : node.c;
                const int64_t low = is_items ? 1 : negative ? 0 : node.b;
                const int64_t high = !is_items && negative ? node.b - 1 : -1;
                auto same = std::ranges::find_if(
                    counted, [&](const Counted& c) { return c.begin == node.a && c.lit == lit; });
                if (same == counted.end()) {
                    counted.push_back({node.a, lit, 0, -1});
                    same = counted.end() - 1;
                }
                same->low = std::max(same->low, low);
                if (high >= 0) same->high = same->high < 0 ? high : std::min(same->high, high);
                break;
            }
            default:
                break;
        }
    }
    for (int32_t index = 0; index <= leading; ++index) {
        std::vector<Lit> value;
        for (const Lit atom : atoms) {
            const Node& node = formulas_.node(atom);
            if (node.op != Op::kItems || is_negated(atom) || node.a > index) continue;
            if (node.b < 0 || index < node.b) value.push_back(node.c);
        }
        if (shape.high >= 0 && index >= shape.high) break;
        const GoalId goal = source_.goal_of(std::move(value));
        if (index == leading) {
            shape.rest = goal;
        } else {
            shape.first.push_back(goal);
        }
    }
    for (const Counted& part : counted) {
        const GoalId holds = source_.goal_of({part.lit});
        if (part.high >= 0 && part.low > part.high) return std::nullopt;
        if (holds == kNever) {
            if (part.low > 0) return std::nullopt;
            continue;
        }
        // Without a maximum, whether an item that holds is counted makes no difference.
        std::vector<Lit> others;
        if (part.high >= 0) others.push_back(negated(part.lit));
        const GoalId fails = source_.goal_of(std::move(others));
        shape.contains.push_back({part.begin, holds, fails, part.low, part.high});
    }
    // No array is longer than its first item that cannot be.
    const auto end = std::ranges::find(shape.first, kNever);
    if (end != shape.first.end()) {
        shape.first.erase(end, shape.first.end());
        shape.rest = kNever;
    }
    if (shape.rest == kNever) {
        const auto most = static_cast<int64_t>(shape.first.size());
        if (shape.high < 0 || shape.high > most) shape.high = most;
    }
    if (shape.high >= 0 && shape.low > shape.high) return std::nullopt;
    return shape;
}

}  // namespace sglite::json
