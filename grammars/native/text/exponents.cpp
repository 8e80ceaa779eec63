#include "exponents.h"

#include <algorithm>

namespace sglite::text {
namespace {

enum Part : int64_t { kLetter, kSign, kDigits, kShape };

}  // namespace

uint64_t Exponents::Key::hash() const {
    uint64_t hash = 0;
    for (const int64_t number : {part, low, high, value}) {
        hash = mix(hash, static_cast<uint64_t>(number));
    }
    return hash;
}

int32_t Exponents::find(const Key& key) const {
    const int32_t found = index_.find(
        key.hash(), [&](int32_t i) { return known_[static_cast<size_t>(i)].first == key; });
    return found < 0 ? -1 : known_[static_cast<size_t>(found)].second;
}

int32_t Exponents::add(const Key& key, bool accepting) {
    const auto state = static_cast<int32_t>(dfa_.edges.size());
    dfa_.edges.emplace_back();
    dfa_.accepting.push_back(accepting);
    index_.add(key.hash(), static_cast<int32_t>(known_.size()));
    known_.emplace_back(key, state);
    return state;
}

int32_t Exponents::behind_letter(int64_t low, int64_t high) {
    if (low > high) return -1;
    const Key key{kLetter, low, high, 0};
    if (const int32_t known = find(key); known >= 0) return known;
    const int32_t positive = first_digit(low, high), negative = first_digit(-high, -low);
    const int32_t state = add(key, false);
    auto& edges = dfa_.edges[static_cast<size_t>(state)];
    if (positive >= 0) {
        edges = dfa_.edges[static_cast<size_t>(positive)];
        edges.push_back({'+', '+', positive});
    }
    if (negative >= 0) edges.push_back({'-', '-', negative});
    return state;
}

int32_t Exponents::first_digit(int64_t low, int64_t high) {
    low = std::max<int64_t>(low, 0);
    if (low > high) return -1;
    const Key key{kSign, low, high, 0};
    if (const int32_t known = find(key); known >= 0) return known;
    const int32_t state = add(key, false);
    add_digits(state, low, high, 0);
    return state;
}

int32_t Exponents::behind_digits(int64_t low, int64_t high, int64_t value) {
    if (value > high) return -1;
    if (value == 0 && low > 0) return first_digit(low, high);
    Key key{kDigits, low, high, value};
    if (value > 0) {
        // Which numbers of further digits lie inside as a whole; if none lies across a bound,
        // nothing else matters.
        int64_t inside = 0, first = value, last = value;
        bool across = false, endless = false;
        for (int count = 0; first <= high && !across && !endless; ++count) {
            const bool all = first >= low && last <= high, none = last < low;
            across = !all && !none;
            endless = all && high == kEndless;
            if (all) inside |= int64_t{1} << count;
            first *= 10;
            last = last * 10 + 9;
        }
        if (!across) key = {kShape, inside, endless, 0};
    }
    if (const int32_t known = find(key); known >= 0) return known;
    const int32_t state = add(key, low <= value && value <= high);
    add_digits(state, low, high, value);
    return state;
}

void Exponents::add_digits(int32_t state, int64_t low, int64_t high, int64_t value) {
    for (int digit = 0; digit < 10; ++digit) {
        const int32_t to = behind_digits(low, high, std::min(value * 10 + digit, kEndless / 16));
        if (to < 0) continue;
        auto& edges = dfa_.edges[static_cast<size_t>(state)];
        const auto byte = static_cast<uint8_t>('0' + digit);
        if (!edges.empty() && edges.back().to == to && edges.back().high + 1 == byte) {
            edges.back().high = byte;
        } else {
            edges.push_back({byte, byte, to});
        }
    }
}

}  // namespace sglite::text
