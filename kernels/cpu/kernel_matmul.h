// Products of weight panels with the activations of up to kMaxTile tokens at once. A token's
// result is the same chain of additions in every tile, so a tile's size changes speed only.
#pragma once

#include "kernel_math.h"
#include "step.h"

namespace sglite {
namespace {

constexpr int kPrefetch = 8192;  // bytes ahead in the weight stream

template <int Bytes>
inline void prefetch(const uint8_t* p) {
#if defined(__GNUC__)
    for (int i = 0; i < Bytes; i += kCacheLine) __builtin_prefetch(p + kPrefetch + i);
#else
    (void)p;
#endif
}

inline F scaled_sum(const I dot[2], const ActivationBlock& x) {
    return fma(to_float(dot[1]), set1(x.scale[1]), mul(to_float(dot[0]), set1(x.scale[0])));
}

// Codes of Bits bits, of the planes of layout.h.
template <int Bits>
inline void load_planes(const uint8_t* p, Codes codes[8]) {
    constexpr int kAt = Bits == 6 ? 4 : 0;  // where a plane of two bits begins in the codes
    constexpr int kLast = Bits - 1;         // and one of one bit
    if constexpr (Bits == 8) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) codes[i] = load_codes(p + 64 * i);
        return;
    }
    for (int i = 0; i < 8; ++i) codes[i] = code_zero();
    if constexpr ((Bits & 4) != 0) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i, p += 64) {
            const Codes both = load_codes(p);
            codes[2 * i] = put_bits<0>(codes[2 * i], both, 0x0f);
            codes[2 * i + 1] = put_bits<4>(codes[2 * i + 1], both, 0x0f);
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

// The f16 scale and min that stand in front of a block, or of 8 of a wide kind.
struct Scales {
    F scale, min;
};

template <PanelShape Shape>
inline Scales load_scales(const uint8_t* p, int half) {
    const uint16_t* scales = reinterpret_cast<const uint16_t*>(p);
    return {load(scales + half), Shape.min ? load(scales + kPanelRows + half) : zero()};
}

// Lanes [half, half + kLanes) of a block of a quantised kind, and how they are added to the
// accumulator of a token.
template <PanelKind Kind>
struct Block {
    static constexpr PanelShape kShape = panel_shape(Kind);
    static constexpr int kGroups = kShape.groups();
    static constexpr bool kBytes = kShape.bits == 8 || kShape.curve;  // codes of 8 bits
    F scale[kGroups];
    F min[kGroups];
    Codes codes[8];

    // `wide`: the scales of the 8 blocks that this is one of.
    inline Block(const uint8_t* p, int half, const Scales& wide) {
        if constexpr (!kShape.wide) {
            const Scales own = load_scales<kShape>(p, half);
            scale[0] = own.scale;
            min[0] = own.min;
        } else if constexpr (kShape.nibble_scales()) {
#pragma GCC unroll 2
            for (int i = 0; i < kGroups; ++i) {
                const uint8_t* both = p + kPanelRows * i + half;
                scale[i] = mul(wide.scale, load_nibbles<0>(both));
                min[i] = sub(zero(), mul(wide.min, load_nibbles<4>(both)));
            }
        } else {
            const int8_t* bytes = reinterpret_cast<const int8_t*>(p) + half;
#pragma GCC unroll 2
            for (int i = 0; i < kGroups; ++i) {
                scale[i] = mul(wide.scale, load(bytes + kPanelRows * i));
            }
            min[0] = kShape.min ? sub(zero(), mul(wide.min, load(bytes + kPanelRows))) : zero();
        }
        load_planes<kShape.bits>(p + kShape.scale_bytes() + 4 * half, codes);
        if constexpr (kBytes) {
#pragma GCC unroll 8
            for (int i = 0; i < 8; ++i) {
                codes[i] = prepare_bytes(kShape.curve ? look_up(kCurve, codes[i]) : codes[i]);
            }
        }
    }
    static inline I start(int32_t zero) {
        if constexpr (kBytes) return byte_start(zero);
        if constexpr (!kBytes && kShape.zero_shift >= 0) {
            return int_set1(zero >> (7 - kShape.zero_shift));
        }
        return int_set1(0);
    }
    inline F add_to(F acc, const ActivationBlock& x) const {
        I dot[2] = {start(x.zero[0]), start(x.zero[1])};
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            if constexpr (kBytes) {
                dot[0] = dot_bytes(dot[0], codes[i], x.codes + 4 * i);
                dot[1] = dot_bytes(dot[1], codes[4 + i], x.codes + 16 + 4 * i);
            } else {
                dot[0] = dot_small(dot[0], codes[i], x.codes + 4 * i);
                dot[1] = dot_small(dot[1], codes[4 + i], x.codes + 16 + 4 * i);
            }
        }
        if constexpr (kGroups == 1) {
            acc = fma(scaled_sum(dot, x), scale[0], acc);
            if constexpr (kShape.min) acc = fma(min[0], set1(x.sum), acc);
        } else {
#pragma GCC unroll 2
            for (int i = 0; i < 2; ++i) {
                F whole = mul(to_float(dot[i]), scale[i]);
                if constexpr (kShape.min) {
                    const float sum = static_cast<float>(x.zero[i]) * (-1.0f / 128.0f);
                    whole = fma(min[i], set1(sum), whole);
                }
                acc = fma(whole, set1(x.scale[i]), acc);
            }
        }
        return acc;
    }
    template <int J>
    inline F weight(int i) const {
        const int group = i / 4 * (kGroups - 1);
        F code = code_to_float<J>(codes[i]);
        // prepare_bytes is its own inverse where it is not empty.
        if constexpr (kBytes) code = code_to_float<J>(prepare_bytes(codes[i]));
        if constexpr (kShape.min) return fma(code, scale[group], min[group]);
        return mul(sub(code, set1(static_cast<float>(kShape.zero()))), scale[group]);
    }
};

// Calls use(block, index) for lanes [half, half + kLanes) of the blocks of a panel.
template <PanelKind Kind, class Use>
inline void each_block(const uint8_t* p, int blocks, int half, Use use) {
    constexpr PanelShape kShape = panel_shape(Kind);
    constexpr int kBytes = static_cast<int>(kShape.block_bytes());
    if constexpr (kShape.wide) {
        for (int b = 0; b < blocks; b += kWide) {
            const Scales scales = load_scales<kShape>(p, half);
            p += kShape.header_bytes();
            for (int i = 0; i < kWide; ++i, p += kBytes) {
                prefetch<kBytes>(p);
                use(Block<Kind>(p, half, scales), b + i);
            }
        }
    } else {
        for (int b = 0; b < blocks; ++b, p += kBytes) {
            prefetch<kBytes>(p);
            use(Block<Kind>(p, half, Scales{}), b);
        }
    }
}

using PanelFunction = void (*)(const uint8_t* panel, int blocks, const Input& input, float* out,
                               size_t out_stride);

// out[t * out_stride + r] for the 16 rows r of a panel and T tokens t.
template <PanelKind Kind, int T>
void multiply_int8(const uint8_t* panel, int blocks, const Input& input, float* out,
                   size_t out_stride) {
    const ActivationBlock* x = input.blocks;
    const size_t stride = static_cast<size_t>(blocks);
    for (int half = 0; half < kPanelRows; half += kLanes) {
        F acc[T];
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) acc[t] = zero();
        each_block<Kind>(panel, blocks, half, [&](const Block<Kind>& w, int b) {
#pragma GCC unroll 16
            for (int t = 0; t < T; ++t) acc[t] = w.add_to(acc[t], x[t * stride + b]);
        });
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) store(out + t * out_stride + half, acc[t]);
    }
}

template <class Weights, int T, int J>
inline void multiply_column(const Weights& w, int i, const float* x, size_t stride, F* acc) {
    const F weight = w.template weight<J>(i);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) acc[t] = fma(weight, set1(x[t * stride + 4 * i + J]), acc[t]);
}

template <PanelKind Kind, int T>
void multiply_float(const uint8_t* panel, int blocks, const Input& input, float* out,
                    size_t out_stride) {
    using Weights = Block<Kind>;
    const size_t stride = static_cast<size_t>(input.cols);
    for (int half = 0; half < kPanelRows; half += kLanes) {
        F acc[T];
        for (int t = 0; t < T; ++t) acc[t] = zero();
        each_block<Kind>(panel, blocks, half, [&](const Weights& w, int b) {
            const float* x = input.floats + static_cast<size_t>(b) * kBlock;
#pragma GCC unroll 8
            for (int i = 0; i < 8; ++i) {
                multiply_column<Weights, T, 0>(w, i, x, stride, acc);
                multiply_column<Weights, T, 1>(w, i, x, stride, acc);
                multiply_column<Weights, T, 2>(w, i, x, stride, acc);
                multiply_column<Weights, T, 3>(w, i, x, stride, acc);
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

constexpr int kTiles[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16};  // tokens of the tiles that exist
constexpr int kFloatTile = 4;

// By kind, then by tokens in the order of kTiles; entries beyond kMaxTile are not built.
#define SGLITE_TILE(Kind, T) \
    (T <= kMaxTile ? multiply_int8<PanelKind::Kind, (T <= kMaxTile ? T : 1)> : nullptr)
#define SGLITE_TILES(Kind)                                                                    \
    {SGLITE_TILE(Kind, 1),  SGLITE_TILE(Kind, 2), SGLITE_TILE(Kind, 3), SGLITE_TILE(Kind, 4), \
     SGLITE_TILE(Kind, 5),  SGLITE_TILE(Kind, 6), SGLITE_TILE(Kind, 7), SGLITE_TILE(Kind, 8), \
     SGLITE_TILE(Kind, 12), SGLITE_TILE(Kind, 16)}
#define SGLITE_FLOAT_TILES(Function, Type) \
    {Function<Type, 1>, Function<Type, 2>, Function<Type, 3>, Function<Type, 4>}
#define SGLITE_QUANTISED(Table)                                                                 \
    Table(Four), Table(FourMin), Table(FourWide), Table(Five), Table(FiveMin), Table(FiveWide), \
        Table(Eight), Table(TwoWide), Table(ThreeWide), Table(SixWide), Table(Curve),           \
        Table(CurveWide)
#define SGLITE_BLOCK_TILES(Kind) SGLITE_FLOAT_TILES(multiply_float, PanelKind::Kind)

const PanelFunction kInt8Functions[kQuantisedKinds][10] = {SGLITE_QUANTISED(SGLITE_TILES)};
const PanelFunction kFloatFunctions[kPanelKinds][kFloatTile] = {
    SGLITE_QUANTISED(SGLITE_BLOCK_TILES), SGLITE_FLOAT_TILES(multiply_plain, uint16_t),
    SGLITE_FLOAT_TILES(multiply_plain, Brain), SGLITE_FLOAT_TILES(multiply_plain, float)};

#undef SGLITE_BLOCK_TILES
#undef SGLITE_QUANTISED
#undef SGLITE_TILE
#undef SGLITE_TILES
#undef SGLITE_FLOAT_TILES

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

// The largest tile for what is left.
inline PanelFunction choose_tile(const ModelWeights& model, const Matrix& matrix, int left,
                                 int* tokens) {
    const int kind = static_cast<int>(matrix.kind);
    if (!wants_int8(model, matrix)) {
        *tokens = left < kFloatTile ? left : kFloatTile;
        return kFloatFunctions[kind][*tokens - 1];
    }
    int i = 9;
    while (kTiles[i] > left || kTiles[i] > kMaxTile) --i;
    *tokens = kTiles[i];
    return kInt8Functions[kind][i];
}

inline Input from_token(const Input& input, int token) {
    const size_t at = static_cast<size_t>(token) * input.cols;
    return {input.blocks + at / kBlock, input.floats + at, input.cols};
}

// Rows of panel `panel` for tokens [0, count): out[t * out_stride + 16 * panel + r].
inline void multiply_panel(const ModelWeights& model, const Matrix& matrix, int panel,
                           const Input& input, int count, float* out, size_t out_stride) {
    const uint8_t* data = matrix.data + panel * matrix.panel_stride;
    const int row = panel * kPanelRows;
    const int rows = matrix.rows - row < kPanelRows ? matrix.rows - row : kPanelRows;
    for (int t = 0; t < count;) {
        int tile;
        const PanelFunction multiply = choose_tile(model, matrix, count - t, &tile);
        const Input from = from_token(input, t);
        float* to = out + t * out_stride + row;
        if (rows == kPanelRows) {
            multiply(data, matrix.blocks(), from, to, out_stride);
        } else {
            float whole[kMaxTile * kPanelRows];
            multiply(data, matrix.blocks(), from, whole, kPanelRows);
            for (int i = 0; i < tile; ++i) {
                for (int r = 0; r < rows; ++r) to[i * out_stride + r] = whole[i * kPanelRows + r];
            }
        }
        t += tile;
    }
}

}  // namespace
}  // namespace sglite
