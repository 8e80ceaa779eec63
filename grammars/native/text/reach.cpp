// What is known of a state without looking at its edges: how much free text may follow, and which
// counts are so high that no token tells them apart.
#include <algorithm>

#include "pool.h"

namespace sglite::text {

// `closed`: from every state that can follow, any higher number of characters can be the rest.
// `open`: some text of so many characters leads from every such state to where all texts match.
Pool::Slack Pool::slack(TextState state) {
    constexpr Slack kNone{kUnreachable, kUnreachable};
    const auto all = parts(state);
    switch (kind(state)) {
        case Kind::kLength:
            return all[1] == kEndless ? Slack{all[0], all[0]} : kNone;
        case Kind::kTree: {
            const Nfa& nfa = *nfas_[all[0]];
            Slack slack = kNone;
            if (nfa.conditional) return slack;
            for (size_t i = 1; i < all.size(); i += 4) {
                const Nfa::Node& node = nfa.nodes[all[i]];
                // Behind any text, the match may still begin here.
                if (!node.repeats || node.set != kAnyCharacter || node.loop >= 0) continue;
                slack.open = std::min(slack.open, nfa.costs.open[node.next]);
                slack.closed = std::min(slack.closed, nfa.costs.free[node.next]);
            }
            return slack;
        }
        case Kind::kNot: {
            if (kind(all[0]) != Kind::kWords) return kNone;
            const int32_t longer = words_[part(all[0], 0)].longest + 1;
            return {longer, longer};
        }
        case Kind::kBoth: {
            // One after the other: each text that opens a part, then a rest of the last one.
            Slack sum{0, 0};
            int32_t last = 0;
            for (const TextState one : all) {
                const Slack part = slack(one);
                sum.open = add_cost(sum.open, part.open);
                if (part.open < kUnreachable) {
                    sum.closed = add_cost(sum.closed, part.open);
                } else {
                    last = last == 0 ? part.closed : kUnreachable;
                }
            }
            sum.closed = add_cost(sum.closed, last);
            return sum;
        }
        case Kind::kEither: {
            Slack least = kNone;
            for (const TextState one : all) {
                const Slack part = slack(one);
                least = {std::min(least.open, part.open), std::min(least.closed, part.closed)};
            }
            return least;
        }
        default:
            return kNone;
    }
}

Reach Pool::reach(TextState state) {
    if (slack(state).closed < kUnreachable) return {INT32_MAX, false};
    const auto all = parts(state);
    switch (kind(state)) {
        case Kind::kLength:
            return {all[1], true};
        case Kind::kBounded: {
            const int32_t closed = slack(all[0]).closed;
            if (closed >= kUnreachable) return {0, false};
            if (all[2] == kEndless) return {INT32_MAX, false};
            return {std::max(all[2] - closed, 0), false};
        }
        case Kind::kEither: {
            Reach most{0, true};
            const std::vector<TextState> states(all.begin(), all.end());
            for (const TextState one : states) {
                const Reach part = reach(one);
                most.free = std::max(most.free, part.free);
                most.hard &= part.hard;
            }
            return most;
        }
        default:
            return {0, false};
    }
}

// Over all states that can follow, the most of their least numbers of characters, and of the
// numbers above which every number is possible.
Pool::Depth Pool::depth(TextState state) {
    const auto all = parts(state);
    const int32_t closed = slack(state).closed;
    Depth depth{closed, closed};
    switch (kind(state)) {
        case Kind::kLength:
            depth.deepest = all[0];
            break;
        case Kind::kWords:
            depth.deepest = words_[all[0]].longest;
            break;
        case Kind::kTable:
            depth.deepest = dfas_[all[0]].deepest;
            break;
        case Kind::kQuote: {
            // One more, since a character may be under way.
            const auto [passages, at, count] = quoted(state);
            depth.deepest = add_cost(std::min(count.need, kUnreachable), passages->farthest() + 1);
            break;
        }
        case Kind::kTree: {
            const Nfa& nfa = *nfas_[all[0]];
            if (nfa.conditional) break;
            depth.deepest = std::min(depth.deepest, nfa.deepest);
            depth.closed = std::min(depth.closed, nfa.all_closed);
            break;
        }
        case Kind::kEither:
            depth = {0, 0};
            for (const TextState one : all) {
                const Depth part = this->depth(one);
                depth = {std::max(depth.deepest, part.deepest),
                         std::max(depth.closed, part.closed)};
            }
            break;
        default:
            break;
    }
    return depth;
}

// Words behind a state of kNot, at the border of a character.
bool Pool::leaves_out(TextState state, size_t most, std::vector<std::string>& texts) const {
    if (state == kAll) return true;
    if (state < 0 || !is_cofinite(state) || part(state, 1) != kAnyCharacter) return false;
    const auto words = parts(part(state, 0));
    const int32_t low = words[1], high = words[2], at = words[3];
    if (static_cast<size_t>(high - low) > most) return false;
    for (int32_t i = low; i < high; ++i) texts.push_back(words_[words[0]].texts[i].substr(at));
    return true;
}

TextState Pool::clipped(TextState state) {
    const int32_t far = options_.longest_token + 1;
    const auto clip = [&](int32_t count) {
        return count == kEndless ? count : std::min(count, far);
    };
    const auto all = parts(state);
    switch (kind(state)) {
        case Kind::kLength:
            return length(std::min(all[0], far), clip(all[1]), all[2]);
        case Kind::kTree: {
            const int32_t nfa = all[0];
            if (nfas_[nfa]->loops.empty() || nfas_[nfa]->conditional) return state;
            std::vector<Item> clipped;
            for (size_t i = 1; i < all.size(); i += 4) {
                clipped.push_back(
                    {all[i], all[i + 1], std::min(all[i + 2], far), clip(all[i + 3])});
            }
            return items(nfa, clipped);
        }
        case Kind::kEither: {
            std::vector<TextState> states(all.begin(), all.end());
            for (TextState& one : states) one = clipped(one);
            return either(std::move(states));
        }
        case Kind::kBounded: {
            // Where room is left for the rest of every state within a token, more of it does not
            // matter; nor does what is needed, if rests may be as long as one likes.
            const TextState inside = all[0];
            int32_t need = all[1], room = all[2];
            const Depth depth = this->depth(inside);
            const int32_t rest = need == 0 ? depth.deepest : depth.closed;
            if (rest >= kUnreachable) return state;
            const int32_t enough = add_cost(far, rest);
            if (room <= enough) return state;
            need = std::min(need, far);
            if (room != kEndless) room = enough;
            const TextState result = bounded(clipped(inside), need, room);
            return live(result) ? result : state;
        }
        default:
            return state;
    }
}

}  // namespace sglite::text
