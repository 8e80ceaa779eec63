// Bounds on the tokens to the end, from every place of the JSON machine.
#include <algorithm>
#include <bit>

#include "machine.h"

namespace sglite::json {
namespace {

constexpr int kLongestKey = 4096;  // of those that are made up to price a key
constexpr int32_t kWidest = 6;     // bytes of one character, as it is written

}  // namespace

std::string written(std::string_view text) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string found;
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        const size_t place = std::string_view("\"\\\b\f\n\r\t").find(c);
        if (place != std::string_view::npos) {
            found += {'\\', "\"\\bfnrt"[place]};
        } else if (byte < 0x20) {
            found += "\\u00";
            found += {kDigits[byte >> 4], kDigits[byte & 15]};
        } else {
            found += c;
        }
    }
    return found;
}

// The fewest tokens that spell a text within a string; its bytes, where that is not possible.
int32_t JsonMachine::spell(std::string_view plain) {
    const auto [place, fresh] = spelled_.try_emplace(std::string(plain));
    if (!fresh) return place->second;
    const std::string text = written(plain);
    const Trie& trie = vocabulary_->trie();
    std::vector<int32_t> fewest(text.size() + 1, kUnreachable);
    fewest[0] = 0;
    for (size_t from = 0; from < text.size(); ++from) {
        uint32_t node = 0;
        for (size_t to = from; to < text.size(); ++to) {
            node = trie.child(node, static_cast<uint8_t>(text[to]));
            if (node == 0) break;
            if (trie.at(node).empty()) continue;
            fewest[to + 1] = std::min(fewest[to + 1], fewest[from] + 1);
        }
    }
    const auto bytes = static_cast<int32_t>(text.size());
    return place->second = std::min(fewest.back(), bytes);
}

int32_t JsonMachine::cost(const Position& at) {
    const int32_t id = at.at[kFrame];
    const bool single = style_.whitespace == Style::Whitespace::kSingle;
    const int32_t space = single && (at.at[kPlace] >> 8 & 0xFF) == 0 ? 1 : 0;
    switch (at.at[kPlace] & 0xFF) {
        case kValue:
            return cost_of_value(id);
        case kSpacedValue:
            return add_cost(cost_of_value(id), space);
        case kLiteral:
            return cost_of_literal(at);
        case kString:
        case kNumber:
            return cost_of_text(at);
        case kObjectBegin:
        case kMemberEnd:
            return cost_of_closing(objects_[at.at[kState]], id);
        case kNextKey:
            return add_cost(
                cost_of_key(objects_.with_keys(at.at[kState]).key, at.at[kState], 0, id),
                1 + space);
        case kKey:
            return cost_of_key(at.at[kState], at.at[kObject], at.at[kText], id);
        case kColon:
            return add_cost(cost_of_value(id), 1 + single);
        case kArrayBegin:
        case kItemEnd:
            return cost_of_closing(arrays_[at.at[kState]], id);
        default:
            return 0;
    }
}

int32_t JsonMachine::cost_of_value(int32_t id) {
    const Frame& of = known(id);
    int32_t best = kUnreachable;
    for (size_t lane = 0; lane < of.goals.size(); ++lane) {
        best = std::min(best, add_cost(goals_.goal(of.goals[lane]).cost, of.below[lane]));
    }
    return best;
}

int32_t JsonMachine::cost_of_literal(const Position& at) {
    const int32_t progress = at.at[kPlace] >> 16, which = progress >> 3, done = progress & 7;
    const Frame& of = known(at.at[kFrame]);
    int32_t best = kUnreachable;
    for (size_t lane = 0; lane < of.goals.size(); ++lane) {
        const Goal& goal = goals_.goal(of.goals[lane]);
        const bool fits = which == 0 ? goal.null : which == 1 ? goal.falsity : goal.truth;
        if (fits) best = std::min(best, of.below[lane]);
    }
    return add_cost(best, (which == 1 ? 5 : 4) - done);
}

int32_t JsonMachine::cost_of_text(const Position& at) {
    const Frame& of = known(at.at[kFrame]);
    const auto cost_from = [&](LexId lex) {
        int32_t best = kUnreachable;
        for (const auto& [lane, state] : lexer_.lanes(lexer_.base(lex))) {
            best = std::min(best, add_cost(languages_->distance(state), of.below[lane]));
        }
        return best;
    };
    if ((at.at[kPlace] & 0xFF) == kNumber) return cost_from(at.at[kState]);
    if (!lexer_.in_escape(at.at[kState])) return add_cost(cost_from(at.at[kState]), 1);
    int32_t best = kUnreachable;
    for (const Lexer::Ending& ending : lexer_.endings(at.at[kState])) {
        best = std::min(best, add_cost(cost_from(ending.lex), ending.bytes + 1));
    }
    return best;
}

template <typename State>
int32_t JsonMachine::cost_of_closing(const State& state, int32_t frame) {
    const std::vector<int32_t>& below = known(frame).below;
    int32_t best = kUnreachable;
    for (const auto& item : state.items)
        best = std::min(best, add_cost(item.close, below[item.lane]));
    return best;
}

// From within a key, of which `text` is kept, to the end of everything.
int32_t JsonMachine::cost_of_key(LexId lex, int32_t object, int32_t text, int32_t frame) {
    const Lexer::Key key = lexer_.key(lexer_.base(lex));
    const KeyPlan& plan = lexer_.plan(objects_.with_keys(object).plan);
    int32_t best = kUnreachable;
    if (lexer_.in_escape(lex)) {
        if (key.low < key.high) text = keys_.add(0, plan.names[key.low].substr(0, key.depth));
        for (const auto& [then, taken, content] : lexer_.endings(lex)) {
            const int32_t rest = cost_of_key(then, object, keys_.add(text, content), frame);
            best = std::min(best, add_cost(rest, taken));
        }
        return best;
    }
    const int32_t bytes = style_.whitespace == Style::Whitespace::kSingle ? 3 : 2;  // `": `
    for (int32_t i = key.low; i < key.high; ++i) {
        if (!plan.is_allowed(i)) continue;
        const std::string_view name = plan.names[i];
        const int32_t member = member_frame(object, keys_.add(0, name), frame);
        best = std::min(best, add_cost(spell(name.substr(key.depth)), cost_of_value(member)));
    }
    if (key.extra != text::kDeadText) {
        best = std::min(best, cost_of_extra_key(key, plan, object, text, frame));
    }
    return add_cost(best, bytes);
}

// The cheapest extra key that is not used yet. Where all ask the same of their values and no name
// is near, any key will do; else those are looked at too that shapes and demands speak of.
int32_t JsonMachine::cost_of_extra_key(const Lexer::Key& key, const KeyPlan& plan, int32_t object,
                                       int32_t text, int32_t frame) {
    int32_t* shared = nullptr;
    if (key.low == key.high && objects_[object].uniform) {
        const uint64_t place = static_cast<uint64_t>(object) << 32 | static_cast<uint32_t>(frame);
        shared = &behind_extra_.try_emplace(place, kUnset).first->second;
        if (*shared != kUnset) return add_cost(*shared, languages_->distance(key.extra));
    }
    const std::string content =
        key.low == key.high ? keys_.text(text) : plan.names[key.low].substr(0, key.depth);
    const auto [best, rest] = nearest_key(key.extra, content, plan, object, frame);
    if (shared != nullptr && rest < kUnreachable) *shared = rest;
    if (objects_[object].uniform) return best;
    int32_t least = best;
    for (const text::LangId keys : key_classes(object)) {
        text::TextState state = languages_->start(keys);
        for (const char c : content) {
            if (state != text::kDeadText) {
                state = languages_->next(state, static_cast<uint8_t>(c));
            }
        }
        if (state == text::kDeadText) continue;
        least = std::min(least, nearest_key(state, content, plan, object, frame).first);
    }
    return least;
}

// By the letters of the shortest text; the costs to the end of everything, and those behind the key.
std::pair<int32_t, int32_t> JsonMachine::nearest_key(text::TextState state, std::string content,
                                                     const KeyPlan& plan, int32_t object,
                                                     int32_t frame) {
    int32_t bytes = 0;
    while (bytes < kLongestKey) {
        if (languages_->accepts(state) && !std::ranges::binary_search(plan.names, content)) {
            const int32_t member = member_frame(object, keys_.add(0, content), frame);
            if (!frames_[member].goals.empty()) {
                const int32_t rest = cost_of_value(member);
                return {add_cost(rest, bytes), rest};
            }
        }
        int nearest = -1;
        int32_t distance = kUnreachable;
        for (int byte = 0; byte < 256; ++byte) {
            const text::TextState to = languages_->next(state, static_cast<uint8_t>(byte));
            if (to == text::kDeadText || (byte < 0x20 && distance < kUnreachable)) continue;
            const int32_t rest = languages_->distance(to);
            // Letters come before everything else of the same length.
            const bool better = rest < distance || (rest == distance && byte == 'a');
            if (better) nearest = byte, distance = rest;
        }
        if (nearest < 0) break;
        state = languages_->next(state, static_cast<uint8_t>(nearest));
        content.push_back(static_cast<char>(nearest));
        bytes += nearest < 0x20 ? 6 : nearest == '"' || nearest == '\\' ? 2 : 1;
    }
    return {kUnreachable, kUnreachable};
}

// Keys of which some may be cheaper than the nearest: what the shapes of an object tell apart, and
// what its open demands ask for, one by one and together.
const std::vector<text::LangId>& JsonMachine::key_classes(int32_t object) {
    const auto [place, fresh] = key_classes_.try_emplace(object);
    std::vector<text::LangId>& found = place->second;
    if (!fresh) return found;
    for (const ObjectItem& item : objects_[object].items) {
        const uint32_t open = item.at.open;
        for (const auto& extra : item.shape->extras) {
            found.push_back(extra.keys);
            for (uint32_t some = open; some != 0; some = (some - 1) & open) {
                const bool few = std::popcount(open) <= 4 || std::popcount(some) == 1;
                if (!few && some != open) continue;
                std::vector<text::LangId> all{extra.keys};
                for (size_t i = 0; i < item.shape->some.size(); ++i) {
                    if (some >> i & 1) all.push_back(item.shape->some[i].keys);
                }
                found.push_back(languages_->both(std::move(all)));
            }
        }
    }
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::erase(found, text::kNoText);
    return found;
}

// The costs behind tokens that stay within a string or key, from the border of a character to
// another, are among these. Up to kUnreachable where that takes a longer look.
JsonMachine::Span JsonMachine::costs_inside(const Position& at) {
    const auto farthest = [&](text::TextState state) {
        const int32_t characters = languages_->deepest(state);
        return characters >= kUnreachable / kWidest ? kUnreachable : kWidest * characters;
    };
    const BaseId base = lexer_.base(at.at[kState]);
    if ((at.at[kPlace] & 0xFF) == kString) {
        const Frame& of = known(at.at[kFrame]);
        Span span{kUnreachable, 0};
        for (const auto& [lane, state] : lexer_.lanes(base)) {
            span.least = std::min(span.least, add_cost(of.below[lane], 1));
            span.most = std::max(span.most, add_cost(farthest(state), of.below[lane]));
        }
        return {span.least, add_cost(span.most, 1)};
    }
    const Span unknown{0, kUnreachable};
    const Lexer::Key key = lexer_.key(base);
    const int32_t object = at.at[kObject], frame = at.at[kFrame];
    if (!objects_[object].uniform || key.extra == text::kDeadText) return unknown;
    const int32_t bytes = style_.whitespace == Style::Whitespace::kSingle ? 3 : 2;
    const KeyPlan& plan = lexer_.plan(objects_.with_keys(object).plan);
    // Where the nearest keys are used already, each of them takes one more character.
    int32_t most = add_cost(cost_of_extra_key(key, plan, object, at.at[kText], frame),
                            add_cost(farthest(key.extra), static_cast<int32_t>(plan.names.size())));
    for (int32_t i = key.low; i < key.high; ++i) {
        if (!plan.is_allowed(i)) continue;
        const int32_t member = member_frame(object, keys_.add(0, plan.names[i]), frame);
        most = std::max(most, add_cost(static_cast<int32_t>(written(plan.names[i]).size()),
                                       cost_of_value(member)));
    }
    int32_t least = 0;
    if (key.low == key.high) {
        const int32_t here = cost_of_extra_key(key, plan, object, at.at[kText], frame);
        least = here - std::min(here, languages_->distance(key.extra));
    }
    return {add_cost(least, bytes), add_cost(most, bytes)};
}

}  // namespace sglite::json
