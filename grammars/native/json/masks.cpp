// The token masks of the JSON machine. Inside of strings of free content most of a mask is known
// beforehand; only tokens that close the string are looked at.
#include <algorithm>
#include <bit>

#include "../walk.h"
#include "machine.h"

namespace sglite::json {
namespace {

constexpr size_t kMostApart = 64;  // names that are looked up one by one

constexpr int32_t kMostLooks = 4000;  // at single tokens; more are walked

void set_bit(std::vector<uint32_t>& bits, int32_t id) { bits[id >> 5] |= 1u << (id & 31); }
void clear_bit(std::vector<uint32_t>& bits, int32_t id) { bits[id >> 5] &= ~(1u << (id & 31)); }

}  // namespace

Position JsonMachine::alike(const Position& at) {
    Position to = at;
    const int32_t place = place_of(at);
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
    const int32_t place = place_of(at);
    if (const int32_t same = place == kKey ? same_mask(at) : -1; same >= 0) {
        return fill_key(at, same, mask);
    }
    if (fill_string(at, mask, kUnreachable)) return;
    if (place == kString || place == kKey) {
        if (!fill_steady(at, mask)) walk_text(at, mask, kUnreachable);
        return;
    }
    if (place == kLiteral) return walk_signs(at, vocabulary_->trie(), mask);
    const Structure& structure = vocabulary_->structure();
    if (style_.whitespace != Style::Whitespace::kFlexible) {
        return walk_signs(at, structure.all, mask);
    }
    walk_signs(at, structure.signs, mask);
    Position spaced = at;
    if (!step(spaced, ' ')) return;
    const auto room = static_cast<size_t>(1 + kMostSpaces - spaces_of(spaced));
    for (const auto& [length, id] : structure.spaces) {
        if (length > room) break;
        set_bit(mask.bits, id);
    }
}

void JsonMachine::walk_signs(const Position& at, const Trie& trie, Mask& mask) {
    walk(
        trie, 0, at, [this](Position& p, uint8_t byte) { return step(p, byte); },
        [&](uint32_t node, const Position&) {
            set_bits(trie, node, mask.bits.data());
            return true;
        });
}

// Within a string or key the lexer goes alone, until the string is closed.
void JsonMachine::walk_text(const Position& at, Mask& mask, int32_t budget) {
    struct Text {
        Position closed;
        LexId lex;  // kQuoted: closed
        int32_t bytes, content;
    };
    const bool is_key = place_of(at) == kKey;
    const bool recording = frames_[at.at[kFrame]].recording;
    const Trie& trie = vocabulary_->trie();
    std::string spelled(trie.longest() + 1, '\0'), content(4 * trie.longest() + 4, '\0');
    const auto close = [&](Text& text) {
        Position to = at;
        to.at[kState] = text.lex;
        if (recording) {
            const auto bytes = std::string_view(spelled).substr(0, text.bytes);
            to.at[kRaw] = raw_.add(raw_.add(at.at[kRaw], bytes), '"');
        }
        const auto added = std::string_view(content).substr(0, text.content);
        const BaseId base = lexer_.base(text.lex);
        text.lex = kQuoted;
        text.closed = to;
        return is_key ? close_key(text.closed, keys_.add(key_text(at), added))
                      : finish(text.closed, at.at[kFrame], lexer_.accepted(base), to.at[kRaw]);
    };
    const std::string begun = is_key ? keys_.text(key_text(at)) : "";
    std::unordered_map<LexId, int32_t> costs;  // of strings, where the text makes no difference
    const auto cost_behind = [&](const Text& text) {
        if (text.lex == kQuoted) return cost(text.closed);
        if (is_key) {
            return cost_of_key(text.lex, at.at[kObject], begun + content.substr(0, text.content),
                               at.at[kFrame]);
        }
        const auto [known, fresh] = costs.try_emplace(text.lex);
        if (fresh) {
            Position to = at;
            to.at[kState] = text.lex;
            known->second = cost_of_text(to);
        }
        return known->second;
    };
    walk(
        trie, 0, Text{{}, at.at[kState], 0, 0},
        [&](Text& text, uint8_t byte) {
            if (text.lex == kQuoted) return step(text.closed, byte);
            const int32_t to = lexer_.next(text.lex, byte);
            if (to == kDeadLex) return false;
            if (to == kQuoted) return close(text);
            if (is_key) text.content += lexer_.content(text.lex, byte, &content[text.content]);
            if (recording) spelled[text.bytes++] = static_cast<char>(byte);
            text.lex = to;
            return true;
        },
        [&](uint32_t node, const Text& text) {
            const int32_t then = budget < kUnreachable ? cost_behind(text) : 0;
            if (then < budget) set_bits(trie, node, mask.bits.data());
            if (budget < kUnreachable) mask.highest = std::max(mask.highest, then);
            return true;
        });
}

// Inside of free text all that tells masks apart is which tails may follow the closing quote, and
// in keys where that is another one: behind names, and keys that are used.
int32_t JsonMachine::same_mask(const Position& at) {
    const int32_t place = place_of(at);
    if ((place != kString && place != kKey) || !lexer_.at_border(at.at[kState])) return -1;
    if (frames_[at.at[kFrame]].recording) return -1;
    const BaseId base = lexer_.base(at.at[kState]);
    if (place == kString) {
        if (!is_free(base)) return -1;
        return same_masks_.add({tails_behind_value(at, base), -1});
    }
    const ObjectState& object = objects_[at.at[kObject]];
    const StringSlice& slice = vocabulary_->string_slice(style_.any_spelling);
    if (!object.uniform || !slice.keys_apart) return -1;
    std::vector<int32_t> list{kUnset};
    if (!contents_apart(at, list)) return -1;
    list[0] = tails_behind_extra(at, list, slice);
    return list[0] == kUnset ? -1 : same_masks_.add(list);
}

// Contents that are no extra key if the key is closed behind them: appends the number of each, and
// of the tails that may follow it, or kUnset. False where every content must be looked at.
bool JsonMachine::contents_apart(const Position& at, std::vector<int32_t>& found) {
    const BaseId base = lexer_.base(at.at[kState]);
    const Lexer::Key key = lexer_.key(base);
    const std::vector<std::string>& names = lexer_.plan_of(base).names;
    std::vector<std::string> rests;
    if (!languages_->leaves_out(key.extra, kMostApart, rests)) return false;
    if (rests.size() + static_cast<size_t>(key.high - key.low) > kMostApart) return false;
    for (int32_t i = key.low; i < key.high; ++i) rests.push_back(names[i].substr(key.depth));
    const StringSlice& slice = vocabulary_->string_slice(style_.any_spelling);
    std::vector<std::pair<int32_t, std::string_view>> apart;
    for (const std::string& rest : rests) {
        const int64_t node = slice.contents.find(rest);
        if (node < 0) continue;
        for (const int32_t number : slice.contents.at(static_cast<uint32_t>(node))) {
            apart.emplace_back(number, rest);
        }
    }
    std::ranges::sort(apart);
    apart.erase(std::ranges::unique(apart).begin(), apart.end());
    for (const auto& [number, rest] : apart) {
        BaseId to = base;
        for (const char c : rest) {
            if (to != kDeadLex) to = lexer_.next_content(to, static_cast<uint8_t>(c));
        }
        found.push_back(number);
        if (to == kDeadLex || lexer_.accepted(to).empty()) {
            found.push_back(kUnset);
            continue;
        }
        const int32_t text = keys_.add(key_text(at), rest);
        const auto [place, fresh] = known_tails_.try_emplace({at.at[kFrame], at.at[kObject], text});
        if (fresh) place->second = tails_.add(tails_behind(at, to, rest, slice, false));
        found.push_back(place->second);
    }
    return true;
}

// Whether any text may follow, and be closed anywhere; of keys: as one that is none of the names.
bool JsonMachine::is_free(BaseId base) {
    const text::TextState any = languages_->start(text::kAnyText);
    if (lexer_.is_key(base)) {
        const Lexer::Key key = lexer_.key(base);
        return key.low == key.high && key.extra == any;
    }
    return std::ranges::all_of(lexer_.lanes(base), [&](const auto& l) { return l.second == any; });
}

int32_t JsonMachine::tails_behind_value(const Position& at, BaseId base) {
    std::vector<int32_t> key{at.at[kFrame], -1};
    const std::vector<int32_t>& lanes = lexer_.accepted(base);
    key.insert(key.end(), lanes.begin(), lanes.end());
    const auto [place, fresh] = known_tails_.try_emplace(std::move(key));
    if (fresh) {
        const StringSlice& slice = vocabulary_->string_slice(style_.any_spelling);
        place->second = tails_.add(tails_behind(at, base, "", slice, false));
    }
    return place->second;
}

// What may follow behind any key that is not used yet and none of the names, of an object whose
// extra keys all ask the same of their values. kUnset where no content is such a key.
int32_t JsonMachine::tails_behind_extra(const Position& at, const std::vector<int32_t>& apart,
                                        const StringSlice& slice) {
    const auto [place, fresh] = known_tails_.try_emplace({at.at[kFrame], at.at[kObject]}, kUnset);
    if (!fresh) return place->second;
    const auto is_apart = [&](int32_t number) {
        for (size_t i = 1; i < apart.size(); i += 2) {
            if (apart[i] == number) return true;
        }
        return false;
    };
    struct Step {
        BaseId base;
        size_t depth;
    };
    std::string content(slice.contents.longest(), '\0');
    const auto look = [&](uint32_t node, const Step& step) {
        const auto numbers = slice.contents.at(node);
        if (numbers.empty() || is_apart(numbers[0])) return true;
        const auto text = std::string_view(content).substr(0, step.depth);
        place->second = tails_.add(tails_behind(at, step.base, text, slice, false));
        return false;
    };
    const Step begin{lexer_.base(at.at[kState]), 0};
    if (!look(0, begin)) return place->second;
    walk(
        slice.contents, 0, begin,
        [&](Step& step, uint8_t byte) {
            content[step.depth++] = static_cast<char>(byte);
            step.base = lexer_.next_content(step.base, byte);
            return step.base != kDeadLex;
        },
        look);
    return place->second;
}

// A mask from the list of `same_mask`: that of extra keys, but for the contents apart.
void JsonMachine::fill_key(const Position& at, int32_t same, Mask& mask) {
    const StringSlice& slice = vocabulary_->string_slice(style_.any_spelling);
    const std::vector<int32_t>& list = same_masks_[same];
    const auto may_follow = [&](int32_t tails, int32_t tail) {
        return tails != kUnset && tails_[tails][tail] < kUnreachable;
    };
    const auto [place, fresh] = extra_masks_.try_emplace(list[0]);
    std::vector<uint32_t>& extra = place->second;
    if (fresh) {
        extra = slice.inside;
        for (const int32_t id : slice.escaped) {
            Position to = at;
            const bool possible = std::ranges::all_of(
                vocabulary_->bytes(id), [&](char c) { return step(to, static_cast<uint8_t>(c)); });
            if (possible) set_bit(extra, id);
        }
        for (size_t tail = 0; tail + 1 < slice.first_id.size(); ++tail) {
            if (!may_follow(list[0], static_cast<int32_t>(tail))) continue;
            for (const int32_t id : slice.closed_by(static_cast<int32_t>(tail))) {
                set_bit(extra, id);
            }
        }
        memory_ += 4 * extra.size() + 64;
    }
    std::ranges::copy(extra, mask.bits.begin());
    for (size_t i = 1; i < list.size(); i += 2) {
        for (const auto& [tail, id] : slice.closings(list[i])) {
            may_follow(list[i + 1], tail) ? set_bit(mask.bits, id) : clear_bit(mask.bits, id);
        }
    }
}

// False where nothing is known beforehand. Tokens that close the string are priced if there is a
// budget: then those are set behind which the cost is below it.
bool JsonMachine::fill_string(const Position& at, Mask& mask, int32_t budget) {
    const int32_t place = place_of(at);
    if ((place != kString && place != kKey) || !lexer_.at_border(at.at[kState])) return false;
    if (fill_quote(at, mask, budget)) return true;
    const StringSlice& slice = vocabulary_->string_slice(style_.any_spelling);
    const text::Reach reach = lexer_.reach(lexer_.base(at.at[kState]));
    if (reach.free < slice.most && !reach.hard) return false;
    const auto inside =
        reach.free < slice.most ? slice.at_most(reach.free) : std::span(slice.inside);
    std::ranges::copy(inside, mask.bits.begin());
    for (const int32_t id : slice.escaped) {
        Position to = at;
        const bool possible = std::ranges::all_of(
            vocabulary_->bytes(id), [&](char c) { return step(to, static_cast<uint8_t>(c)); });
        if (!possible) continue;
        const int32_t then = budget < kUnreachable ? cost(to) : 0;
        if (then < budget) set_bit(mask.bits, id);
        mask.highest = std::max(mask.highest, then);
    }
    add_closings(at, slice, mask, budget);
    return true;
}

// The same for strings whose characters mostly lead to one place again. Tokens of nothing but such
// characters are known; those with others are looked at.
bool JsonMachine::fill_steady(const Position& at, Mask& mask) {
    const LexId from = at.at[kState];
    if (!lexer_.at_border(from)) return false;
    const Steady* const steady = steadies_.find(lexer_.base(from));
    if (steady == nullptr) return false;
    const StringSlice& slice = vocabulary_->string_slice(style_.any_spelling);
    const CharacterSet strange = ~steady->loop, onward = strange & ~steady->ends;
    const CharacterSet plain = steady->first & steady->loop;
    // Of more characters than are counted; the first one is none of those.
    const int64_t most = int64_t{1} + steady->most;
    const auto known = slice.at_most(most);
    const bool soft = !steady->hard && most < slice.most;
    int32_t looks = soft ? slice.count() - slice.count_at_most(most) : 0;
    for (size_t c = 0; c < onward.size(); ++c) looks += onward[c] ? slice.holding[c].count : 0;
    if (looks > kMostLooks) return false;

    std::ranges::copy(known, mask.bits.begin());
    for (size_t c = 0; c < strange.size(); ++c) {
        if (!strange[c]) continue;
        const Holding& holding = slice.holding[c];
        for (size_t i = 0; i < holding.bits.size(); ++i) mask.bits[i] &= ~holding.bits[i];
        for (const int32_t id : holding.ids) clear_bit(mask.bits, id);
    }
    const auto stays = [&](int32_t id) {
        LexId lex = from;
        for (const char c : vocabulary_->bytes(id)) {
            lex = lexer_.next(lex, static_cast<uint8_t>(c));
            if (lex < 0) return false;
        }
        return true;
    };
    const auto look_at = [&](int32_t id) {
        stays(id) ? set_bit(mask.bits, id) : clear_bit(mask.bits, id);
    };
    const auto look_at_all = [&](size_t word, uint32_t bits) {
        for (; bits != 0; bits &= bits - 1) {
            look_at(static_cast<int32_t>(32 * word) + std::countr_zero(bits));
        }
    };
    for (const int32_t id : slice.slashed) look_at(id);
    if (soft) {
        for (size_t i = 0; i < known.size(); ++i) look_at_all(i, slice.inside[i] & ~known[i]);
    }
    for (size_t c = 0; c < onward.size(); ++c) {
        if (!onward[c]) continue;
        const Holding& holding = slice.holding[c];
        for (const int32_t id : holding.ids) look_at(id);
        for (size_t i = 0; i < holding.bits.size(); ++i) look_at_all(i, holding.bits[i]);
    }
    const Trie& trie = vocabulary_->trie();
    for (int byte = 0x20; byte < 256; ++byte) {
        const size_t c = std::min<size_t>(byte, StringSlice::kBeyond);
        const uint32_t node = trie.begin(static_cast<uint8_t>(byte));
        if (plain[c] || node == 0 || byte == '"' || byte == '\\') continue;
        for (const int32_t id : trie.below(node)) clear_bit(mask.bits, id);
        const LexId to = lexer_.next(from, static_cast<uint8_t>(byte));
        if (to < 0) continue;
        set_bits(trie, node, mask.bits.data());
        walk(
            trie, node, to,
            [this](LexId& lex, uint8_t value) { return (lex = lexer_.next(lex, value)) >= 0; },
            [&](uint32_t inner, LexId) {
                set_bits(trie, inner, mask.bits.data());
                return true;
            });
    }
    add_closings(at, slice, mask, kUnreachable);
    return true;
}

// Contents that lead to the same place are decided together, tail by tail.
void JsonMachine::add_closings(const Position& at, const StringSlice& slice, Mask& mask,
                               int32_t budget) {
    struct Group {
        const std::vector<int32_t>* lanes;
        std::vector<int32_t> tails;
    };
    const bool priced = budget < kUnreachable;
    std::vector<Group> groups;
    const bool is_key = place_of(at) == kKey;
    const bool alone = is_key ? !objects_[at.at[kObject]].uniform || !slice.keys_apart
                              : !is_text_free(at.at[kFrame]);
    const bool recording = frames_[at.at[kFrame]].recording;
    const auto add = [&](int32_t number, BaseId base, std::string_view content) {
        const std::vector<int32_t>& lanes = lexer_.accepted(base);
        if (lanes.empty()) return;
        std::vector<int32_t> own;
        const std::vector<int32_t>* shared = nullptr;
        if (!alone && !(is_key && lexer_.key(base).low < lexer_.key(base).high)) {
            auto group =
                std::ranges::find_if(groups, [&](const Group& g) { return *g.lanes == lanes; });
            if (group == groups.end()) {
                groups.push_back({&lanes, tails_behind(at, base, content, slice, priced)});
                group = groups.end() - 1;
            }
            shared = &group->tails;
        }
        for (const StringSlice::Closing& closing : slice.closings(number)) {
            const bool use_own = shared == nullptr || (recording && !slice.simple[closing.tail]);
            if (use_own && own.empty()) own = tails_behind(at, base, content, slice, priced);
            const int32_t then = (use_own ? own : *shared)[closing.tail];
            if (then < budget) set_bit(mask.bits, closing.id);
            if (priced && then < kUnreachable) mask.highest = std::max(mask.highest, then);
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

// Per tail the cost behind it (0 if not priced), when a string or key goes on by `content`, up to
// `base`, and is closed; kUnreachable where it cannot follow.
std::vector<int32_t> JsonMachine::tails_behind(const Position& at, BaseId base,
                                               std::string_view content, const StringSlice& slice,
                                               bool priced) {
    std::vector<int32_t> found(slice.first_id.size() - 1, kUnreachable);
    Position closed = at;
    if (frames_[at.at[kFrame]].recording) {
        closed.at[kRaw] = raw_.add(raw_.add(at.at[kRaw], written(content)), '"');
    }
    const bool possible = place_of(at) == kKey ? close_key(closed, keys_.add(key_text(at), content))
                                               : finish(closed, at.at[kFrame],
                                                        lexer_.accepted(base), closed.at[kRaw]);
    if (!possible) return found;
    for (const int32_t tail : slice.tails.at(0)) found[tail] = priced ? cost(closed) : 0;
    walk(
        slice.tails, 0, closed, [this](Position& p, uint8_t byte) { return step(p, byte); },
        [&](uint32_t node, const Position& p) {
            for (const int32_t tail : slice.tails.at(node)) found[tail] = priced ? cost(p) : 0;
            return true;
        });
    return found;
}

// Whether what follows a string does not depend on its text, but for items that must differ, and
// of those there are plenty.
bool JsonMachine::is_text_free(int32_t id) {
    for (; frames_[id].recording; id = frames_[id].parent) {
        const Frame& of = known(id);
        if (!is_watched(of)) continue;
        if (of.kind == Frame::kMember || !arrays_[of.state].unique) return false;
        const auto& items = arrays_[of.state].items;
        if (std::ranges::any_of(items, [](const auto& i) { return !i.rivals.empty(); })) {
            return false;
        }
        for (const GoalId goal : of.goals) {
            if (goals_.goal(goal).supply < kPlenty) return false;
        }
    }
    return true;
}

}  // namespace sglite::json
