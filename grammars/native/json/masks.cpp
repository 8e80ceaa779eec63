// The token masks of the JSON machine. Inside of strings of free content most of a mask is known
// beforehand; only tokens that close the string are looked at.
#include <algorithm>

#include "../walk.h"
#include "machine.h"

namespace sglite::json {
namespace {

void set_bit(std::vector<uint32_t>& bits, int32_t id) { bits[id >> 5] |= 1u << (id & 31); }

}  // namespace

Position JsonMachine::alike(const Position& at) {
    Position to = at;
    const int32_t place = at.at[kPlace] & 0xFF;
    if (place != kString && place != kNumber && place != kKey) return to;
    to.at[kState] = lexer_.clipped(at.at[kState]);
    if (place == kKey && objects_[at.at[kObject]].uniform &&
        vocabulary_->string_slice(style_.any_spelling).keys_apart) {
        to.at[kText] = 0;
    }
    return to;
}

void JsonMachine::find_mask(const Position& at, Mask& mask) {
    mask.highest = kUnreachable;
    if (fill_string(at, mask)) return;
    const Trie& trie = vocabulary_->trie();
    walk(
        trie, 0, at, [this](Position& p, uint8_t byte) { return step(p, byte); },
        [&](uint32_t node, const Position&) {
            set_bits(trie, node, mask.bits.data());
            return true;
        });
}

// False where nothing is known beforehand.
bool JsonMachine::fill_string(const Position& at, Mask& mask) {
    const int32_t place = at.at[kPlace] & 0xFF;
    if ((place != kString && place != kKey) || !lexer_.at_border(at.at[kState])) return false;
    const StringSlice& slice = vocabulary_->string_slice(style_.any_spelling);
    const text::Reach reach = lexer_.reach(lexer_.base(at.at[kState]));
    if (reach.free < slice.most && !reach.hard) return false;
    const auto inside = reach.free < slice.most ? slice.at_most(reach.free) : std::span(slice.inside);
    std::ranges::copy(inside, mask.bits.begin());
    add_closings(at, slice, mask);
    return true;
}

// Contents that lead to the same place are decided together, tail by tail.
void JsonMachine::add_closings(const Position& at, const StringSlice& slice, Mask& mask) {
    struct Group {
        const std::vector<int32_t>* lanes;
        std::vector<bool> tails;
    };
    std::vector<Group> groups;
    const bool is_key = (at.at[kPlace] & 0xFF) == kKey;
    const bool alone = is_key ? !objects_[at.at[kObject]].uniform || !slice.keys_apart
                              : !is_text_free(at.at[kFrame]);
    const bool recording = frames_[at.at[kFrame]].recording;
    const auto add = [&](int32_t number, BaseId base, std::string_view content) {
        const std::vector<int32_t>& lanes = lexer_.accepted(base);
        if (lanes.empty()) return;
        std::vector<bool> own;
        const std::vector<bool>* shared = nullptr;
        if (!alone && !(is_key && lexer_.key(base).low < lexer_.key(base).high)) {
            auto group = std::ranges::find_if(groups, [&](const Group& g) { return *g.lanes == lanes; });
            if (group == groups.end()) {
                groups.push_back({&lanes, tails_behind(at, base, content, slice)});
                group = groups.end() - 1;
            }
            shared = &group->tails;
        }
        for (const StringSlice::Closing& closing : slice.closings(number)) {
            const bool use_own = shared == nullptr || (recording && !slice.simple[closing.tail]);
            if (use_own && own.empty()) own = tails_behind(at, base, content, slice);
            if ((use_own ? own : *shared)[closing.tail]) set_bit(mask.bits, closing.id);
        }
    };
    const BaseId from = lexer_.base(at.at[kState]);
    for (const int32_t number : slice.contents.at(0)) add(number, from, "");
    struct Step {
        BaseId base;
        size_t depth;
    };
    std::string content(slice.contents.longest(), '\0');
    walk(
        slice.contents, 0, Step{from, 0},
        [&](Step& step, uint8_t byte) {
            content[step.depth++] = static_cast<char>(byte);
            step.base = lexer_.next_content(step.base, byte);
            return step.base != kDeadLex;
        },
        [&](uint32_t node, const Step& step) {
            const std::string_view text = std::string_view(content).substr(0, step.depth);
            for (const int32_t number : slice.contents.at(node)) add(number, step.base, text);
            return true;
        });
}

// Which tails can follow a string or key that goes on by `content`, up to `base`, and is closed.
std::vector<bool> JsonMachine::tails_behind(const Position& at, BaseId base, std::string_view content,
                                            const StringSlice& slice) {
    std::vector<bool> found(slice.first_id.size() - 1, false);
    Position closed = at;
    if (frames_[at.at[kFrame]].recording) {
        closed.at[kRaw] = raw_.add(raw_.add(at.at[kRaw], written(content)), '"');
    }
    const bool possible = (at.at[kPlace] & 0xFF) == kKey
                              ? close_key(closed, keys_.add(key_text(at), content))
                              : finish(closed, at.at[kFrame], lexer_.accepted(base), closed.at[kRaw]);
    if (!possible) return found;
    for (const int32_t tail : slice.tails.at(0)) found[tail] = true;
    walk(
        slice.tails, 0, closed, [this](Position& p, uint8_t byte) { return step(p, byte); },
        [&](uint32_t node, const Position&) {
            for (const int32_t tail : slice.tails.at(node)) found[tail] = true;
            return true;
        });
    return found;
}

// Whether what follows a string does not depend on its text, but for items that must differ, and
// of those there are plenty.
bool JsonMachine::is_text_free(int32_t id) {
    for (; frames_[id].recording; id = frames_[id].parent) {
        const Frame& of = known(id);
        if (of.kind != Frame::kItem || !arrays_[of.state].unique) continue;
        for (const GoalId goal : of.goals) {
            if (goals_.goal(goal).supply < kPlenty) return false;
        }
    }
    return true;
}

}  // namespace sglite::json
