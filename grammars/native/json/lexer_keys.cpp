// Keys while they are read: the names that begin with the content, and the other keys that may.
#include <algorithm>

#include "lexer.h"

namespace sglite::json {
namespace {

using text::kDeadText;
using text::TextState;

constexpr int32_t kMostShared = 16;  // names of a plan of their own

}  // namespace

int32_t Lexer::add_plan(KeyPlan plan) {
    plans_.push_back(std::make_unique<KeyPlan>(std::move(plan)));
    return static_cast<int32_t>(plans_.size() - 1);
}

LexId Lexer::begin_key(int32_t plan) {
    const auto names = static_cast<int32_t>(plans_[plan]->names.size());
    const TextState extra = languages_.start(plans_[plan]->extra);
    if (extra == kDeadText && plans_[plan]->allowed.back() == 0) return kDeadLex;
    return add_state(add_base({0, names, 0, extra}, plan), kBorder);
}

Lexer::Key Lexer::key(BaseId base) const {
    const std::vector<int32_t>& parts = bases_[base].parts;
    return {parts[0], parts[1], parts[2], parts[3]};
}

BaseId Lexer::find_key_content(BaseId base, uint8_t byte) {
    const int32_t number = bases_[base].plan;
    const KeyPlan& plan = *plans_[number];
    auto [low, high, depth, extra] = key(base);
    const auto at = [&](const std::string& name) {
        return static_cast<int>(name.size()) <= depth ? -1 : static_cast<uint8_t>(name[depth]);
    };
    const auto names = plan.names.begin();
    const auto first = std::lower_bound(names + low, names + high, byte,
                                        [&](const std::string& n, int b) { return at(n) < b; });
    const auto last = std::upper_bound(first, names + high, byte,
                                       [&](int b, const std::string& n) { return b < at(n); });
    low = static_cast<int32_t>(first - names);
    high = static_cast<int32_t>(last - names);
    if (extra != kDeadText) extra = languages_.next(extra, byte);
    if (extra == kDeadText && plan.allowed[low] == plan.allowed[high]) return kDeadLex;
    // Behind all names, plans make no difference.
    if (low == high) return add_base({0, 0, 0, extra}, kNoNames);
    if (high - low > kMostShared) return add_base({low, high, depth + 1, extra}, number);
    return add_base({0, high - low, depth + 1, extra}, part_of(number, low, high));
}

// The plan of these names alone, which plans that agree on them share.
int32_t Lexer::part_of(int32_t number, int32_t low, int32_t high) {
    const KeyPlan& plan = *plans_[number];
    if (high - low == static_cast<int32_t>(plan.names.size())) return number;
    std::string key;
    for (int32_t i = low; i < high; ++i) {
        key += plan.is_allowed(i) ? '+' : '-';
        key += std::to_string(plan.names[i].size());
        key += ':';
        key += plan.names[i];
    }
    const auto [place, fresh] = plan_parts_.try_emplace(std::move(key));
    if (fresh) {
        KeyPlan part;
        part.names.assign(plan.names.begin() + low, plan.names.begin() + high);
        for (int32_t i = low; i <= high; ++i) {
            part.allowed.push_back(plan.allowed[i] - plan.allowed[low]);
        }
        place->second = add_plan(std::move(part));
    }
    return place->second;
}

}  // namespace sglite::json
