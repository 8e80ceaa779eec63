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

// Each Panel names its block's bytes and adds one block to the accumulators of T tokens: lanes
// [half, half + kLanes) of the panel.
template <class Scale, PanelKind Kind>
struct Nibbles {
    static constexpr int kBytes = static_cast<int>(panel_block_bytes(Kind));
    F scale, min;
    Codes codes[8];

    inline Nibbles(const uint8_t* p, int half) {
        const Scale* scales = reinterpret_cast<const Scale*>(p);
        scale = load(scales + half);
        min = load(scales + kPanelRows + half);
        p += 2 * kPanelRows * sizeof(Scale) + 4 * half;
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            const Codes both = load_codes(p + 64 * i);
            codes[2 * i] = low_nibbles(both);
            codes[2 * i + 1] = high_nibbles(both);
        }
    }
    inline F add_to(F acc, const ActivationBlock& x) const {
        I dot[2] = {int_zero(), int_zero()};
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            dot[0] = dot_nibbles(dot[0], codes[i], x.codes + 4 * i);
            dot[1] = dot_nibbles(dot[1], codes[4 + i], x.codes + 16 + 4 * i);
        }
        acc = fma(scaled_sum(dot, x), scale, acc);
        return fma(min, set1(x.sum), acc);
    }
    template <int J>
    inline F weight(int i) const {
        return fma(code_to_float<J>(codes[i]), scale, min);
    }
};

template <class Scale, PanelKind Kind>
struct Bytes {
    static constexpr int kBytes = static_cast<int>(panel_block_bytes(Kind));
    static constexpr int kScales = Kind == PanelKind::ByteFloat2 ? 2 : 1;
    F scale[kScales];
    Codes codes[8];

    inline Bytes(const uint8_t* p, int half) {
        const Scale* scales = reinterpret_cast<const Scale*>(p);
#pragma GCC unroll 2
        for (int i = 0; i < kScales; ++i) scale[i] = load(scales + i * kPanelRows + half);
        p += kScales * kPanelRows * sizeof(Scale) + 4 * half;
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) codes[i] = prepare_bytes(load_codes(p + 64 * i));
    }
    inline F add_to(F acc, const ActivationBlock& x) const {
        I dot[2] = {byte_start(x.zero[0]), byte_start(x.zero[1])};
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            dot[0] = dot_bytes(dot[0], codes[i], x.codes + 4 * i);
            dot[1] = dot_bytes(dot[1], codes[4 + i], x.codes + 16 + 4 * i);
        }
        if constexpr (kScales == 1) {
            return fma(scaled_sum(dot, x), scale[0], acc);
        } else {
            acc = fma(mul(to_float(dot[0]), scale[0]), set1(x.scale[0]), acc);
            return fma(mul(to_float(dot[1]), scale[1]), set1(x.scale[1]), acc);
        }
    }
    template <int J>
    inline F weight(int i) const {
        const Codes plain = prepare_bytes(codes[i]);  // its own inverse where it is not empty
        return mul(sub(code_to_float<J>(plain), set1(128.0f)), scale[i / 4 * (kScales - 1)]);
    }
};

using PanelFunction = void (*)(const uint8_t* panel, int blocks, const Input& input, float* out,
                               size_t out_stride);

// out[t * out_stride + r] for the 16 rows r of a panel and T tokens t.
template <class Panel, int T>
void multiply_int8(const uint8_t* panel, int blocks, const Input& input, float* out,
                   size_t out_stride) {
    const ActivationBlock* x = input.blocks;
    const size_t stride = static_cast<size_t>(blocks);
    for (int half = 0; half < kPanelRows; half += kLanes) {
        F acc[T];
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) acc[t] = zero();
        const uint8_t* p = panel;
        for (int b = 0; b < blocks; ++b, p += Panel::kBytes) {
            prefetch<Panel::kBytes>(p);
            const Panel w(p, half);
#pragma GCC unroll 16
            for (int t = 0; t < T; ++t) acc[t] = w.add_to(acc[t], x[t * stride + b]);
        }
#pragma GCC unroll 16
        for (int t = 0; t < T; ++t) store(out + t * out_stride + half, acc[t]);
    }
}

template <class Panel, int T, int J>
inline void multiply_column(const Panel& w, int i, const float* x, size_t stride, F* acc) {
    const F weight = w.template weight<J>(i);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) acc[t] = fma(weight, set1(x[t * stride + 4 * i + J]), acc[t]);
}

template <class Panel, int T>
void multiply_float(const uint8_t* panel, int blocks, const Input& input, float* out,
                    size_t out_stride) {
    const size_t stride = static_cast<size_t>(input.cols);
    for (int half = 0; half < kPanelRows; half += kLanes) {
        F acc[T];
        for (int t = 0; t < T; ++t) acc[t] = zero();
        const uint8_t* p = panel;
        const float* x = input.floats;
        for (int b = 0; b < blocks; ++b, p += Panel::kBytes, x += kBlock) {
            const Panel w(p, half);
#pragma GCC unroll 8
            for (int i = 0; i < 8; ++i) {
                multiply_column<Panel, T, 0>(w, i, x, stride, acc);
                multiply_column<Panel, T, 1>(w, i, x, stride, acc);
                multiply_column<Panel, T, 2>(w, i, x, stride, acc);
                multiply_column<Panel, T, 3>(w, i, x, stride, acc);
            }
        }
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

using NibbleHalf = Nibbles<uint16_t, PanelKind::NibbleHalf>;
using NibbleFloat = Nibbles<float, PanelKind::NibbleFloat>;
using ByteHalf = Bytes<uint16_t, PanelKind::ByteHalf>;
using ByteFloat2 = Bytes<float, PanelKind::ByteFloat2>;

constexpr int kTiles[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16};  // tokens of the tiles that exist
constexpr int kFloatTile = 4;

// By tokens, in the order of kTiles; entries beyond kMaxTile are not built.
#define SGLITE_TILE(Panel, T) \
    (T <= kMaxTile ? multiply_int8<Panel, (T <= kMaxTile ? T : 1)> : nullptr)
#define SGLITE_TILES(Panel)                                                                       \
    {SGLITE_TILE(Panel, 1),  SGLITE_TILE(Panel, 2), SGLITE_TILE(Panel, 3), SGLITE_TILE(Panel, 4), \
     SGLITE_TILE(Panel, 5),  SGLITE_TILE(Panel, 6), SGLITE_TILE(Panel, 7), SGLITE_TILE(Panel, 8), \
     SGLITE_TILE(Panel, 12), SGLITE_TILE(Panel, 16)}
#define SGLITE_FLOAT_TILES(Function, Type) \
    {Function<Type, 1>, Function<Type, 2>, Function<Type, 3>, Function<Type, 4>}

const PanelFunction kInt8Functions[][10] = {SGLITE_TILES(NibbleHalf), SGLITE_TILES(NibbleFloat),
                                            SGLITE_TILES(ByteHalf), SGLITE_TILES(ByteFloat2)};
const PanelFunction kFloatFunctions[kPanelKinds][kFloatTile] = {
    SGLITE_FLOAT_TILES(multiply_float, NibbleHalf), SGLITE_FLOAT_TILES(multiply_float, NibbleFloat),
    SGLITE_FLOAT_TILES(multiply_float, ByteHalf),   SGLITE_FLOAT_TILES(multiply_float, ByteFloat2),
    SGLITE_FLOAT_TILES(multiply_plain, uint16_t),   SGLITE_FLOAT_TILES(multiply_plain, float)};

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
