#include "text_machine.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "quoted_tokens.h"
#include "walk.h"
#include "writable.h"

namespace sglite {
namespace {

using text::Languages;
using text::TextState;

constexpr int32_t kUnknown = -1;
// Further from a match than this, bytes are counted instead of tokens.
constexpr int32_t kFar = 4096;

Languages::Options options_for(const Vocabulary& vocabulary, bool barred) {
    Languages::Options options;
    options.longest_token = static_cast<int32_t>(vocabulary.longest());
    if (barred) options.barred = barred_bytes(vocabulary);
    return options;
}

// A position is a state of the language and the bytes that its last character still lacks.
class TextMachine final : public Machine {
  public:
    TextMachine(const MakeLanguage& make, const Vocabulary& vocabulary)
        : vocabulary_(vocabulary),
          languages_(options_for(vocabulary, true)),
          language_(make(languages_)),
          start_(languages_.start(language_)) {
        if (start_ == text::kDeadText) return;
        languages_.settle(language_);
        languages_.lift_limits();
        const int32_t characters = languages_.deepest(start_);
        farthest_ = characters > kFar ? kUnreachable : 4 * characters;  // bytes, and so tokens
    }

    Languages& languages() { return languages_; }
    text::LangId language() const { return language_; }

    Position start() override { return {{start_, 0}}; }

    bool step(Position& at, uint8_t byte) override {
        at.at[0] = languages_.next(at.at[0], byte);
        at.at[1] = byte < 0x80   ? 0
                   : byte < 0xC0 ? at.at[1] - 1
                                 : 1 + (byte >= 0xE0) + (byte >= 0xF0);
        return at.at[0] != text::kDeadText;
    }

    bool complete(const Position& at) override { return languages_.accepts(at.at[0]); }
    bool can_go_on(const Position& at) override { return languages_.can_go_on(at.at[0]); }
    int32_t cost(const Position& at) override { return cost_of(at.at[0]); }
    int32_t farthest() override { return farthest_; }
    Position near(const Position& at) override {
        return {{languages_.clipped(at.at[0]), at.at[1]}};
    }
    Position alike(const Position& at) override { return near(at); }
    void find_mask(const Position& at, Mask& mask) override;
    size_t memory() const override {
        return languages_.memory() + costs_.capacity() * 4 + lightest_.capacity() * 2;
    }

  private:
    int32_t cost_of(TextState state);
    uint8_t lightest(TextState state);

    const Vocabulary& vocabulary_;
    Languages languages_;
    text::LangId language_;
    TextState start_;
    std::vector<int32_t> costs_;     // per state; kUnknown
    std::vector<int16_t> lightest_;  // per state the first byte of a lightest rest; kUnknown
    int32_t farthest_ = kUnreachable;
};

void TextMachine::find_mask(const Position& at, Mask& mask) {
    const auto [state, within] = std::pair(at.at[0], at.at[1]);
    mask.highest = kUnreachable;  // not known: that takes longer than the mask
    if (const std::optional<text::Quoted> quoted = languages_.quoted(state)) {
        return set_quoted(vocabulary_.trie(), *quoted, {}, mask.bits.data());
    }
    const Slice& slice = vocabulary_.text_slice();
    const text::Reach reach = within == 0 ? languages_.reach(state) : text::Reach{};
    if (within == 0 && (reach.free >= slice.most || reach.hard)) {
        std::ranges::copy(slice.at_most(reach.free), mask.bits.begin());
    } else {
        const Trie& trie = vocabulary_.trie();
        walk(
            trie, 0, state,
            [&](TextState& to, uint8_t byte) {
                to = languages_.next(to, byte);
                return to >= 0;
            },
            [&](uint32_t node, TextState) {
                set_bits(trie, node, mask.bits.data());
                return true;
            });
    }
}

uint8_t TextMachine::lightest(TextState state) {
    if (lightest_.size() <= static_cast<size_t>(state)) lightest_.resize(state + 1, kUnknown);
    if (lightest_[state] != kUnknown) return static_cast<uint8_t>(lightest_[state]);
    const int32_t distance = languages_.distance(state);
    for (int i = 0; i < 256; ++i) {
        const auto byte = static_cast<uint8_t>(i + 0x61);  // letters first
        const TextState to = languages_.next(state, byte);
        if (to == text::kDeadText || languages_.distance(to) != distance - 1) continue;
        lightest_[state] = byte;
        return byte;
    }
    throw std::logic_error("no byte leads nearer to a match");
}

// The fewest tokens that spell one lightest rest. Every state goes on along the same rest as the
// state before it, so that a first token of the fewest lowers the cost by one.
int32_t TextMachine::cost_of(TextState state) {
    const int32_t distance = languages_.distance(state);
    if (distance == 0 || distance > kFar) return distance;
    const auto known = [&](TextState at) {
        return static_cast<size_t>(at) < costs_.size() ? costs_[at] : kUnknown;
    };
    if (known(state) != kUnknown) return known(state);
    std::vector<TextState> states{state};
    std::string rest;
    size_t known_from = SIZE_MAX;  // index of the first state with a known cost
    while (!languages_.accepts(states.back())) {
        if (known_from == SIZE_MAX && known(states.back()) != kUnknown) {
            known_from = states.size() - 1;
        }
        if (known_from != SIZE_MAX && states.size() > known_from + vocabulary_.longest()) break;
        const uint8_t byte = lightest(states.back());
        rest.push_back(static_cast<char>(byte));
        states.push_back(languages_.next(states.back(), byte));
    }
    const Trie& trie = vocabulary_.trie();
    std::vector<int32_t> costs(states.size(), 0);
    for (size_t i = states.size(); i-- > 0;) {
        if (languages_.accepts(states[i])) continue;
        costs[i] = known(states[i]);
        if (costs[i] != kUnknown) continue;
        costs[i] = kUnreachable;
        uint32_t node = 0;
        for (size_t end = i; end < rest.size();) {
            node = trie.child(node, static_cast<uint8_t>(rest[end++]));
            if (node == 0) break;
            if (trie.nodes()[node].strings == 0) continue;
            costs[i] = std::min(costs[i], add_cost(1, costs[end]));
        }
        if (costs_.size() <= static_cast<size_t>(states[i])) {
            costs_.resize(states[i] + 1, kUnknown);
        }
        costs_[states[i]] = costs[i];
    }
    return costs[0];
}

// A byte that texts need and no token holds, or -1.
int lacking_byte(const MakeLanguage& make, const Vocabulary& vocabulary) {
    Languages languages(options_for(vocabulary, false));
    const std::bitset<256> used = languages.bytes(make(languages));
    const std::bitset<256> lacking = used & barred_bytes(vocabulary);
    for (int value = 0; value < 256; ++value) {
        if (lacking[value]) return value;
    }
    return -1;
}

// Mostly all bytes are there, and none of the language need be looked at.
void check_bytes(TextMachine& machine, const Vocabulary& vocabulary) {
    bool complete = true;
    const std::bitset<256> barred = barred_bytes(vocabulary);
    for (int value = 0; value < 256; ++value) {
        complete &= barred[value] || vocabulary.has_single_byte(static_cast<uint8_t>(value));
    }
    if (!complete) check_single_bytes(vocabulary, machine.languages().bytes(machine.language()));
}

}  // namespace

MakeMachine text_machines(MakeLanguage make, const Vocabulary& vocabulary) {
    std::optional<MakeMachine> machines = text_machines_of_any(make, vocabulary);
    if (!machines) refuse_empty(lacking_byte(make, vocabulary));
    return std::move(*machines);
}

std::optional<MakeMachine> text_machines_of_any(MakeLanguage make, const Vocabulary& vocabulary) {
    // The machine that is checked is also the first that is used.
    auto first = std::make_shared<std::unique_ptr<TextMachine>>(
        std::make_unique<TextMachine>(make, vocabulary));
    TextMachine& machine = **first;
    if (machine.languages().empty(machine.language())) return std::nullopt;
    check_bytes(machine, vocabulary);
    return [first, make = std::move(make), &vocabulary]() -> std::unique_ptr<Machine> {
        if (*first != nullptr) return std::move(*first);
        return std::make_unique<TextMachine>(make, vocabulary);
    };
}

}  // namespace sglite
