#include "numbers.h"

#include <algorithm>

#include "divisors.h"
#include "exponents.h"
#include "index.h"
#include "number_reader.h"

namespace sglite::text {
namespace {

constexpr size_t kMostStates = 20'000;

class Builder {
  public:
    Builder(const NumberSpec& spec, bool any) : reader_(spec, any), exponents_(dfa_) {}

    Dfa build() {
        state_of(reader_.start());
        // States of exponents lie between those of digits, and have their edges already.
        for (size_t i = 0; i < open_.size(); ++i) {
            const auto [state, number] = open_[i];
            add_edges(state, static_cast<size_t>(number));
        }
        return std::move(dfa_);
    }

  private:
    using State = NumberReader::State;

    int32_t state_of(const State& state) {
        const uint64_t hash = state.hash();
        const int32_t known = known_.find(
            hash, [&](int32_t i) { return open_[static_cast<size_t>(i)].first == state; });
        if (known >= 0) return open_[static_cast<size_t>(known)].second;
        if (dfa_.edges.size() >= kMostStates) {
            throw Refused(
                "'multipleOf' and the bounds of a number need more than 20000 states; "
                "use rounder numbers");
        }
        const auto number = static_cast<int32_t>(dfa_.edges.size());
        known_.add(hash, static_cast<int32_t>(open_.size()));
        dfa_.edges.emplace_back();
        dfa_.accepting.push_back(reader_.accepts(state));
        open_.emplace_back(state, number);
        return number;
    }

    void add_edges(const State& state, size_t number) {
        std::vector<Dfa::Edge> edges;
        edges.reserve(6);
        const auto add = [&](int low, int high, int32_t to) {
            edges.push_back({static_cast<uint8_t>(low), static_cast<uint8_t>(high), to});
        };
        State next = state;
        if (reader_.sign(next)) add('-', '-', state_of(next));
        next = state;
        if (reader_.point(next)) add('.', '.', state_of(next));
        const auto first = reader_.classes(state);
        for (int digit = 0; digit < 10;) {
            int end = digit + 1;
            while (end < 10 && !first[static_cast<size_t>(end)]) ++end;
            next = state;
            if (reader_.digit(next, digit)) {
                const int32_t to = state_of(next);
                const bool joined =
                    !edges.empty() && edges.back().to == to && edges.back().high == '0' + digit - 1;
                if (joined) {
                    edges.back().high = static_cast<uint8_t>('0' + end - 1);
                } else {
                    add('0' + digit, '0' + end - 1, to);
                }
            }
            digit = end;
        }
        const auto [low, high] = reader_.exponents(state);
        if (const int32_t to = exponents_.behind_letter(low, high); to >= 0) {
            add('E', 'E', to);
            add('e', 'e', to);
        }
        dfa_.edges[number] = std::move(edges);
    }

    NumberReader reader_;
    Dfa dfa_;
    Exponents exponents_;
    Index known_;
    std::vector<std::pair<State, int32_t>> open_;
};

// Takes the edges away that lead to no match. False if there is no match at all.
bool trim(Dfa& dfa) {
    std::vector<bool> alive = dfa.accepting;
    const auto lives = [&](const Dfa::Edge& edge) { return alive[static_cast<size_t>(edge.to)]; };
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = dfa.edges.size(); i-- > 0;) {
            if (alive[i] || std::none_of(dfa.edges[i].begin(), dfa.edges[i].end(), lives)) continue;
            alive[i] = changed = true;
        }
    }
    for (auto& edges : dfa.edges) {
        std::erase_if(edges, [&](const Dfa::Edge& edge) { return !lives(edge); });
    }
    return alive[0];
}

bool is_above(const Bound& low, const Bound& high) {
    const int compared = compare(low.value, high.value);
    return compared > 0 || (compared == 0 && (low.excluded || high.excluded));
}

}  // namespace

std::optional<Dfa> number_automaton(const NumberSpec& spec, bool any) {
    if (spec.low && spec.high && is_above(*spec.low, *spec.high)) return std::nullopt;
    Dfa dfa = Builder(spec, any).build();
    if (!trim(dfa)) return std::nullopt;
    return dfa;
}

LangId numbers(Languages& languages, const NumberSpec& spec, bool any) {
    std::optional<Dfa> dfa = number_automaton(spec, any);
    return dfa ? languages.automaton(std::move(*dfa)) : kNoText;
}

}  // namespace sglite::text
