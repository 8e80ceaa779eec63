#include "nfa.h"

#include <algorithm>
#include <bitset>

namespace sglite::text {
namespace {

using Kind = Nfa::Kind;

constexpr int kMostDepth = 1'000;
constexpr size_t kMostNodes = 50'000;
// Repetitions are written out while that makes no more characters than this.
constexpr int64_t kMostCopies = 48;

// Of the conditions that ask for a border.
Kind kind_of(Regex::Kind kind) {
    if (kind == Regex::Kind::kBoundary) return Kind::kBoundary;
    if (kind == Regex::Kind::kInside) return Kind::kInside;
    return kind == Regex::Kind::kBehind ? Kind::kBehind : Kind::kNotBehind;
}

// What a tree holds, as far as repetitions ask for it.
struct Content {
    int64_t characters = 0;
    bool counted = false, conditional = false, nullable = false;
};

bool written_out(const Regex& repeat, const Content& body) {
    const int64_t copies = repeat.high < 0 ? repeat.low : repeat.high;
    if (body.conditional || copies <= 1) return true;
    return copies <= kMostCopies && copies * std::max<int64_t>(body.characters, 1) <= kMostCopies;
}

Content content(const Regex& tree, int depth) {
    if (depth > kMostDepth) throw Refused("the pattern is nested too deeply");
    Content all;
    all.nullable = tree.kind == Regex::Kind::kConcat;
    if (tree.kind == Regex::Kind::kChars) all.characters = 1;
    if (is_condition(tree.kind)) {
        all.conditional = all.nullable = true;
        return all;
    }
    for (const Regex& part : tree.parts) {
        const Content one = content(part, depth + 1);
        all.characters = std::min(all.characters + one.characters, kMostCount);
        all.counted |= one.counted;
        all.conditional |= one.conditional;
        if (tree.kind == Regex::Kind::kConcat) all.nullable &= one.nullable;
        if (tree.kind == Regex::Kind::kEither) all.nullable |= one.nullable;
        if (tree.kind != Regex::Kind::kRepeat) continue;
        all.nullable = one.nullable || tree.low == 0;
        if (written_out(tree, one)) {
            const int64_t copies = std::max<int64_t>(tree.high < 0 ? tree.low : tree.high, 1);
            all.characters = std::min(all.characters * std::min(copies, kMostCount), kMostCount);
        } else {
            all.counted = true;
        }
    }
    return all;
}

Ranges common(const Ranges& a, const Ranges& b) {
    Ranges both;
    for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
        const uint32_t low = std::max(a[i].first, b[k].first);
        const uint32_t high = std::min(a[i].second, b[k].second);
        if (low <= high) both.push_back({low, high});
        a[i].second < b[k].second ? ++i : ++k;
    }
    return both;
}

Ranges others(const Ranges& set) {
    Ranges rest;
    uint32_t from = 0;
    for (const auto& [low, high] : set) {
        if (low > from) rest.push_back({from, low - 1});
        from = high + 1;
    }
    if (from <= kLastCharacter) rest.push_back({from, kLastCharacter});
    return rest;
}

// Builds from the end of the text to its beginning, so that equal ends are one.
class Builder {
  public:
    Builder(Nfa& nfa, Spelled& spelled) : nfa_(nfa), spelled_(spelled) {}

    // The node from which `tree` leads to `next`.
    int32_t build(const Regex& tree, int32_t next) {
        switch (tree.kind) {
            case Regex::Kind::kChars:
                return chars(tree.chars, next);
            case Regex::Kind::kConcat:
                for (auto part = tree.parts.rbegin(); part != tree.parts.rend(); ++part) {
                    next = build(*part, next);
                }
                return next;
            case Regex::Kind::kEither:
                return either(tree, next);
            case Regex::Kind::kRepeat:
                return repeat(tree, next);
            case Regex::Kind::kStart:
                return add({.kind = Kind::kStart, .next = next});
            case Regex::Kind::kEnd:
                return add({.kind = Kind::kEnd, .next = next});
            case Regex::Kind::kAhead:
            case Regex::Kind::kNotAhead:
                nfa_.conditional = true;
                nfa_.looks.push_back(tree.parts[0]);
                return add(
                    {.kind = tree.kind == Regex::Kind::kAhead ? Kind::kAhead : Kind::kNotAhead,
                     .next = next,
                     .other = static_cast<int32_t>(nfa_.looks.size()) - 1});
            default:
                break;
        }
        nfa_.conditional = true;
        const auto border = std::find(nfa_.borders.begin(), nfa_.borders.end(), tree.chars);
        return add({.kind = kind_of(tree.kind),
                    .next = next,
                    .other = static_cast<int32_t>(border - nfa_.borders.begin())});
    }

    int32_t accept() { return add({.kind = Kind::kAccept}); }

  private:
    int32_t add(Nfa::Node node) {
        if (nfa_.nodes.size() >= kMostNodes) throw Refused("the pattern is too large");
        node.loop = loop_;
        nfa_.nodes.push_back(node);
        return static_cast<int32_t>(nfa_.nodes.size()) - 1;
    }

    int32_t chars(const Ranges& set, int32_t next) {
        int32_t all = -1;
        const size_t kinds = size_t{1} << nfa_.borders.size();
        for (size_t kind = 0; kind < kinds; ++kind) {  // per combination of sides of the borders
            Ranges part = set;
            for (size_t i = 0; i < nfa_.borders.size(); ++i) {
                const Ranges& border = nfa_.borders[i];
                part = common(part, kind >> i & 1 ? border : others(border));
            }
            if (part.empty() && kinds > 1) continue;
            const int32_t node =
                one_set(spelled_.before(part), static_cast<Context>(kind << 1), next);
            all = all < 0 ? node : add({.kind = Kind::kSplit, .next = node, .other = all});
        }
        return all >= 0 ? all : one_set(spelled_.before({}), 0, next);
    }

    int32_t one_set(int32_t set, Context context, int32_t next) {
        const uint64_t hash =
            mix(mix(static_cast<uint64_t>(set) + 1, static_cast<uint64_t>(next)), context);
        const int32_t known = index_.find(hash, [&](int32_t number) {
            const Nfa::Node& node = nfa_.nodes[number];
            return node.set == set && node.next == next && node.context == context;
        });
        if (known >= 0) return known;
        const int32_t node =
            add({.kind = Kind::kChars, .next = next, .set = set, .context = context});
        index_.add(hash, node);
        return node;
    }

    int32_t either(const Regex& tree, int32_t next) {
        if (tree.parts.empty()) return chars({}, next);
        int32_t all = build(tree.parts.back(), next);
        for (size_t i = tree.parts.size() - 1; i-- > 0;) {
            const int32_t one = build(tree.parts[i], next);
            if (one != all) all = add({.kind = Kind::kSplit, .next = one, .other = all});
        }
        return all;
    }

    int32_t repeat(const Regex& tree, int32_t next) {
        const Regex& part = tree.parts[0];
        const Content body = content(part, 0);
        const bool flat = loop_ >= 0 || body.counted;
        if (!flat && !written_out(tree, body)) return counted(tree, body, next);
        if (tree.high >= 0) {
            const int32_t exit = next;
            for (int64_t i = tree.low; i < tree.high; ++i) {
                const int32_t one = build(part, next);
                if (one == next) break;
                next = add({.kind = Kind::kSplit, .next = one, .other = exit});
            }
            return copies(part, tree.low, next);
        }
        const int32_t again = add({.kind = Kind::kSplit, .other = next});
        const int32_t first = build(part, again);
        nfa_.nodes[again].next = first;
        if (part.kind == Regex::Kind::kChars && nfa_.nodes[first].kind == Kind::kChars) {
            nfa_.nodes[first].repeats = true;
        }
        return tree.low == 0 ? again : copies(part, tree.low - 1, first);
    }

    int32_t copies(const Regex& part, int64_t count, int32_t next) {
        for (int64_t i = 0; i < count; ++i) {
            const int32_t one = build(part, next);
            if (one == next) break;
            next = one;
        }
        return next;
    }

    int32_t counted(const Regex& tree, const Content& body, int32_t next) {
        if (tree.low > kMostCount) throw Refused("the pattern repeats too often");
        const auto loop = static_cast<int32_t>(nfa_.loops.size());
        const bool endless = tree.high < 0 || tree.high > kMostCount;
        nfa_.loops.push_back({.low = body.nullable ? 0 : static_cast<int32_t>(tree.low),
                              .high = endless ? kEndless : static_cast<int32_t>(tree.high),
                              .exit = next});
        loop_ = loop;
        const int32_t check = add({.kind = Kind::kCheck, .other = loop});
        nfa_.loops[loop].body = build(tree.parts[0], check);
        loop_ = -1;
        return add({.kind = Kind::kEnter, .other = loop});
    }

    Nfa& nfa_;
    Spelled& spelled_;
    int32_t loop_ = -1;
    Index index_;
};

int32_t times(int64_t count, int32_t cost) {
    return static_cast<int32_t>(std::min<int64_t>(count * cost, kUnreachable));
}

// Finds the costs of all nodes. Nodes mostly lead to smaller ones, so that few rounds suffice.
template <typename Cost>
std::vector<int32_t> settle(const Nfa& nfa, Cost cost) {
    std::vector<int32_t> costs(nfa.nodes.size(), kUnreachable);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < costs.size(); ++i) {
            const int32_t value = std::min(cost(nfa.nodes[i], costs), kUnreachable);
            if (value >= costs[i]) continue;
            costs[i] = value;
            changed = true;
        }
    }
    return costs;
}

void find_costs(Nfa& nfa, Spelled& spelled) {
    using Node = Nfa::Node;
    using Costs = std::vector<int32_t>;
    const auto enter = [&](const Node& node, const Costs& body, const Costs& out) {
        const Nfa::Loop& loop = nfa.loops[node.other];
        const int32_t inside = loop.low == 0 ? 0 : times(loop.low, body[loop.body]);
        return add_cost(inside, out[loop.exit]);
    };
    // Where the end of the text is a match: never passing a character.
    const Costs at_end = settle(nfa, [&](const Node& node, const Costs& costs) {
        if (node.kind == Kind::kAccept) return 0;
        if (node.kind == Kind::kChars || node.kind == Kind::kStart || node.kind == Kind::kCheck) {
            return kUnreachable;
        }
        if (node.kind == Kind::kEnter) return enter(node, costs, costs);
        return node.kind == Kind::kSplit ? std::min(costs[node.next], costs[node.other])
                                         : costs[node.next];
    });
    const auto least = [&](auto character, bool conditions) {
        return settle(nfa, [&](const Node& node, const Costs& costs) -> int32_t {
            switch (node.kind) {
                case Kind::kAccept:
                case Kind::kCheck:
                    return 0;
                case Kind::kChars:
                    return add_cost(character(node), costs[node.next]);
                case Kind::kSplit:
                    return std::min(costs[node.next], costs[node.other]);
                case Kind::kStart:
                    return kUnreachable;
                case Kind::kEnd:
                    return at_end[node.next];
                case Kind::kEnter:
                    return enter(node, costs, costs);
                default:
                    return conditions ? costs[node.next] : kUnreachable;
            }
        });
    };
    const auto one = [&](const Node& node) {
        return spelled.lightest(node.set) == kUnreachable ? kUnreachable : 1;
    };
    Nfa::Costs& costs = nfa.costs;
    costs.weight = least([&](const Node& node) { return spelled.lightest(node.set); }, true);
    costs.characters = least(one, true);
    costs.free = least(one, false);
    for (Node& node : nfa.nodes) {
        node.everything = node.kind == Kind::kChars && node.repeats && node.set == kAnyCharacter &&
                          nfa.nodes[node.next].kind == Kind::kSplit && costs.free[node.next] == 0 &&
                          !nfa.conditional &&
                          nfa.nodes[nfa.nodes[node.next].other].kind == Kind::kAccept;
    }
    costs.open = settle(nfa, [&](const Node& node, const Costs& known) -> int32_t {
        if (node.everything) return 0;
        if (node.kind == Kind::kChars) return add_cost(one(node), known[node.next]);
        if (node.kind == Kind::kSplit) return std::min(known[node.next], known[node.other]);
        return node.kind == Kind::kEnter ? enter(node, costs.characters, known) : kUnreachable;
    });
    costs.closed = settle(nfa, [&](const Node& node, const Costs& known) -> int32_t {
        if (node.loop >= 0) return kUnreachable;
        const auto own = static_cast<size_t>(&node - nfa.nodes.data());
        if (node.kind == Kind::kChars) {
            const int32_t later = add_cost(one(node), known[node.next]);
            return node.repeats ? std::min(costs.characters[own], later) : later;
        }
        if (node.kind == Kind::kSplit) return std::min(known[node.next], known[node.other]);
        return node.kind == Kind::kEnter ? enter(node, costs.characters, known) : kUnreachable;
    });
}

constexpr int32_t kNotMet = -1, kMany = -2;

// How many characters lead from `start` to every place, if there is one number for all ways: within
// a loop, or past whole loops.
std::vector<int32_t> distances(const Nfa& nfa, int32_t start, int32_t loop,
                               const std::vector<int32_t>& bodies) {
    std::vector<int32_t> found(nfa.nodes.size(), kNotMet);
    std::vector<int32_t> open;
    const auto reach = [&](int32_t node, int32_t distance) {
        if (node < 0 || nfa.nodes[node].loop != loop || found[node] == distance) return;
        if (found[node] == kMany) return;
        found[node] = found[node] == kNotMet ? distance : kMany;
        open.push_back(node);
    };
    reach(start, 0);
    while (!open.empty()) {
        const Nfa::Node& node = nfa.nodes[open.back()];
        const int32_t distance = found[open.back()];
        open.pop_back();
        if (node.kind == Kind::kEnter) {
            const Nfa::Loop& inner = nfa.loops[node.other];
            const int32_t body = bodies[node.other];
            const bool fixed = distance >= 0 && body >= 0 && inner.low == inner.high &&
                               int64_t{inner.low} * body < kMostCount - distance;
            reach(inner.exit, fixed ? distance + inner.low * body : kMany);
        } else if (node.kind == Kind::kChars) {
            reach(node.next, distance >= 0 && distance < kMostCount ? distance + 1 : kMany);
        } else {
            reach(node.next, distance);
            if (node.kind == Kind::kSplit) reach(node.other, distance);
        }
    }
    return found;
}

// Where only one count can be meant at a time.
void find_single_counts(Nfa& nfa) {
    std::vector<int32_t> bodies(nfa.loops.size(), kMany);
    for (const Nfa::Node& node : nfa.nodes) {
        if (node.kind == Kind::kChars && node.loop >= 0) ++nfa.loops[node.loop].characters;
    }
    for (size_t i = 0; i < nfa.nodes.size(); ++i) {
        const Nfa::Node& node = nfa.nodes[i];
        if (node.kind != Kind::kCheck) continue;
        const int32_t loop = node.other;
        bodies[loop] = distances(nfa, nfa.loops[loop].body, loop, bodies)[i];
    }
    const std::vector<int32_t> outside = distances(nfa, nfa.start, -1, bodies);
    for (size_t i = 0; i < nfa.nodes.size(); ++i) {
        const Nfa::Node& node = nfa.nodes[i];
        if (node.kind != Kind::kEnter) continue;
        nfa.loops[node.other].single = outside[i] >= 0 && bodies[node.other] > 0;
    }
}

}  // namespace

int32_t Nfa::total(const std::vector<int32_t>& cost, int32_t node, int32_t need) const {
    if (nodes[node].loop < 0) return cost[node];
    const Loop& loop = loops[nodes[node].loop];
    const std::vector<int32_t>& inside = &cost == &costs.weight ? cost : costs.characters;
    const int32_t iterations = need == 0 ? 0 : times(need, inside[loop.body]);
    return add_cost(add_cost(inside[node], iterations), cost[loop.exit]);
}

size_t Nfa::memory() const {
    constexpr size_t kPerNode = sizeof(Node) + 6 * sizeof(int32_t);
    return sizeof(Nfa) + nodes.size() * kPerNode + loops.size() * sizeof(Loop);
}

std::vector<Ranges> borders_of(const Regex& tree) {
    std::vector<Ranges> borders;
    std::vector<const Regex*> open{&tree};
    while (!open.empty()) {
        const Regex& one = *open.back();
        open.pop_back();
        if (one.kind >= Regex::Kind::kBoundary && is_condition(one.kind) &&
            std::find(borders.begin(), borders.end(), one.chars) == borders.end()) {
            borders.push_back(one.chars);
        }
        for (const Regex& part : one.parts) open.push_back(&part);
    }
    if (borders.size() > 3) {
        throw Refused(
            "the pattern has more than three different sets of characters in lookbehind "
            "and word boundaries");
    }
    return borders;
}

Nfa build_nfa(const Regex& tree, std::vector<Ranges> borders, Spelled& spelled) {
    content(tree, 0);  // bounds the depth
    Nfa nfa;
    nfa.borders = std::move(borders);
    Builder builder(nfa, spelled);
    nfa.start = builder.build(tree, builder.accept());
    nfa.look_nfas.assign(nfa.looks.size(), -1);
    nfa.stamps.assign(nfa.nodes.size(), 0);
    find_costs(nfa, spelled);
    if (!nfa.loops.empty()) find_single_counts(nfa);
    for (size_t i = 0; i < nfa.nodes.size(); ++i) {
        const Nfa::Node& node = nfa.nodes[i];
        if (node.kind != Kind::kChars) continue;
        const int32_t need = node.loop < 0 ? 0 : nfa.loops[node.loop].low;
        const auto number = static_cast<int32_t>(i);
        const int32_t deep = nfa.total(nfa.costs.characters, number, need);
        if (deep >= kUnreachable) continue;
        nfa.deepest = std::max(nfa.deepest, deep);
        nfa.all_closed = std::max(nfa.all_closed, nfa.total(nfa.costs.closed, number, need));
    }
    return nfa;
}

namespace {

// Cuts the bytes where sets with a border before `c` may tell them apart.
void cut_bytes(uint32_t c, std::bitset<257>& cuts) {
    if (c < 0x80 || c > kLastCharacter) return;
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    for (int left = more; left >= 0; --left) {
        const uint32_t bits = c >> (6 * left);
        constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
        const uint32_t byte = left == more ? kLead[more] | bits : 0x80 | (bits & 0x3F);
        cuts.set(byte);
        if ((c & ((1u << (6 * left)) - 1)) != 0) cuts.set(byte + 1);
    }
}

}  // namespace

void mark_bytes(const Nfa& nfa, const Spelled& spelled, std::array<uint64_t, 256>& marks) {
    std::vector<int32_t> sets;
    for (const Nfa::Node& node : nfa.nodes) {
        if (node.kind == Kind::kChars && node.set != kAnyCharacter) sets.push_back(node.set);
    }
    std::sort(sets.begin(), sets.end());
    sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
    std::bitset<257> cuts;
    for (const int32_t set : sets) {
        for (const auto& [low, high] : spelled.set(set)) {
            for (uint32_t byte = low; byte < 0x80 && byte <= high; ++byte) {
                marks[byte] = mix(marks[byte], static_cast<uint64_t>(set));
            }
            cut_bytes(low, cuts);
            cut_bytes(high + 1, cuts);
        }
    }
    uint64_t segment = 0;
    for (size_t byte = 0x80; byte < 0x100; ++byte) {
        segment += cuts[byte];
        marks[byte] = segment;
    }
}

}  // namespace sglite::text
