// States of patterns: sets of places in a nondeterministic automaton.
//
// Behind a lookahead or at a word boundary the rest of the text must also be in another language.
// Places under such a condition become a conjunction of their own.
#include <algorithm>

#include "pool.h"

namespace sglite::text {
namespace {

constexpr size_t kMostItems = 20'000;

void put(std::string& key, int64_t value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& key, const Ranges& set) {
    put(key, static_cast<int64_t>(set.size()));
    for (const auto& [low, high] : set) put(key, static_cast<int64_t>(low) << 32 | high);
}

void put(std::string& key, const Regex& tree, int depth) {
    if (depth > 1'000) throw Refused("the pattern is nested too deeply");
    key += static_cast<char>(tree.kind);
    put(key, tree.chars);
    if (tree.kind == Regex::Kind::kRepeat) put(key, tree.low), put(key, tree.high);
    put(key, static_cast<int64_t>(tree.parts.size()));
    for (const Regex& part : tree.parts) put(key, part, depth + 1);
}

Regex one_of(const Ranges& set) {
    const Regex any{.kind = Regex::Kind::kChars, .chars = {{0, kLastCharacter}}};
    const Regex rest{.kind = Regex::Kind::kRepeat, .parts = {any}, .low = 0, .high = -1};
    return {.parts = {{.kind = Regex::Kind::kChars, .chars = set}, rest}};
}

}  // namespace

// Follows everything between two characters.
struct Pool::Closing {
    struct Open {
        int32_t place, need, room;
        TextState also;  // what the rest must be in, too
        bool ended;      // the text must end here
        bool operator==(const Open&) const = default;
    };

    Pool& pool;
    int32_t number;
    std::vector<std::pair<TextState, Item>>& out;
    std::vector<Open> open{}, seen{};

    Nfa& nfa() const { return *pool.nfas_[number]; }

    void push(int32_t place, int32_t need, int32_t room, TextState also, bool ended) {
        const Open one{place, need, room, also, ended};
        Nfa& automaton = nfa();
        if (also == kAll && !ended && automaton.nodes[place].loop < 0) {
            if (automaton.stamps[place] == automaton.stamp) return;
            automaton.stamps[place] = automaton.stamp;
        } else {
            pool.spend(1 + static_cast<int64_t>(seen.size()) / 16);
            if (std::find(seen.begin(), seen.end(), one) != seen.end()) return;
            seen.push_back(one);
        }
        open.push_back(one);
    }

    void check(int32_t loop, int32_t need, int32_t room, TextState also, bool ended) {
        const Nfa::Loop& counts = nfa().loops[loop];
        if (room > 0) {
            push(counts.body, std::max(need - 1, 0), room == kEndless ? room : room - 1, also,
                 ended);
        }
        if (need == 0) push(counts.exit, 0, 0, also, ended);
    }

    void condition(const Open& at, int32_t next, TextState rest) {
        const TextState also = pool.both({at.also, rest});
        if (pool.live(also)) push(next, 0, 0, also, at.ended);
    }

    TextState look(int32_t which, Context context) {
        if (nfa().look_nfas[which] < 0) {
            const Regex all{.parts = {nfa().looks[which], one_of({{0, kLastCharacter}}).parts[1]}};
            const int32_t found = pool.nfa(all, nfa().borders);
            nfa().look_nfas[which] = found;
        }
        return pool.begin(nfa().look_nfas[which], context);
    }

    // Texts that begin with a character of a border.
    TextState border(int32_t which) {
        constexpr TextState kUnknown = -2;
        if (nfa().border_states.empty()) nfa().border_states.resize(nfa().borders.size(), kUnknown);
        if (nfa().border_states[which] == kUnknown) {
            const TextState found = pool.tree(one_of(nfa().borders[which]), false);
            nfa().border_states[which] = found;
        }
        return nfa().border_states[which];
    }

    void follow(const Open& at, Context context) {
        const Nfa::Node node = nfa().nodes[at.place];
        switch (node.kind) {
            case Nfa::Kind::kAccept:
                if (pool.accepts(at.also)) out.push_back({kAll, {at.place, 0, 0, 0}});
                return;
            case Nfa::Kind::kChars:
                if (at.ended) return;
                if (nfa().total(nfa().costs.weight, at.place, at.need) >= kUnreachable) return;
                out.push_back({at.also, {at.place, node.set, at.need, at.room}});
                return;
            case Nfa::Kind::kSplit:
                push(node.other, at.need, at.room, at.also, at.ended);
                push(node.next, at.need, at.room, at.also, at.ended);
                return;
            case Nfa::Kind::kStart:
                if (context & kAtStart) push(node.next, 0, 0, at.also, at.ended);
                return;
            case Nfa::Kind::kEnd:
                push(node.next, 0, 0, at.also, true);
                return;
            case Nfa::Kind::kAhead:
                condition(at, node.next, look(node.other, context));
                return;
            case Nfa::Kind::kNotAhead:
                condition(at, node.next, pool.complement(look(node.other, context)));
                return;
            case Nfa::Kind::kBoundary:
            case Nfa::Kind::kInside: {
                const bool behind = context >> (node.other + 1) & 1;
                const bool wanted = behind != (node.kind == Nfa::Kind::kBoundary);
                const TextState ahead = border(node.other);
                condition(at, node.next, wanted ? ahead : pool.complement(ahead));
                return;
            }
            case Nfa::Kind::kBehind:
            case Nfa::Kind::kNotBehind: {
                const bool behind = context >> (node.other + 1) & 1;
                if (behind == (node.kind == Nfa::Kind::kBehind)) {
                    push(node.next, 0, 0, at.also, at.ended);
                }
                return;
            }
            case Nfa::Kind::kEnter: {
                const Nfa::Loop& loop = nfa().loops[node.other];
                check(node.other, loop.low, loop.high, at.also, at.ended);
                return;
            }
            case Nfa::Kind::kCheck:
                check(node.other, at.need, at.room, at.also, at.ended);
                return;
        }
    }

    void close(int32_t place, int32_t need, int32_t room, Context context) {
        push(place, need, room, kAll, false);
        while (!open.empty()) {
            const Open at = open.back();
            open.pop_back();
            pool.spend(1);
            follow(at, context);
            if (pool.limited_ && out.size() + seen.size() > kMostItems) {
                throw Refused("the pattern has too many readings of one text");
            }
        }
    }
};

int32_t Pool::nfa(const Regex& tree, std::vector<Ranges> borders) {
    std::string key;
    put(key, tree, 0);
    for (const Ranges& border : borders) put(key, border);
    if (const auto known = known_nfas_.find(key); known != known_nfas_.end()) return known->second;
    auto built = std::make_unique<Nfa>(build_nfa(tree, std::move(borders), spelled_));
    ClassTables::Marks marks{};
    mark_bytes(*built, spelled_, marks);
    built->classes = tables_.classes(marks);
    const auto number = static_cast<int32_t>(nfas_.size());
    source_memory_ += 2 * key.size() + built->memory();
    known_nfas_.emplace(std::move(key), number);
    nfas_.push_back(std::move(built));
    return number;
}

TextState Pool::begin(int32_t nfa, Context context) {
    ++nfas_[nfa]->stamp;
    std::vector<std::pair<TextState, Item>> found;
    Closing{*this, nfa, found}.close(nfas_[nfa]->start, 0, 0, context);
    return collect(nfa, found);
}

TextState Pool::step_tree(TextState state, uint8_t byte) {
    const auto all = parts(state);
    const std::vector<int32_t> old(all.begin(), all.end());
    const int32_t number = old[0];
    std::vector<std::pair<TextState, Item>> found;
    Closing closing{*this, number, found};
    ++nfas_[number]->stamp;
    for (size_t i = 1; i < old.size(); i += 4) {
        const int32_t place = old[i], need = old[i + 2], room = old[i + 3];
        if (nfas_[number]->nodes[place].kind == Nfa::Kind::kAccept) continue;
        const int32_t to = spelled_.step(old[i + 1], byte);
        if (to < 0) continue;
        if (to != kCharacterDone) {
            found.push_back({kAll, {place, to, need, room}});
            continue;
        }
        if (nfas_[number]->conditional) ++nfas_[number]->stamp;  // the contexts may differ
        const Nfa::Node& node = nfas_[number]->nodes[place];
        closing.seen.clear();
        closing.close(node.next, need, room, node.context);
    }
    return collect(number, found);
}

TextState Pool::collect(int32_t nfa, std::vector<std::pair<TextState, Item>>& found) {
    std::sort(found.begin(), found.end());
    std::vector<TextState> states;
    std::vector<Item> group;
    for (size_t i = 0; i < found.size();) {
        const TextState also = found[i].first;
        group.clear();
        for (; i < found.size() && found[i].first == also; ++i) group.push_back(found[i].second);
        TextState state = items(nfa, group);
        if (also == kAll && i == found.size() && states.empty()) return state;
        states.push_back(also == kAll ? state : both({state, also}));
    }
    return states.empty() ? kDeadText : either(std::move(states));
}

TextState Pool::items(int32_t number, std::vector<Item>& items) {
    const Nfa& nfa = *nfas_[number];
    std::sort(items.begin(), items.end());
    // Of equal places those with as much need and less room are of no use.
    size_t kept = 0;
    bool accepting = false;
    for (const Item& item : items) {
        const Nfa::Node& node = nfa.nodes[item.place];
        accepting |= node.kind == Nfa::Kind::kAccept;
        if (kept > 0) {
            Item& last = items[kept - 1];
            const bool same = last.place == item.place && last.node == item.node;
            if (same && item.room <= last.room) continue;
            if (same && item.need == last.need) {
                last = item;
                continue;
            }
        }
        items[kept++] = item;
    }
    items.resize(kept);
    if (items.empty()) return kDeadText;
    std::vector<int32_t> parts{number};
    for (const Item& item : items) {
        const Nfa::Node& node = nfa.nodes[item.place];
        if (node.everything) {
            if (item.node != node.set) return length(0, kEndless, item.node);
            return length(accepting ? 0 : 1, kEndless);
        }
        parts.insert(parts.end(), {item.place, item.node, item.need, item.room});
    }
    return intern(Kind::kTree, parts, accepting, !nfa.conditional, nfa.classes);
}

int32_t Pool::over_items(TextState state, const std::vector<int32_t>& cost, Measure measure) {
    const auto all = parts(state);
    const Nfa& nfa = *nfas_[all[0]];
    int32_t best = kUnreachable;
    for (size_t i = 1; i < all.size(); i += 4) {
        const Nfa::Node& node = nfa.nodes[all[i]];
        if (node.kind == Nfa::Kind::kAccept) {
            best = std::min(best, cost[all[i]]);
        } else if (all[i + 1] == node.set) {
            best = std::min(best, nfa.total(cost, all[i], all[i + 2]));
        } else {
            const int32_t rest = measure == kWeight ? spelled_.lightest(all[i + 1]) : 0;
            best = std::min(best, add_cost(rest, nfa.total(cost, node.next, all[i + 2])));
        }
    }
    return best;
}

int32_t Pool::closed_from(TextState state) {
    const auto all = parts(state);
    if (states_[state].kind == Kind::kTree && !nfas_[all[0]]->conditional) {
        return over_items(state, nfas_[all[0]]->costs.closed, kCharacters);
    }
    return slack(state).closed;
}

}  // namespace sglite::text
