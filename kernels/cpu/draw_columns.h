// One pass of arithmetic per row, no sort, and sums that do not depend on their order.
//
// Weights exp((logit - top) * scale) are rounded to whole units of 2^-42 and added as integers:
// integer sums have the same bits in any order, so that SIMD lanes, skipped words of the mask and
// gathered columns cannot change a token. A vocabulary of 2^21 still fits into 64 bits.
//
// A row is cut into blocks of 256 columns. A block whose mask is sparse is loaded as the list of
// its set bits, a dense one as 256 columns with -inf where the mask forbids: both give the same
// units. The end outcome is a second set of columns that goes through the same code.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "draw.h"

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
    Floats factor;
    std::memcpy(&factor, &power, sizeof factor);
    p = p * factor;
    for (int i = 0; i < V::kFloats; i += V::kDoubles) {
        typename V::HalfFloats half;
        std::memcpy(&half, reinterpret_cast<const float*>(&p) + i, sizeof half);
        const typename V::Doubles shifted =
            __builtin_convertvector(half, typename V::Doubles) * kUnits + kToInteger;
        typename V::Longs rounded;
        std::memcpy(&rounded, &shifted, sizeof rounded);
        rounded -= std::bit_cast<int64_t>(kToInteger);
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

const Passes& passes_for(VectorSet set) {
#if SGLITE_X86
    if (set == VectorSet::avx512) return kPasses_avx512;
    if (set == VectorSet::avx2) return kPasses_avx2;
#endif
    return kPasses_portable;
}

}  // namespace
}  // namespace sglite
