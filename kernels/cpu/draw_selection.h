// Keeping the heaviest of some candidates in linear time. Included by draw.cpp alone.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace sglite {
namespace {

struct Candidate {
    uint32_t key;  // orders like the logit
    int32_t id;    // -1 for the end outcome, which stands last
    uint64_t weight;
};

// Unsigned integers in the order of the floats; +0 and -0 are equal.
uint32_t order_key(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x + 0.0f);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// The first point, in descending order of keys and ascending order of positions, at which `count`
// candidates or `weight` units are reached; keeps the candidates up to there, in their order. The
// caller guarantees that one of both can be reached. Radix selection: linear, without a sort.
class Selection {
  public:
    void keep_first(std::vector<Candidate>& all, uint64_t count, uint64_t weight) {
        active_.assign(all.begin(), all.end());
        uint64_t count_above = 0, weight_above = 0;
        for (;;) {
            uint32_t low = ~uint32_t{0}, high = 0;
            for (const Candidate& a : active_) {
                low = std::min(low, a.key);
                high = std::max(high, a.key);
            }
            const int shift = std::max(0, static_cast<int>(std::bit_width(high - low)) - kDigit);
            std::fill(std::begin(buckets_), std::end(buckets_), Bucket{});
            for (const Candidate& a : active_) {
                Bucket& bucket = buckets_[(high - a.key) >> shift];
                ++bucket.count;
                bucket.weight += a.weight;
            }
            const uint32_t last = (high - low) >> shift;
            uint32_t b = 0;
            while (b < last && count_above + buckets_[b].count < count &&
                   weight_above + buckets_[b].weight < weight) {
                count_above += buckets_[b].count;
                weight_above += buckets_[b].weight;
                ++b;
            }
            if (shift == 0) {
                // One key is left, so that its candidates weigh the same.
                const uint64_t each = buckets_[b].weight / std::max<uint64_t>(1, buckets_[b].count);
                uint64_t ties = std::min(buckets_[b].count, count - count_above);
                const uint64_t missing = weight - weight_above;
                if (each > 0) ties = std::min(ties, missing / each + (missing % each != 0));
                cut(all, high - b, ties);
                return;
            }
            std::erase_if(active_,
                          [&](const Candidate& a) { return (high - a.key) >> shift != b; });
        }
    }

  private:
    static constexpr int kDigit = 10;
    struct Bucket {
        uint64_t count = 0;
        uint64_t weight = 0;
    };

    static void cut(std::vector<Candidate>& all, uint32_t key, uint64_t ties) {
        std::erase_if(all, [&](const Candidate& a) {
            if (a.key != key) return a.key < key;
            if (ties == 0) return true;
            --ties;
            return false;
        });
    }

    std::vector<Candidate> active_;
    Bucket buckets_[1 << kDigit];
};

}  // namespace
}  // namespace sglite
