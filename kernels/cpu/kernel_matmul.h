// Products of weight panels with the activations of tokens: of up to kMostTile straight from the
// panel, of more from blocks that are taken out of it first. A token's result is the same
// chain of additions either way and in every tile, so it makes a difference in speed only.
#pragma once

#include "kernel_math.h"
#include "step.h"

namespace sglite {
namespace {

// Compilers leave large functions out of line, and pass whole blocks through memory then.
#if defined(__GNUC__)
#define SGLITE_INLINE [[gnu::always_inline]] inline
#define SGLITE_INLINE_LAMBDA __attribute__((always_inline))
#else
#define SGLITE_INLINE inline
#define SGLITE_INLINE_LAMBDA
#endif

constexpr int kPrefetch = 8192;  // bytes ahead in the weight stream

template <int Bytes>
inline void prefetch(const uint8_t* p) {
#if defined(__GNUC__)
    for (int i = 0; i < Bytes; i += kCacheLine) __builtin_prefetch(p + i);
#else
    (void)p;
#endif
}

// Codes of Bits bits, of the planes of layout.h, each times 2^Up.
template <int Bits, int Up>
SGLITE_INLINE void load_planes(const uint8_t* p, Codes codes[8]) {
    constexpr int kAt = Up + (Bits == 6 ? 4 : 0);  // where a plane of two bits begins in the codes
    constexpr int kLast = Up + Bits - 1;           // and one of one bit
    if constexpr (Bits == 8) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) codes[i] = load_codes(p + 64 * i);
        return;
    }
    for (int i = 0; i < 8; ++i) codes[i] = code_zero();
    if constexpr ((Bits & 4) != 0) {
        constexpr uint8_t kMask = 15 << Up;
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i, p += 64) {
            const Codes both = load_codes(p);
            codes[2 * i] = put_bits<0 - Up>(codes[2 * i], both, kMask);
            codes[2 * i + 1] = put_bits<4 - Up>(codes[2 * i + 1], both, kMask);
        }
    }
    if constexpr ((Bits & 2) != 0) {
        constexpr uint8_t kMask = 3 << kAt;
#pragma GCC unroll 2
        for (int i = 0; i < 8; i += 4, p += 64) {
            const Codes four = load_codes(p);
            codes[i] = put_bits<0 - kAt>(codes[i], four, kMask);
            codes[i + 1] = put_bits<2 - kAt>(codes[i + 1], four, kMask);
            codes[i + 2] = put_bits<4 - kAt>(codes[i + 2], four, kMask);
            codes[i + 3] = put_bits<6 - kAt>(codes[i + 3], four, kMask);
        }
    }
    if constexpr ((Bits & 1) != 0) {
        constexpr uint8_t kMask = 1 << kLast;
        const Codes all = load_codes(p);
        codes[0] = put_bits<0 - kLast>(codes[0], all, kMask);
        codes[1] = put_bits<1 - kLast>(codes[1], all, kMask);
        codes[2] = put_bits<2 - kLast>(codes[2], all, kMask);
        codes[3] = put_bits<3 - kLast>(codes[3], all, kMask);
        codes[4] = put_bits<4 - kLast>(codes[4], all, kMask);
        codes[5] = put_bits<5 - kLast>(codes[5], all, kMask);
        codes[6] = put_bits<6 - kLast>(codes[6], all, kMask);
        codes[7] = put_bits<7 - kLast>(codes[7], all, kMask);
    }
}

// Lanes [half, half + kLanes) of a block, taken out of its panel: one scale for each of Groups
// groups of columns, and how they are added to the accumulator of a token. ZeroShift: the zero of
// the codes is 1 << ZeroShift, or 0 for -1; with 7, codes are prepared bytes.
template <int Groups, bool Min, int ZeroShift>
struct Weights {
    static constexpr bool kBytes = ZeroShift == 7;
    F scale[Groups];
    F min[Min ? Groups : 1];
    Codes codes[8];

    static inline I start(int32_t zero) {
        if constexpr (kBytes) return byte_start(zero);
        if constexpr (!kBytes && ZeroShift >= 0) return int_set1(zero >> (7 - ZeroShift));
        return int_set1(0);
    }
    // Columns [4i, 4i + 4) of the block, which are those of group i / 4.
    SGLITE_INLINE I add_dot(I dot, int i, const int8_t* x) const {
        if constexpr (kBytes) return dot_bytes(dot, codes[i], x);
        return dot_small(dot, codes[i], x);
    }
    // Adds the dots of group 0, then those of group 1; `partial` is kept in between.
    SGLITE_INLINE void add_group(int group, F& acc, F& partial, I dot,
                                 const ActivationBlock& x) const {
        const F whole = to_float(dot);
        if constexpr (Groups == 2) {
            partial = mul(whole, scale[group]);
            if constexpr (Min) {
                const float sum = static_cast<float>(x.zero[group]) * (-1.0f / 128.0f);
                partial = fma(min[group], set1(sum), partial);
            }
            acc = fma(partial, set1(x.scale[group]), acc);
        } else if (group == 0) {
            partial = mul(whole, set1(x.scale[0]));
        } else {
            acc = fma(fma(whole, set1(x.scale[1]), partial), scale[0], acc);
            if constexpr (Min) acc = fma(min[0], set1(x.sum), acc);
        }
    }
    SGLITE_INLINE F add_to(F acc, const ActivationBlock& x) const {
        I dot[2] = {start(x.zero[0]), start(x.zero[1])};
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            dot[0] = add_dot(dot[0], i, x.codes + 4 * i);
            dot[1] = add_dot(dot[1], 4 + i, x.codes + 16 + 4 * i);
        }
        F partial = zero();
        add_group(0, acc, partial, dot[0], x);
        add_group(1, acc, partial, dot[1], x);
        return acc;
    }
    template <int J>
    inline F weight(int i) const {
        const int group = i / 4 * (Groups - 1);
        F code = code_to_float<J>(codes[i]);
        // prepare_bytes is its own inverse where it is not empty.
        if constexpr (kBytes) code = code_to_float<J>(prepare_bytes(codes[i]));
        if constexpr (Min) return fma(code, scale[group], min[group]);
        constexpr int kZero = ZeroShift < 0 ? 0 : 1 << (ZeroShift < 0 ? 0 : ZeroShift);
        return mul(sub(code, set1(static_cast<float>(kZero))), scale[group]);
    }
};

// How a kind is multiplied. With kTopCodes, codes with a zero are moved up until that is 128, and
// their scales down: exact, and the correction of the zero is read as it lies in memory.
template <PanelKind Kind>
struct Taken {
    static constexpr PanelShape kShape = panel_shape(Kind);
    static constexpr int kUp = kTopCodes && kShape.zero_shift >= 0 ? 7 - kShape.zero_shift : 0;
    static constexpr int kZeroShift = kShape.zero_shift < 0 ? -1 : kShape.zero_shift + kUp;
    using Block = Weights<kShape.groups(), kShape.min, kZeroShift>;
};

// The f16 scale and min that stand in front of a block, or of 8 of a wide kind.
struct Scales {
    F scale, min;
};

template <PanelKind Kind>
SGLITE_INLINE Scales load_scales(const uint8_t* p, int half) {
    constexpr int kUp = Taken<Kind>::kUp;
    const uint16_t* scales = reinterpret_cast<const uint16_t*>(p);
    F scale = load(scales + half);
    if constexpr (kUp > 0) scale = mul(scale, set1(1.0f / (1 << kUp)));
    return {scale, panel_shape(Kind).min ? load(scales + kPanelRows + half) : zero()};
}

// `wide`: the scales of the 8 blocks that this is one of.
template <PanelKind Kind>
SGLITE_INLINE typename Taken<Kind>::Block take_block(const uint8_t* p, int half,
                                                     const Scales& wide) {
    constexpr PanelShape kShape = panel_shape(Kind);
    constexpr int kGroups = kShape.groups();
    typename Taken<Kind>::Block block;
    if constexpr (!kShape.wide) {
        const Scales own = load_scales<Kind>(p, half);
        block.scale[0] = own.scale;
        block.min[0] = own.min;
    } else if constexpr (kShape.nibble_scales()) {
#pragma GCC unroll 2
        for (int i = 0; i < kGroups; ++i) {
            const uint8_t* both = p + kPanelRows * i + half;
            block.scale[i] = mul(wide.scale, load_nibbles<0>(both));
            block.min[i] = sub(zero(), mul(wide.min, load_nibbles<4>(both)));
        }
    } else {
        const int8_t* bytes = reinterpret_cast<const int8_t*>(p) + half;
#pragma GCC unroll 2
        for (int i = 0; i < kGroups; ++i) {
            block.scale[i] = mul(wide.scale, load(bytes + kPanelRows * i));
        }
        block.min[0] = kShape.min ? sub(zero(), mul(wide.min, load(bytes + kPanelRows))) : zero();
    }
    load_planes<kShape.bits, Taken<Kind>::kUp>(p + kShape.scale_bytes() + 4 * half, block.codes);
    if constexpr (block.kBytes) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
            if constexpr (kShape.curve) block.codes[i] = look_up(kCurve, block.codes[i]);
            block.codes[i] = prepare_bytes(block.codes[i]);
        }
    }
    return block;
}

// Calls use(block, index) for lanes [half, half + kLanes) of the blocks of a panel. Ahead: fetches
// what comes kPrefetch later.
template <PanelKind Kind, bool Ahead, class Use>
SGLITE_INLINE void each_block(const uint8_t* p, int blocks, int half, Use use) {
    constexpr PanelShape kShape = panel_shape(Kind);
    constexpr int kBytes = static_cast<int>(kShape.block_bytes());
    if constexpr (kShape.wide) {
        for (int b = 0; b < blocks; b += kWide) {
            const Scales scales = load_scales<Kind>(p, half);
            p += kShape.header_bytes();
            for (int i = 0; i < kWide; ++i, p += kBytes) {
                if constexpr (Ahead) prefetch<kBytes>(p + kPrefetch);
                use(take_block<Kind>(p, half, scales), b + i);
            }
        }
    } else {
        for (int b = 0; b < blocks; ++b, p += kBytes) {
            if constexpr (Ahead) prefetch<kBytes>(p + kPrefetch);
            use(take_block<Kind>(p, half, Scales{}), b);
        }
    }
}

using PanelFunction = void (*)(const uint8_t* panel, int blocks, const Input& input, float* out,
                               size_t out_stride);
using ManyFunction = void (*)(const uint8_t* panel, size_t panel_stride, int blocks,
                              const Input& input, int count, float* out, size_t out_stride);

// out[t * out_stride + r] for the 16 rows r of a panel and T tokens t, straight from the panel.
template <PanelKind Kind, int T>
void multiply_int8(const uint8_t* panel, int blocks, const Input& input, float* out,
                   size_t out_stride) {
    const ActivationBlock* x = input.blocks;
    const size_t stride = static_cast<size_t>(blocks);
    for (int half = 0; half < kPanelRows; half += kLanes) {
        F acc[T];
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) acc[t] = zero();
        each_block<Kind, true>(panel, blocks, half, [&](const auto& w, int b) SGLITE_INLINE_LAMBDA {
#pragma GCC unroll 16
            for (int t = 0; t < T; ++t) acc[t] = w.add_to(acc[t], x[t * stride + b]);
        });
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) store(out + t * out_stride + half, acc[t]);
    }
}

// The same from blocks that have been taken out of panels, P vectors of rows at once: what is read
// of the activations serves all of them. The additions go on from what stands in `out`.
template <class Block, int T, int P>
void multiply_taken(const Block* taken, int blocks, const ActivationBlock* x, size_t stride,
                    float* out, size_t out_stride) {
    F acc[T][P];
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
        for (int p = 0; p < P; ++p) acc[t][p] = load(out + t * out_stride + p * kLanes);
    }
    for (int b = 0; b < blocks; ++b, taken += P, ++x) {
        F partial[T][P];
#pragma GCC unroll 2
        for (int group = 0; group < 2; ++group) {
            I dot[T][P];
#pragma GCC unroll 4
            for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
                for (int p = 0; p < P; ++p) dot[t][p] = Block::start(x[t * stride].zero[group]);
            }
#pragma GCC unroll 4
            for (int i = 4 * group; i < 4 * group + 4; ++i) {
#pragma GCC unroll 4
                for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
                    for (int p = 0; p < P; ++p) {
                        dot[t][p] = taken[p].add_dot(dot[t][p], i, x[t * stride].codes + 4 * i);
                    }
                }
            }
#pragma GCC unroll 4
            for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
                for (int p = 0; p < P; ++p) {
                    taken[p].add_group(group, acc[t][p], partial[t][p], dot[t][p], x[t * stride]);
                }
            }
        }
    }
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
        for (int p = 0; p < P; ++p) store(out + t * out_stride + p * kLanes, acc[t][p]);
    }
}

// Blocks of columns that are taken out at once: they stay in the first-level cache.
constexpr int kTakenBlocks = 16;

// For many tokens: puts the codes of P vectors of rows together once for all of them.
template <PanelKind Kind, int P>
void multiply_many(const uint8_t* panel, size_t panel_stride, int blocks, const Input& input,
                   int count, float* out, size_t out_stride) {
    using Block = typename Taken<Kind>::Block;
    constexpr int kTokens = 4;
    constexpr int kPanels = P * kLanes > kPanelRows ? P * kLanes / kPanelRows : 1;
    Block taken[kTakenBlocks * P];
    const size_t stride = static_cast<size_t>(blocks);
    const int tiles = count / kTokens + count % kTokens;
    // Each tile fetches a part of the blocks behind these, so that memory and products overlap.
    constexpr int kBytes = static_cast<int>(panel_bytes(Kind, kTakenBlocks));
    const int part = (kBytes / tiles / kCacheLine + 1) * kCacheLine;
    for (int t = 0; t < count; ++t) {
        for (int p = 0; p < P; ++p) store(out + t * out_stride + p * kLanes, zero());
    }
    for (int first = 0; first < blocks; first += kTakenBlocks) {
        const int some = blocks - first < kTakenBlocks ? blocks - first : kTakenBlocks;
        for (int p = 0; p < P; ++p) {
            const int row = p * kLanes;
            const uint8_t* from =
                panel + row / kPanelRows * panel_stride + panel_bytes(Kind, first);
            each_block<Kind, false>(from, some, row % kPanelRows,
                                    [&](const Block& w, int b)
                                        SGLITE_INLINE_LAMBDA { taken[b * P + p] = w; });
        }
        const uint8_t* next = first + kTakenBlocks < blocks
                                  ? panel + panel_bytes(Kind, first + kTakenBlocks)
                                  : panel + kPanels * panel_stride;
        const ActivationBlock* x = input.blocks + first;
        for (int t = 0; t < count; next += part) {
            for (int p = 0; p < kPanels; ++p) {
                for (int i = 0; i < part; i += kCacheLine) {
                    prefetch<kCacheLine>(next + p * panel_stride + i);
                }
            }
            float* to = out + t * out_stride;
            if (t + kTokens <= count) {
                multiply_taken<Block, kTokens, P>(taken, some, x + t * stride, stride, to,
                                                  out_stride);
                t += kTokens;
            } else {
                multiply_taken<Block, 1, P>(taken, some, x + t * stride, stride, to, out_stride);
                ++t;
            }
        }
    }
}

template <class Block, int T, int J>
inline void multiply_column(const Block& w, int i, const float* x, size_t stride, F* acc) {
    const F weight = w.template weight<J>(i);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) acc[t] = fma(weight, set1(x[t * stride + 4 * i + J]), acc[t]);
}

template <PanelKind Kind, int T>
void multiply_float(const uint8_t* panel, int blocks, const Input& input, float* out,
                    size_t out_stride) {
    using Block = typename Taken<Kind>::Block;
    const size_t stride = static_cast<size_t>(input.cols);
    for (int half = 0; half < kPanelRows; half += kLanes) {
        F acc[T];
        for (int t = 0; t < T; ++t) acc[t] = zero();
        each_block<Kind, true>(panel, blocks, half, [&](const Block& w, int b) {
            const float* x = input.floats + static_cast<size_t>(b) * kBlock;
#pragma GCC unroll 8
            for (int i = 0; i < 8; ++i) {
                multiply_column<Block, T, 0>(w, i, x, stride, acc);
                multiply_column<Block, T, 1>(w, i, x, stride, acc);
                multiply_column<Block, T, 2>(w, i, x, stride, acc);
                multiply_column<Block, T, 3>(w, i, x, stride, acc);
            }
        });
        for (int t = 0; t < T; ++t) store(out + t * out_stride + half, acc[t]);
    }
}

template <class Value, int T>
void multiply_plain(const uint8_t* panel, int blocks, const Input& input, float* out,
                    size_t out_stride) {
    const size_t stride = static_cast<size_t>(input.cols);
    for (int half = 0; half < kPanelRows; half += kLanes) {
        F acc[T];
        for (int t = 0; t < T; ++t) acc[t] = zero();
        const Value* w = reinterpret_cast<const Value*>(panel) + half;
        for (int k = 0; k < blocks * kBlock; ++k, w += kPanelRows) {
            const F weight = load(w);
#pragma GCC unroll 4
            for (int t = 0; t < T; ++t) {
                acc[t] = fma(weight, set1(input.floats[t * stride + k]), acc[t]);
            }
        }
        for (int t = 0; t < T; ++t) store(out + t * out_stride + half, acc[t]);
    }
}

// Tiles of tokens that are built.
constexpr bool is_tile(int tokens) {
    return tokens <= kMostTile && (tokens <= 4 || tokens == 6 || tokens % 4 == 0);
}
constexpr int kFloatTile = kMostTile < 4 ? kMostTile : 4;

template <PanelKind Kind, int T>
constexpr PanelFunction int8_tile() {
    if constexpr (is_tile(T)) return multiply_int8<Kind, T>;
    return nullptr;
}
template <PanelKind Kind, int T>
constexpr PanelFunction float_tile() {
    if constexpr (T > kFloatTile)
        return nullptr;
    else if constexpr (is_quantised(Kind))
        return multiply_float<Kind, T>;
    else if constexpr (Kind == PanelKind::Half)
        return multiply_plain<uint16_t, T>;
    else if constexpr (Kind == PanelKind::Brain)
        return multiply_plain<Brain, T>;
    else
        return multiply_plain<float, T>;
}
template <PanelKind Kind, int P>
constexpr ManyFunction many() {
    if constexpr (kMany && P * kLanes >= kPanelRows) return multiply_many<Kind, P>;
    return nullptr;
}

struct KindFunctions {
    PanelFunction int8[17];  // by tokens
    PanelFunction floats[5];
    ManyFunction many[3];  // by vectors of rows
};

template <PanelKind Kind>
constexpr KindFunctions functions_of() {
    KindFunctions f{};
    if constexpr (is_quantised(Kind)) {
        f.int8[1] = int8_tile<Kind, 1>();
        f.int8[2] = int8_tile<Kind, 2>();
        f.int8[3] = int8_tile<Kind, 3>();
        f.int8[4] = int8_tile<Kind, 4>();
        f.int8[6] = int8_tile<Kind, 6>();
        f.int8[8] = int8_tile<Kind, 8>();
        f.int8[12] = int8_tile<Kind, 12>();
        f.int8[16] = int8_tile<Kind, 16>();
        f.many[1] = many<Kind, 1>();
        f.many[2] = many<Kind, 2>();
    }
    f.floats[1] = float_tile<Kind, 1>();
    f.floats[2] = float_tile<Kind, 2>();
    f.floats[3] = float_tile<Kind, 3>();
    f.floats[4] = float_tile<Kind, 4>();
    return f;
}

#define SGLITE_OF(Kind) functions_of<PanelKind::Kind>()
constexpr KindFunctions kFunctions[kPanelKinds] = {
    SGLITE_OF(Four),      SGLITE_OF(FourMin),  SGLITE_OF(FourWide), SGLITE_OF(Five),
    SGLITE_OF(FiveMin),   SGLITE_OF(FiveWide), SGLITE_OF(Eight),    SGLITE_OF(TwoWide),
    SGLITE_OF(ThreeWide), SGLITE_OF(SixWide),  SGLITE_OF(Curve),    SGLITE_OF(CurveWide),
    SGLITE_OF(Half),      SGLITE_OF(Brain),    SGLITE_OF(Float)};
#undef SGLITE_OF

inline bool wants_int8(const ModelWeights& model, const Matrix& matrix) {
    return model.int8_activations && is_quantised(matrix.kind);
}

// The forms in which some products read their input.
struct Need {
    bool blocks = false;
    bool floats = false;
    void by(const ModelWeights& model, const Matrix& matrix) {
        (wants_int8(model, matrix) ? blocks : floats) = true;
    }
};

// Puts columns [col, col + count) of a token into the forms that are needed. Blocks are whole: col
// and count are multiples of 32 there.
inline void emit(const float* x, int count, const Input& to, int token, int col, Need need) {
    const size_t at = static_cast<size_t>(token) * to.cols + col;
    if (need.blocks) quantise(x, count, to.blocks + at / kBlock);
    if (need.floats) memcpy(to.floats + at, x, sizeof(float) * count);
}

inline Input from_token(const Input& input, int token) {
    const size_t at = static_cast<size_t>(token) * input.cols;
    return {input.blocks + at / kBlock, input.floats + at, input.cols};
}

// Whether the codes are put together beforehand.
inline bool takes_many(const ModelWeights& model, const Matrix& matrix, int count) {
    return kMany && count > kMostTile && wants_int8(model, matrix);
}

// Panels that a product of so many tokens takes at once, where there are as many.
inline int panels_at_once(const ModelWeights& model, const Matrix& matrix, int count) {
    return kLanes == kPanelRows && takes_many(model, matrix, count) ? 2 : 1;
}

// Whole panels [first, first + panels), panels_at_once at most.
inline void multiply_whole(const ModelWeights& model, const Matrix& matrix, int first, int panels,
                           const Input& input, int count, float* out, size_t out_stride) {
    const uint8_t* data = matrix.data + first * matrix.panel_stride;
    const KindFunctions& functions = kFunctions[static_cast<int>(matrix.kind)];
    const int blocks = matrix.blocks();
    if (takes_many(model, matrix, count)) {
        functions.many[panels * kPanelRows / kLanes](data, matrix.panel_stride, blocks, input,
                                                     count, out, out_stride);
        return;
    }
    const bool int8 = wants_int8(model, matrix);
    const PanelFunction* tiles = int8 ? functions.int8 : functions.floats;
    const int most = int8 ? kMostTile : kFloatTile;
    for (int t = 0; t < count;) {
        int tile = count - t < most ? count - t : most;
        while (tiles[tile] == nullptr) --tile;
        tiles[tile](data, blocks, from_token(input, t), out + t * out_stride, out_stride);
        t += tile;
    }
}

// Panels [first, last) for tokens [0, count): out[t * out_stride + 16 * (panel - first) + r].
inline void multiply_panels(const ModelWeights& model, const Matrix& matrix, int first, int last,
                            const Input& input, int count, float* out, size_t out_stride) {
    const int most = panels_at_once(model, matrix, count);
    const int whole = matrix.rows / kPanelRows < last ? matrix.rows / kPanelRows : last;
    for (int p = first; p < whole;) {
        const int panels = whole - p < most ? whole - p : most;
        multiply_whole(model, matrix, p, panels, input, count, out + (p - first) * kPanelRows,
                       out_stride);
        p += panels;
    }
    if (whole == last) return;
    // The last panel has fewer rows.
    constexpr int kPart = 16;  // tokens
    const int rows = matrix.rows - whole * kPanelRows;
    out += (whole - first) * kPanelRows;
    for (int t = 0; t < count; t += kPart) {
        const int tokens = count - t < kPart ? count - t : kPart;
        float all[kPart * kPanelRows];
        multiply_whole(model, matrix, whole, 1, from_token(input, t), tokens, all, kPanelRows);
        for (int i = 0; i < tokens; ++i) {
            for (int r = 0; r < rows; ++r) out[(t + i) * out_stride + r] = all[i * kPanelRows + r];
        }
    }
}

}  // namespace
}  // namespace sglite
