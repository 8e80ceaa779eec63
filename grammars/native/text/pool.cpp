#include "pool.h"

#include <algorithm>

namespace sglite::text {
namespace {

// Entries of rows: a state, kDeadText, not known, or `kUnsettled - state`: dead or alive.
constexpr int32_t kUnknown = -2;
constexpr int32_t kUnsettled = -3;
constexpr size_t kRowsAtOnce = 1 << 13;

Languages::Options with_weights(Languages::Options options) {
    for (uint8_t& weight : options.weight) weight = std::max<uint8_t>(weight, 1);
    return options;
}

}  // namespace

Pool::Pool(const Languages::Options& options)
    : options_(with_weights(options)),
      spelled_(options_.barred, options_.weight),
      tables_(options_.barred, options_.weight),
      plain_classes_(tables_.classes({})) {
    states_.reserve(256);
    const int32_t all[] = {0, kEndless, kAnyCharacter};
    intern(Kind::kLength, all, true, true, plain_classes_);
}

TextState Pool::intern(Kind kind, std::span<const int32_t> parts, bool accepting, bool live,
                       int32_t classes) {
    uint64_t hash = static_cast<uint64_t>(kind) + 1;
    for (const int32_t part : parts) hash = mix(hash, static_cast<uint32_t>(part));
    const int32_t known = index_.find(hash, [&](int32_t state) {
        const State& s = states_[state];
        return s.kind == kind && s.size == parts.size() &&
               std::equal(parts.begin(), parts.end(), parts_.begin() + s.first);
    });
    if (known >= 0) return states_[known].live < 0 ? kDeadText : known;
    const auto number = static_cast<TextState>(states_.size());
    const auto first = static_cast<uint32_t>(parts_.size());
    parts_.insert(parts_.end(), parts.begin(), parts.end());
    State state{.kind = kind,
                .accepting = accepting,
                .live = static_cast<int8_t>(live || accepting),
                .classes = classes,
                .first = first,
                .size = static_cast<uint32_t>(parts.size()),
                .of = tables_[classes].of.data()};
    if (accepting) state.least[kWeight] = state.least[kCharacters] = 0;
    if (kind == Kind::kTree) state.conditional = nfas_[parts[0]]->conditional;
    const size_t inside = kind == Kind::kBoth || kind == Kind::kEither   ? parts.size()
                          : kind == Kind::kNot || kind == Kind::kBounded ? 1
                                                                         : 0;
    for (size_t i = 0; i < inside; ++i) state.conditional |= states_[parts[i]].conditional;
    // Its negation falls apart into those of its parts, and they may be dead.
    if (kind == Kind::kNot) state.conditional |= states_[parts[0]].explored;
    states_.push_back(state);
    index_.add(hash, number);
    return number;
}

int32_t* Pool::row(TextState state) {
    State& s = states_[state];
    if (s.row != nullptr) return s.row;
    const auto size = static_cast<size_t>(tables_[s.classes].count);
    if (row_left_ < size) {
        const size_t more = std::clamp<size_t>(row_memory_ / 4, 1 << 9, kRowsAtOnce);
        rows_.push_back(std::make_unique_for_overwrite<int32_t[]>(more));
        row_at_ = rows_.back().get();
        row_left_ = more;
        row_memory_ += more;
    }
    s.row = row_at_;
    row_at_ += size;
    row_left_ -= size;
    std::fill_n(s.row, size, kUnknown);
    s.row[0] = kDeadText;
    return s.row;
}

// Where a class of bytes leads, dead or alive.
TextState Pool::raw(TextState state, int byte_class) {
    int32_t* const entry = row(state) + byte_class;
    if (*entry >= kDeadText) return *entry;
    TextState to;
    if (*entry == kUnknown) {
        to = step(state, tables_[states_[state].classes].lightest[byte_class]);
    } else {
        to = kUnsettled - *entry;
    }
    if (to >= 0 && states_[to].live < 0) to = kDeadText;
    *entry = to < 0 || states_[to].live > 0 ? to : kUnsettled - to;
    return to;
}

TextState Pool::edge(TextState state, int byte_class) {
    const TextState to = raw(state, byte_class);
    if (to < 0) return kDeadText;
    const bool is_live = live(to);
    return row(state)[byte_class] = is_live ? to : kDeadText;
}

// The next state of a part of a state. To settle those of conditional ones here could ask for the
// very state that is being made.
TextState Pool::member(TextState state, uint8_t byte) {
    return states_[state].conditional ? raw(state, states_[state].of[byte]) : next(state, byte);
}

TextState Pool::next(TextState state, uint8_t byte) {
    if (state < 0) return kDeadText;
    const State& s = states_[state];
    const int byte_class = s.of[byte];
    if (s.row != nullptr && s.row[byte_class] >= kDeadText) return s.row[byte_class];
    return edge(state, byte_class);
}

void Pool::spend(int64_t work) {
    work_left_ -= work;
    if (limited_ && work_left_ < 0) {
        throw Refused("the patterns and lengths of a schema take too long to compile together");
    }
}

TextState Pool::step(TextState state, uint8_t byte) {
    spend(1 + states_[state].size);
    switch (states_[state].kind) {
        case Kind::kLength:
            return step_length(state, byte);
        case Kind::kWords:
            return step_words(state, byte);
        case Kind::kTree:
            return step_tree(state, byte);
        case Kind::kTable:
            return step_table(state, byte);
        case Kind::kQuote:
            return step_quote(state, byte);
        default:
            return step_logic(state, byte);
    }
}

bool Pool::live(TextState state) {
    if (state < 0) return false;
    if (states_[state].live == 0) {
        if (by_lengths(state)) {
            const bool is_live = bounded_is_live(state);
            states_[state].live = is_live ? 1 : -1;
        } else {
            search(state, kWeight);
        }
    }
    return states_[state].live > 0;
}

int32_t Pool::least(TextState state, Measure measure) {
    const int32_t known = known_least(state, measure);
    if (known >= 0) return known;
    search(state, measure);
    return states_[state].least[measure];
}

std::pair<uint8_t, TextState> Pool::lightest(TextState state) {
    const int32_t all = least(state, kWeight);
    std::array<TextState, 256> to;  // per class
    to.fill(kDeadText);
    std::array<bool, 256> seen{};
    for (int byte = 0; byte < 256; ++byte) {
        const uint8_t c = states_[state].of[byte];
        if (!seen[c]) {
            seen[c] = true;
            to[c] = next(state, static_cast<uint8_t>(byte));
        }
        if (to[c] < 0 || options_.weight[byte] > all) continue;
        if (least(to[c], kWeight) == all - options_.weight[byte]) {
            return {static_cast<uint8_t>(byte), to[c]};
        }
    }
    return {0, kDeadText};
}

bool Pool::can_go_on(TextState state) {
    if (states_[state].onward == 0) {
        bool onward = false;
        for (int c = 1; c < classes(state).count && !onward; ++c) onward = edge(state, c) >= 0;
        states_[state].onward = onward ? 1 : -1;
    }
    return states_[state].onward > 0;
}

size_t Pool::memory() const {
    return states_.capacity() * sizeof(State) + parts_.capacity() * sizeof(int32_t) +
           index_.memory() + row_memory_ * sizeof(int32_t) + spelled_.memory() + tables_.memory() +
           source_memory_ + lengths_.memory();
}

}  // namespace sglite::text
