#include "states.h"

#include <algorithm>
#include <climits>

namespace sglite {
namespace {

constexpr StateId kUnknown = -2;  // of a transition
constexpr int32_t kBottom = -1;   // the parent of the lowest frame
constexpr int32_t kOpen = -2;     // a parent left open: the frame is looked at by itself

bool only_exit(const Node& node) {
    return node.is_exit && node.bytes.empty() && node.empty.empty() && node.calls.empty() &&
           node.takes.empty() && node.all_taken < 0;
}

}  // namespace

size_t States::KeyHash::operator()(const std::vector<int32_t>& key) const {
    uint64_t hash = 0x9E3779B97F4A7C15u;
    for (const int32_t part : key) {
        hash = (hash ^ static_cast<uint32_t>(part)) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
    }
    return hash;
}

States::States(const Network& network, const Vocabulary& vocabulary)
    : network_(network), vocabulary_(vocabulary) {
    bool begins[257] = {true};
    for (const Node& node : network.nodes) {
        for (const ByteEdge& edge : node.bytes) {
            begins[edge.bytes.low] = begins[edge.bytes.high + 1] = true;
        }
    }
    for (int value = 0; value < 256; ++value) {
        classes_ += begins[value];
        class_of_[value] = static_cast<uint8_t>(classes_ - 1);
    }
    key_set({});
}

int32_t States::key_set(std::vector<uint64_t> keys) {
    const auto [it, fresh] = key_set_ids_.try_emplace(keys, key_sets_.size());
    if (fresh) {
        memory_ += 2 * keys.size() * sizeof(uint64_t) + 128;
        key_sets_.push_back(std::move(keys));
    }
    return it->second;
}

int32_t States::missing_cost(int32_t object, int32_t keys) const {
    const FreeObject& shape = network_.objects[object];
    const std::vector<uint64_t>& taken = key_sets_[keys];
    int32_t total = 0;
    for (size_t key = 0; key < shape.required.size(); ++key) {
        const bool used = key / 64 < taken.size() && taken[key / 64] >> (key % 64) & 1;
        if (shape.required[key] && !used) total = add_cost(total, network_.key_cost(shape, key));
    }
    return total;
}

int32_t States::stack(int32_t node, int32_t keys, int32_t parent) {
    const auto [it, fresh] = stack_ids_.try_emplace({node, keys, parent}, stacks_.size());
    if (fresh) {
        const Node& at = network_.nodes[node];
        int32_t cost = parent < 0 ? at.cost : add_cost(at.cost, stacks_[parent].cost);
        if (at.object >= 0 && network_.objects[at.object].first != node) {
            cost = add_cost(cost, missing_cost(at.object, keys));
        }
        stacks_.push_back({node, keys, parent, cost});
        stamps_.push_back(0);
        memory_ += 128;
    }
    return it->second;
}

void States::visit(int32_t stack) {
    if (stacks_[stack].cost >= kUnreachable || stamps_[stack] == stamp_) return;
    stamps_[stack] = stamp_;
    todo_.push_back(stack);
}

void States::visit(int32_t node, int32_t keys, int32_t parent) { visit(stack(node, keys, parent)); }

// Follows everything that reads no byte from the stacks in `todo_`.
StateId States::close() {
    std::vector<int32_t> kept;
    bool complete = false, leaves = false;
    while (!todo_.empty()) {
        const int32_t id = todo_.back();
        todo_.pop_back();
        const auto [at, keys, parent, cost] = stacks_[id];
        const Node& node = network_.nodes[at];
        if (!node.bytes.empty()) kept.push_back(id);
        for (const int32_t to : node.empty) visit(to, keys, parent);
        for (const TakeKey& take : node.takes) {
            std::vector<uint64_t> taken = key_sets_[keys];
            const auto word = static_cast<size_t>(take.key) / 64;
            if (taken.size() <= word) taken.resize(word + 1, 0);
            if (taken[word] >> (take.key % 64) & 1) continue;
            taken[word] |= uint64_t{1} << (take.key % 64);
            visit(take.to, key_set(std::move(taken)), parent);
        }
        if (node.all_taken >= 0 && missing_cost(node.object, keys) == 0) {
            visit(node.all_taken, keys, parent);
        }
        for (const Call& call : node.calls) {
            // A rule called last needs no frame of its own: right recursion stays flat.
            const bool last = only_exit(network_.nodes[call.then]);
            const int32_t below = last ? parent : stack(call.then, keys, parent);
            visit(network_.rules[call.rule].start, 0, below);
        }
        if (node.is_exit) {
            if (parent == kBottom) {
                complete = true;
            } else if (parent == kOpen) {
                leaves = true;
            } else {
                visit(parent);
            }
        }
    }
    std::sort(kept.begin(), kept.end());
    return intern(std::move(kept), complete, leaves);
}

StateId States::intern(std::vector<int32_t> stacks, bool complete, bool leaves) {
    if (stacks.empty() && !complete && !leaves) return kDead;
    std::vector<int32_t> key = stacks;
    key.push_back(complete + 2 * leaves);
    const auto [it, fresh] = state_ids_.try_emplace(std::move(key), states_.size());
    if (fresh) {
        int32_t cost = complete ? 0 : kUnreachable;
        for (const int32_t stack : stacks) cost = std::min(cost, stacks_[stack].cost);
        memory_ += classes_ * sizeof(StateId) + 8 * stacks.size() + 160;
        states_.push_back({std::move(stacks), cost, complete});
        states_.back().leaves = leaves;
        table_.resize(states_.size() * classes_, kUnknown);
    }
    return it->second;
}

StateId States::start() {
    ++stamp_;
    visit(network_.rules[network_.root].start, 0, kBottom);
    return close();
}

StateId States::step(StateId state, uint8_t byte) {
    ++stamp_;
    for (const int32_t id : states_[state].stacks) {
        const Stack at = stacks_[id];
        for (const ByteEdge& edge : network_.nodes[at.node].bytes) {
            if (edge.bytes.low <= byte && byte <= edge.bytes.high) {
                visit(edge.to, at.keys, at.parent);
            }
        }
    }
    return close();
}

StateId States::next(StateId state, uint8_t byte) {
    const size_t slot = static_cast<size_t>(state) * classes_ + class_of_[byte];
    if (table_[slot] != kUnknown) return table_[slot];
    const StateId to = step(state, byte);
    table_[slot] = to;
    return to;
}

// The same stack with every repetition put back to its first copy; lowers `like_for` to the bytes
// for which the two agree.
int32_t States::first_copy(int32_t top, int32_t& like_for) {
    std::vector<int32_t> path;
    for (int32_t at = top; at >= 0; at = stacks_[at].parent) path.push_back(at);
    int32_t below = stacks_[path.back()].parent;
    for (auto at = path.rbegin(); at != path.rend(); ++at) {
        const Stack s = stacks_[*at];
        const Node& node = network_.nodes[s.node];
        if (node.like >= 0) like_for = std::min(like_for, node.like_for);
        below = stack(node.like >= 0 ? node.like : s.node, s.keys, below);
    }
    return below;
}

StateId States::resolve_likeness(StateId state) {
    if (states_[state].like != kUnresolved) return states_[state].like;
    int32_t like_for = INT32_MAX;
    std::vector<int32_t> stacks;
    for (const int32_t s : states_[state].stacks) stacks.push_back(first_copy(s, like_for));
    std::sort(stacks.begin(), stacks.end());
    stacks.erase(std::unique(stacks.begin(), stacks.end()), stacks.end());
    StateId like = state;
    if (like_for > 0 && stacks != states_[state].stacks) {
        like = intern(std::move(stacks), states_[state].complete, states_[state].leaves);
    }
    states_[state].like = like;
    states_[state].like_for = like_for;
    return like;
}

// The state of the frame on top alone, if all stacks share what is below it; else kDead.
StateId States::open(StateId state) {
    const State& at = states_[state];
    if (at.complete || at.leaves || at.stacks.empty()) return kDead;
    const int32_t below = stacks_[at.stacks[0]].parent;
    if (below < 0) return kDead;
    std::vector<int32_t> stacks;
    for (const int32_t id : at.stacks) {
        const auto [node, keys, parent, cost] = stacks_[id];
        if (parent != below) return kDead;
        stacks.push_back(stack(node, keys, kOpen));
    }
    std::sort(stacks.begin(), stacks.end());
    return intern(std::move(stacks), false);
}

}  // namespace sglite
