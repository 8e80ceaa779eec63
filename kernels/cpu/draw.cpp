// One pass of arithmetic per row, no sort, and sums that do not depend on their order.
//
// Weights exp((logit - top) * scale) are rounded to whole units of 2^-42 and added as integers:
// integer sums have the same bits in any order, so that SIMD lanes, skipped words of the mask and
// gathered columns cannot change a token. A vocabulary of 2^21 still fits into 64 bits.
//
// A row is cut into blocks of 256 columns. A block whose mask is sparse is loaded as the list of
// its set bits, a dense one as 256 columns with -inf where the mask forbids: both give the same
// units. The end outcome is a second set of columns that goes through the same code.

#include "draw.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define SGLITE_X86 1
#define SGLITE_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#define SGLITE_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,popcnt,lzcnt")))
#endif
#if defined(__GNUC__) || defined(__clang__)
#define SGLITE_INLINE inline __attribute__((always_inline))
#else
#define SGLITE_INLINE inline
#endif

namespace sglite {
namespace {

// Vectors of the language extension that GCC and Clang share, as wide as the target's registers.
template <int kBytes>
struct Vectors {
    typedef float Floats __attribute__((vector_size(kBytes)));
    typedef int32_t Ints __attribute__((vector_size(kBytes)));
    typedef float HalfFloats __attribute__((vector_size(kBytes / 2)));
    typedef double Doubles __attribute__((vector_size(kBytes)));
    typedef int64_t Longs __attribute__((vector_size(kBytes)));
    static constexpr int kFloats = kBytes / 4;
    static constexpr int kDoubles = kBytes / 8;
};

constexpr int kBlock = 256;
constexpr int kPad = 16;  // columns of a loaded block come in multiples of this
constexpr int kWords = kBlock / 32;
constexpr int kSparse = 48;  // set bits up to which walking them beats loading the whole block
constexpr double kUnits = 0x1p42;
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Block {
    int64_t start;    // first column
    float max;        // of its logits; -inf when all of them are
    uint64_t weight;  // sum of its weights, in units
};

// A set of columns of one row: the ids that may be drawn, or those that make up the end outcome.
struct Columns {
    const float* logits = nullptr;
    int64_t vocab = 0;
    std::vector<uint32_t> words;  // bit set = member; padded with zeros to whole blocks
    std::vector<Block> blocks;    // those with a member, ascending
    float max = -kInf;
    uint64_t weight = 0;
    bool bad = false;  // a member is NaN or +inf
};

struct Loaded {
    alignas(64) float x[kBlock];
    alignas(64) uint8_t column[kBlock];  // relative to the block's start
    int count;                           // a multiple of kPad; padding is -inf
};

template <class T, int kCount>
constexpr auto table(T (*at)(int)) {
    std::array<T, kCount> values{};
    for (int i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = at(i);
    return values;
}
constexpr auto kIdentity = table<uint8_t, kBlock>([](int i) { return static_cast<uint8_t>(i); });
constexpr auto kBits = table<int32_t, 32>([](int i) { return static_cast<int32_t>(1u << i); });

template <int kBytes>
SGLITE_INLINE void load(const Columns& c, int64_t start, Loaded& out) {
    using V = Vectors<kBytes>;
    const uint32_t* words = c.words.data() + start / 32;
    const float* z = c.logits + start;
    int members = 0;
    for (int w = 0; w < kWords; ++w) members += std::popcount(words[w]);
    if (members <= kSparse || start + kBlock > c.vocab) {
        int n = 0;
        for (int w = 0; w < kWords; ++w)
            for (uint32_t bits = words[w]; bits != 0; bits &= bits - 1) {
                const int column = 32 * w + std::countr_zero(bits);
                out.x[n] = z[column];
                out.column[n++] = static_cast<uint8_t>(column);
            }
        for (; n % kPad != 0; ++n) {
            out.x[n] = -kInf;
            out.column[n] = 0;
        }
        out.count = n;
        return;
    }
    for (int w = 0; w < kWords; ++w) {
        const uint32_t word = words[w];
        for (int i = 0; i < 32; i += V::kFloats) {
            typename V::Ints bits;
            std::memcpy(&bits, kBits.data() + i, sizeof bits);
            typename V::Floats x;
            std::memcpy(&x, z + 32 * w + i, sizeof x);
            x = (bits & static_cast<int32_t>(word)) != 0 ? x : typename V::Floats{} - kInf;
            std::memcpy(out.x + 32 * w + i, &x, sizeof x);
        }
    }
    std::memcpy(out.column, kIdentity.data(), kBlock);
    out.count = kBlock;
}

// exp((x - top) * scale) in units, for one vector of values that are not above top. Relative error
// 1e-7; exp(0) is exactly one.
template <int kBytes>
SGLITE_INLINE void units(const float* x, float top, float scale, int64_t* out) {
    using V = Vectors<kBytes>;
    using Floats = typename V::Floats;
    constexpr float kRound = 0x1.8p23f;
    constexpr double kToInteger = 0x1.8p52;
    Floats y;
    std::memcpy(&y, x, sizeof y);
    y = (y - top) * scale;
    y = y > -87.0f ? y : Floats{} - 87.0f;
    const Floats k = (y * 1.44269504f + kRound) - kRound;
    // ln 2 in two parts, the first short enough for an exact product with k.
    const Floats r = (y - k * 0.693359375f) + k * 2.12194440e-4f;
    // The Taylor polynomial to the seventh power, even and odd terms apart for a shorter chain.
    const Floats r2 = r * r;
    const Floats even = (r2 * (1.0f / 720) + 1.0f / 24) * r2 + 0.5f;
    const Floats odd = (r2 * (1.0f / 5040) + 1.0f / 120) * r2 + 1.0f / 6;
    Floats p = (odd * r + even) * r2 + r + 1.0f;
    const typename V::Ints power = (__builtin_convertvector(k, typename V::Ints) + 127) << 23;
    p = p * reinterpret_cast<const Floats&>(power);
    for (int i = 0; i < V::kFloats; i += V::kDoubles) {
        typename V::HalfFloats half;
        std::memcpy(&half, reinterpret_cast<const float*>(&p) + i, sizeof half);
        const typename V::Doubles shifted =
            __builtin_convertvector(half, typename V::Doubles) * kUnits + kToInteger;
        const typename V::Longs rounded = reinterpret_cast<const typename V::Longs&>(shifted) -
                                          std::bit_cast<int64_t>(kToInteger);
        std::memcpy(out + i, &rounded, sizeof rounded);
    }
}

template <int kBytes>
SGLITE_INLINE float largest(const Loaded& b, bool& bad) {
    using V = Vectors<kBytes>;
    typename V::Floats top = typename V::Floats{} - kInf;
    typename V::Ints right = typename V::Ints{} - 1;
    for (int i = 0; i < b.count; i += V::kFloats) {
        typename V::Floats x;
        std::memcpy(&x, b.x + i, sizeof x);
        top = x > top ? x : top;
        right &= x < kInf;
    }
    float max = -kInf;
    for (int l = 0; l < V::kFloats; ++l) {
        max = top[l] > max ? top[l] : max;
        bad = bad || right[l] == 0;
    }
    return max;
}

// Finds the maxima.
template <int kBytes>
SGLITE_INLINE void scan_all(Columns& c) {
    Loaded loaded;
    for (Block& block : c.blocks) {
        load<kBytes>(c, block.start, loaded);
        block.max = largest<kBytes>(loaded, c.bad);
        c.max = block.max > c.max ? block.max : c.max;
    }
}

template <int kBytes>
SGLITE_INLINE void weigh_block(const Columns& c, const Block& block, float top, float scale,
                               Loaded& loaded, int64_t* weights) {
    load<kBytes>(c, block.start, loaded);
    for (int i = 0; i < loaded.count; i += Vectors<kBytes>::kFloats)
        units<kBytes>(loaded.x + i, top, scale, weights + i);
}

// Number and weight of the members at or above each of some floors, which fall.
struct Tally {
    static constexpr int kFloors = 6;
    float floor[kFloors];
    uint64_t count[kFloors];
    uint64_t weight[kFloors];
};

template <int kBytes>
SGLITE_INLINE void tally_block(const Loaded& loaded, const int64_t* weights, float floor,
                               uint64_t& count, uint64_t& weight) {
    using V = Vectors<kBytes>;
    typename V::Longs number = {}, sum = {};
    for (int i = 0; i < loaded.count; i += V::kDoubles) {
        typename V::HalfFloats x;
        std::memcpy(&x, loaded.x + i, sizeof x);
        typename V::Longs w;
        std::memcpy(&w, weights + i, sizeof w);
        const typename V::Longs in = __builtin_convertvector(x >= floor, typename V::Longs);
        number -= in;
        sum += w & in;
    }
    for (int l = 0; l < V::kDoubles; ++l) {
        count += static_cast<uint64_t>(number[l]);
        weight += static_cast<uint64_t>(sum[l]);
    }
}

// Weighs every block, and tallies what lies above the floors unless `tally` is null.
template <int kBytes>
SGLITE_INLINE void weigh_all(Columns& c, float top, float scale, Tally* tally) {
    using V = Vectors<kBytes>;
    Loaded loaded;
    alignas(64) int64_t weights[kBlock];
    c.weight = 0;
    for (Block& block : c.blocks) {
        weigh_block<kBytes>(c, block, top, scale, loaded, weights);
        typename V::Longs sum = {};
        for (int i = 0; i < loaded.count; i += V::kDoubles) {
            typename V::Longs w;
            std::memcpy(&w, weights + i, sizeof w);
            sum += w;
        }
        block.weight = 0;
        for (int l = 0; l < V::kDoubles; ++l) block.weight += static_cast<uint64_t>(sum[l]);
        c.weight += block.weight;
        if (tally == nullptr) continue;
        for (int f = 0; f < Tally::kFloors; ++f)
            if (block.max >= tally->floor[f])
                tally_block<kBytes>(loaded, weights, tally->floor[f], tally->count[f],
                                    tally->weight[f]);
    }
}

// The passes for one instruction set. Contraction of products and sums is off for this file, so
// that all of them round alike.
struct Passes {
    void (*scan)(Columns&);
    void (*weigh)(Columns&, float, float, Tally*);
    void (*weigh_block)(const Columns&, const Block&, float, float, Loaded&, int64_t*);
};

#define SGLITE_PASSES(SET, BYTES, TARGET)                                                       \
    TARGET void scan_##SET(Columns& c) { scan_all<BYTES>(c); }                                  \
    TARGET void weigh_##SET(Columns& c, float top, float scale, Tally* tally) {                 \
        weigh_all<BYTES>(c, top, scale, tally);                                                 \
    }                                                                                           \
    TARGET void weigh_block_##SET(const Columns& c, const Block& block, float top, float scale, \
                                  Loaded& loaded, int64_t* weights) {                           \
        weigh_block<BYTES>(c, block, top, scale, loaded, weights);                              \
    }                                                                                           \
    constexpr Passes kPasses_##SET{scan_##SET, weigh_##SET, weigh_block_##SET};

SGLITE_PASSES(portable, 16, )
#if SGLITE_X86
SGLITE_PASSES(avx2, 32, SGLITE_AVX2)
SGLITE_PASSES(avx512, 64, SGLITE_AVX512)
#endif

bool supported(VectorSet set) {
    switch (set) {
        case VectorSet::portable:
            return true;
#if SGLITE_X86
        case VectorSet::avx2:
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
                   __builtin_cpu_supports("popcnt");
        case VectorSet::avx512:
            return supported(VectorSet::avx2) && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
#endif
        default:
            return false;
    }
}

const Passes& passes_for(VectorSet set) {
#if SGLITE_X86
    if (set == VectorSet::avx512) return kPasses_avx512;
    if (set == VectorSet::avx2) return kPasses_avx2;
#endif
    return kPasses_portable;
}

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

// Depths below the top, in units of the temperature, at which a row is tallied.
constexpr float kDepths[Tally::kFloors] = {1.5f, 3, 5, 7.5f, 10, 14};

struct Filters {
    uint64_t top_k;  // 0 = off
    double top_p;
    double min_p;
    bool on() const { return top_k > 0 || top_p < 1 || min_p > 0; }
};

// Draws rows one after the other; holds the scratch that they share.
class Drawer {
  public:
    Drawer(const DrawBatch& batch, VectorSet set) : batch_(batch), passes_(passes_for(set)) {}

    const char* draw(int64_t row, int32_t& id, float& logprob) {
        if (const char* error = open(row)) return error;
        const float temperature = batch_.temperature[row];
        const bool has_ids = ids_.max > -kInf;
        if (has_ids) passes_.weigh(ids_, ids_.max, 1.0f, nullptr);
        const float top = std::max(ids_.max, end_logit_);
        double total = std::exp(static_cast<double>(end_logit_) - top);
        if (has_ids)
            total += static_cast<double>(ids_.weight) / kUnits *
                     std::exp(static_cast<double>(ids_.max) - top);

        if (temperature == 0)
            id = end_logit_ > ids_.max ? -1 : first_at_max();
        else
            id = sample(row, temperature, top);

        const float chosen = id < 0 ? end_logit_ : ids_.logits[id];
        const double log = static_cast<double>(chosen) - top - std::log(total);
        logprob = static_cast<float>(std::min(0.0, log));
        return nullptr;
    }

  private:
    // Splits the row's columns into ids and end outcome and finds their maxima.
    const char* open(int64_t row) {
        const int64_t blocks = (batch_.vocab + kBlock - 1) / kBlock;
        for (Columns* c : {&ids_, &end_}) {
            c->logits = batch_.logits + row * batch_.vocab;
            c->vocab = batch_.vocab;
            c->words.assign(static_cast<size_t>(blocks * kWords), 0);
            c->blocks.clear();
            c->max = -kInf;
            c->bad = false;
        }
        const uint32_t* mask = batch_.mask + row * batch_.mask_words;
        std::copy(mask, mask + batch_.mask_words, ids_.words.begin());
        const uint32_t tail = batch_.vocab % 32 == 0 ? ~uint32_t{0} : (1u << batch_.vocab % 32) - 1;
        ids_.words[static_cast<size_t>(batch_.mask_words - 1)] &= tail;
        if (batch_.end_rest[row]) {
            for (int64_t w = 0; w < batch_.mask_words; ++w)
                end_.words[static_cast<size_t>(w)] = ~ids_.words[static_cast<size_t>(w)];
            end_.words[static_cast<size_t>(batch_.mask_words - 1)] &= tail;
        }
        for (int32_t e = batch_.end_start[row]; e < batch_.end_start[row + 1]; ++e) {
            const int32_t id = batch_.end_ids[e];
            ids_.words[static_cast<size_t>(id / 32)] &= ~(1u << id % 32);
            end_.words[static_cast<size_t>(id / 32)] |= 1u << id % 32;
        }
        for (Columns* c : {&ids_, &end_}) {
            for (int64_t b = 0; b < blocks; ++b) {
                const uint32_t* words = c->words.data() + b * kWords;
                uint32_t any = 0;
                for (int w = 0; w < kWords; ++w) any |= words[w];
                if (any != 0) c->blocks.push_back({b * kBlock, -kInf, 0});
            }
            passes_.scan(*c);
            if (c->bad) return "a logit that counts is NaN or +inf";
        }
        if (ids_.blocks.empty() && end_.blocks.empty())
            return "the mask allows no id and there is no end outcome";
        end_logit_ = -kInf;
        if (end_.max > -kInf) {
            passes_.weigh(end_, end_.max, 1.0f, nullptr);
            end_logit_ =
                static_cast<float>(end_.max + std::log(static_cast<double>(end_.weight) / kUnits));
        }
        if (ids_.max == -kInf && end_logit_ == -kInf) return "every logit that counts is -inf";
        return nullptr;
    }

    int32_t first_at_max() {
        for (const Block& block : ids_.blocks) {
            if (block.max != ids_.max) continue;
            load<16>(ids_, block.start, loaded_);
            for (int i = 0;; ++i)
                if (loaded_.x[i] == ids_.max)
                    return static_cast<int32_t>(block.start + loaded_.column[i]);
        }
        return -1;
    }

    int32_t sample(int64_t row, float temperature, float top) {
        // Bounded, so that a difference of zero times the scale stays zero.
        const float scale = std::min(1.0f / temperature, std::numeric_limits<float>::max());
        const Filters filters{static_cast<uint64_t>(batch_.top_k[row]), batch_.top_p[row],
                              batch_.min_p[row]};
        uint64_t end_weight = 0;
        if (end_logit_ > -kInf) {
            std::fill(loaded_.x, loaded_.x + kPad, end_logit_);
            units<16>(loaded_.x, top, scale, weights_);
            end_weight = static_cast<uint64_t>(weights_[0]);
        }
        Tally tally = {};
        for (int f = 0; f < Tally::kFloors; ++f) {
            tally.floor[f] =
                static_cast<float>(top - static_cast<double>(kDepths[f]) * temperature);
            if (end_weight > 0 && end_logit_ >= tally.floor[f]) {
                tally.count[f] = 1;
                tally.weight[f] = end_weight;
            }
        }
        if (ids_.max == -kInf)
            ids_.weight = 0;
        else if (filters.on() || temperature != 1.0f || top != ids_.max)
            passes_.weigh(ids_, top, scale, filters.on() ? &tally : nullptr);
        const double uniform = batch_.uniform[row];
        if (!filters.on()) return walk(top, scale, uniform, end_weight);
        filter(filters, tally, top, scale, end_weight);
        uint64_t total = 0;
        for (const Candidate& c : candidates_) total += c.weight;
        const uint64_t target = point(uniform, total);
        uint64_t sum = 0;
        for (const Candidate& c : candidates_)
            if ((sum += c.weight) > target) return c.id;
        return -1;
    }

    // The unit that `uniform` points at. A double holds 53 bits: rounding must not reach the total.
    static uint64_t point(double uniform, uint64_t total) {
        const auto target = static_cast<uint64_t>(uniform * static_cast<double>(total));
        return std::min(target, total - 1);
    }

    int32_t walk(float top, float scale, double uniform, uint64_t end_weight) {
        uint64_t target = point(uniform, ids_.weight + end_weight);
        if (target >= ids_.weight) return -1;
        for (const Block& block : ids_.blocks) {
            if (target >= block.weight) {
                target -= block.weight;
                continue;
            }
            passes_.weigh_block(ids_, block, top, scale, loaded_, weights_);
            for (int i = 0;; ++i) {
                const auto weight = static_cast<uint64_t>(weights_[i]);
                if (target < weight) return static_cast<int32_t>(block.start + loaded_.column[i]);
                target -= weight;
            }
        }
        return -1;
    }

    // Leaves in candidates_ what the filters let through, in ascending order of ids, end last.
    void filter(const Filters& f, const Tally& tally, float top, float scale, uint64_t end_weight) {
        const uint64_t everything = ids_.weight + end_weight;
        const auto share = [](double p, uint64_t total) {
            const double wanted = std::ceil(p * static_cast<double>(total));
            return std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, total);
        };
        const double least = f.min_p * kUnits;  // the heaviest outcome weighs kUnits
        // What the filters keep is a prefix of the order by weight. Collect from the highest floor
        // that surely has it; for usual distributions that is a small part of the vocabulary.
        float floor = -kInf;
        for (int i = 0; i < Tally::kFloors && floor == -kInf; ++i) {
            const bool has_k = f.top_k > 0 && tally.count[i] >= f.top_k;
            const bool has_p =
                f.top_p < 1 && f.top_k == 0 && tally.weight[i] >= share(f.top_p, everything);
            // Weights are rounded, the floor is not: hence the slack. And top_p after top_k is a
            // share of the first k, all of which must be there.
            const bool has_min_p =
                f.min_p > 0 && !(f.top_k > 0 && f.top_p < 1) &&
                std::exp(-static_cast<double>(kDepths[i])) * 1.001 + 1 / kUnits < f.min_p;
            if (has_k || has_p || has_min_p) floor = tally.floor[i];
        }
        const uint64_t collected = collect(floor, top, scale, end_weight);
        if (f.top_k > 0 && f.top_k < candidates_.size())
            selection_.keep_first(candidates_, f.top_k, ~uint64_t{0});
        if (f.top_p < 1) {
            uint64_t total = everything;
            if (f.top_k > 0) {
                total = 0;
                for (const Candidate& c : candidates_) total += c.weight;
            }
            const uint64_t wanted = share(f.top_p, total);
            if (f.top_k > 0 || collected > wanted)
                selection_.keep_first(candidates_, candidates_.size(), wanted);
        }
        if (f.min_p > 0)
            std::erase_if(candidates_, [&](const Candidate& c) {
                return static_cast<double>(c.weight) < least;
            });
    }

    // Candidates with a logit of at least `floor`; returns their weight.
    uint64_t collect(float floor, float top, float scale, uint64_t end_weight) {
        candidates_.clear();
        uint64_t total = 0;
        for (const Block& block : ids_.blocks) {
            if (!(block.max >= floor) || block.max == -kInf) continue;
            passes_.weigh_block(ids_, block, top, scale, loaded_, weights_);
            const size_t before = candidates_.size();
            candidates_.resize(before + static_cast<size_t>(loaded_.count));
            Candidate* next = candidates_.data() + before;
            for (int i = 0; i < loaded_.count; ++i) {
                const auto weight = static_cast<uint64_t>(weights_[i]);
                *next = {order_key(loaded_.x[i]),
                         static_cast<int32_t>(block.start + loaded_.column[i]), weight};
                // Without a branch: which columns pass cannot be predicted.
                const bool in = loaded_.x[i] >= floor && loaded_.x[i] > -kInf;
                next += in;
                total += in ? weight : 0;
            }
            candidates_.resize(static_cast<size_t>(next - candidates_.data()));
        }
        if (end_weight > 0 && end_logit_ >= floor) {
            candidates_.push_back({order_key(end_logit_), -1, end_weight});
            total += end_weight;
        }
        return total;
    }

    const DrawBatch& batch_;
    const Passes& passes_;
    Columns ids_, end_;
    float end_logit_ = -kInf;  // log of the end outcome's total, rounded to float
    Loaded loaded_;
    alignas(64) int64_t weights_[kBlock];
    std::vector<Candidate> candidates_;
    Selection selection_;
};

}  // namespace

const char* draw_rows(const DrawBatch& batch, VectorSet set, int64_t first, int64_t last,
                      int32_t* ids, float* logprobs, int64_t* failed) {
    Drawer drawer(batch, set);
    for (int64_t row = first; row < last; ++row)
        if (const char* error = drawer.draw(row, ids[row], logprobs[row])) {
            *failed = row;
            return error;
        }
    return nullptr;
}

namespace nb = nanobind;

namespace {

template <class T, size_t N>
using Array = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument("draw: " + what); }

VectorSet vector_set(const std::string& name) {
    constexpr std::pair<const char*, VectorSet> kSets[] = {{"avx512", VectorSet::avx512},
                                                           {"avx2", VectorSet::avx2},
                                                           {"portable", VectorSet::portable}};
    for (const auto& [known, set] : kSets)
        if ((name == "auto" || name == known) && supported(set)) return set;
    refuse("vectors must be auto, portable, avx2 or avx512 and the CPU must have them, got " +
           name);
}

void check_row(const DrawBatch& b, int64_t row, int64_t end_ids) {
    const auto bad = [row](const char* what) {
        refuse("row " + std::to_string(row) + ": " + what);
    };
    if (!(std::isfinite(b.temperature[row]) && b.temperature[row] >= 0))
        bad("temperature must be finite and >= 0");
    if (!(b.top_p[row] > 0 && b.top_p[row] <= 1)) bad("top_p must be in (0, 1]");
    if (b.top_k[row] < 0) bad("top_k must be >= 0 (0 switches it off)");
    if (!(b.min_p[row] >= 0 && b.min_p[row] <= 1)) bad("min_p must be in [0, 1]");
    if (!(b.uniform[row] >= 0 && b.uniform[row] < 1)) bad("uniform must be in [0, 1)");
    if (b.end_start[row] < 0 || b.end_start[row + 1] < b.end_start[row] ||
        b.end_start[row + 1] > end_ids)
        bad("end_start must ascend from 0 within end_ids");
    for (int32_t e = b.end_start[row]; e < b.end_start[row + 1]; ++e)
        if (b.end_ids[e] < 0 || b.end_ids[e] >= b.vocab) bad("an end id is outside the vocabulary");
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> owned(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return {kept->data(), {kept->size()}, owner};
}

nb::tuple draw(Array<float, 2> logits, Array<uint32_t, 2> mask, Array<float, 1> temperature,
               Array<float, 1> top_p, Array<int32_t, 1> top_k, Array<float, 1> min_p,
               Array<double, 1> uniform, Array<int32_t, 1> end_ids, Array<int32_t, 1> end_start,
               Array<uint8_t, 1> end_rest, const std::string& vectors) {
    const auto rows = logits.shape(0);
    const auto vocab = static_cast<int64_t>(logits.shape(1));
    if (vocab < 1 || vocab > kMaxDrawVocab)
        refuse("the vocabulary must have 1 to " + std::to_string(kMaxDrawVocab) + " ids, got " +
               std::to_string(vocab));
    if (mask.shape(0) != rows || static_cast<int64_t>(mask.shape(1)) != (vocab + 31) / 32)
        refuse("mask must be [" + std::to_string(rows) + ", " + std::to_string((vocab + 31) / 32) +
               "], got [" + std::to_string(mask.shape(0)) + ", " + std::to_string(mask.shape(1)) +
               "]");
    const std::pair<const char*, size_t> lengths[] = {{"temperature", temperature.shape(0)},
                                                      {"top_p", top_p.shape(0)},
                                                      {"top_k", top_k.shape(0)},
                                                      {"min_p", min_p.shape(0)},
                                                      {"uniform", uniform.shape(0)},
                                                      {"end_rest", end_rest.shape(0)}};
    for (const auto& [name, length] : lengths)
        if (length != rows)
            refuse(std::string(name) + " must have " + std::to_string(rows) + " entries, got " +
                   std::to_string(length));
    if (end_start.shape(0) != rows + 1)
        refuse("end_start must have " + std::to_string(rows + 1) + " entries, got " +
               std::to_string(end_start.shape(0)));
    const DrawBatch batch{vocab,
                          static_cast<int64_t>(mask.shape(1)),
                          logits.data(),
                          mask.data(),
                          temperature.data(),
                          top_p.data(),
                          top_k.data(),
                          min_p.data(),
                          uniform.data(),
                          end_ids.data(),
                          end_start.data(),
                          end_rest.data()};
    for (size_t row = 0; row < rows; ++row)
        check_row(batch, static_cast<int64_t>(row), static_cast<int64_t>(end_ids.shape(0)));
    const VectorSet set = vector_set(vectors);
    std::vector<int32_t> ids(rows);
    std::vector<float> logprobs(rows);
    const char* error = nullptr;
    int64_t failed = 0;
    {
        nb::gil_scoped_release release;
        error = draw_rows(batch, set, 0, static_cast<int64_t>(rows), ids.data(), logprobs.data(),
                          &failed);
    }
    if (error != nullptr) refuse("row " + std::to_string(failed) + ": " + error);
    return nb::make_tuple(owned(std::move(ids)), owned(std::move(logprobs)));
}

}  // namespace

void bind_draw(nb::module_& m) {
    m.def(
        "draw", &draw, nb::arg("logits").noconvert(), nb::arg("mask").noconvert(),
        nb::arg("temperature").noconvert(), nb::arg("top_p").noconvert(),
        nb::arg("top_k").noconvert(), nb::arg("min_p").noconvert(), nb::arg("uniform").noconvert(),
        nb::arg("end_ids").noconvert(), nb::arg("end_start").noconvert(),
        nb::arg("end_rest").noconvert(), nb::arg("vectors") = "auto",
        "Draw one outcome a row: (ids int32 [L], logprobs float32 [L]); id -1 is the end outcome.\n"
        "\n"
        "The contract is that of Backend.draw and DrawRequest. `vectors` forces an instruction "
        "set\n"
        "(auto, portable, avx2, avx512); the result does not depend on it. Raises ValueError that\n"
        "names the argument or the row, TypeError for a wrong dtype or layout.");
}

}  // namespace sglite
