// Bounds on the tokens to the end, from every place of the JSON machine.
#include <algorithm>
#include <bit>

#include "machine.h"

namespace sglite::json {
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

// Per byte of a text, and at its end: the fewest tokens that spell the rest within a string.
const std::vector<int32_t>& JsonMachine::spelled(const std::string& plain) {
    const auto [place, fresh] = spelled_.try_emplace(plain);
    std::vector<int32_t>& rest = place->second;
    if (!fresh) return rest;
    const Trie& trie = vocabulary_->trie();
    const std::string text = written(plain);
    std::vector<int32_t> fewest(text.size() + 1, 0);
    for (size_t from = text.size(); from-- > 0;) {
        // Where a byte is no token, no key of the plan holds it.
        fewest[from] = fewest[from + 1] + 1;
        uint32_t node = 0;
        for (size_t to = from; to < text.size(); ++to) {
            node = trie.child(node, static_cast<uint8_t>(text[to]));
            if (node == 0) break;
            if (trie.nodes()[node].strings == 0) continue;
            fewest[from] = std::min(fewest[from], fewest[to + 1] + 1);
        }
    }
    size_t at = 0;
    for (const char& c : plain) {
        rest.push_back(fewest[at]);
        at += written({&c, 1}).size();
    }
    rest.push_back(0);
    memory_ += 4 * rest.size() + plain.size() + 120;
    return rest;
}

int32_t JsonMachine::cost(const Position& at) {
    const int32_t id = at.at[kFrame];
    const bool single = style_.whitespace == Style::Whitespace::kSingle;
    const int32_t space = single && spaces_of(at) == 0 ? 1 : 0;
    switch (place_of(at)) {
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
                cost_of_key(objects_.with_keys(at.at[kState]).key, at.at[kState], "", id),
                1 + space);
        case kKey:
            return cost_of_key(at.at[kState], at.at[kObject], keys_.text(at.at[kText]), id);
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
    const int32_t progress = extra_of(at), which = progress >> 3, done = progress & 7;
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
    if (place_of(at) == kNumber) return cost_from(at.at[kState]);
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

}  // namespace sglite::json
