// Bounds on the tokens to the end, from every place of the JSON machine.
#include <algorithm>
#include <bit>

#include "machine.h"

namespace sglite::json {
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
            return cost_of_closing(objects_[at.at[kState]].items, id, place_of(at));
        case kNextKey:
            return add_cost(
                cost_of_key(objects_.with_keys(at.at[kState]).key, at.at[kState], "", id),
                1 + space);
        case kKey:
            return cost_of_key(at.at[kState], at.at[kObject], keys_.text(at.at[kText]), id);
        case kColon:
            return add_cost(cost_of_value(id), prices_->colon);
        case kArrayBegin:
        case kItemEnd:
            return cost_of_closing(arrays_[at.at[kState]].items, id, place_of(at));
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
    return add_cost(best, spelling_.of(kLiterals[which].substr(done)));
}

int32_t JsonMachine::cost_of_text(const Position& at) {
    const Frame& of = known(at.at[kFrame]);
    const int32_t place = place_of(at);
    const auto cost_from = [&](LexId lex) {
        int32_t best = kUnreachable;
        for (const auto& [lane, state] : lexer_.lanes(lexer_.base(lex))) {
            const int32_t rest =
                place == kNumber ? languages_->distance(state) : spelling_.rest(state);
            best = std::min(best, add_cost(rest, of.below[lane]));
        }
        return best;
    };
    if (place == kNumber) return cost_from(at.at[kState]);
    if (!lexer_.in_escape(at.at[kState])) return add_cost(cost_from(at.at[kState]), 1);
    int32_t best = kUnreachable;
    for (const Lexer::Ending& ending : lexer_.endings(at.at[kState])) {
        best = std::min(best, add_cost(cost_from(ending.lex), ending.bytes + 1));
    }
    return best;
}

// No comma stands before the first item or member.
template <typename Item>
int32_t JsonMachine::cost_of_closing(const std::vector<Item>& items, int32_t frame, int32_t place) {
    const std::vector<int32_t>& below = known(frame).below;
    const bool is_first = place == kObjectBegin || place == kArrayBegin;
    int32_t best = kUnreachable;
    for (const auto& item : items) {
        const int32_t close = is_first ? prices_->from_begin(item.close) : item.close;
        best = std::min(best, add_cost(close, below[item.lane]));
    }
    return best;
}

}  // namespace sglite::json
