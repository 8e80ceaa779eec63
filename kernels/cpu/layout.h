// How weights, activations and the KV cache lie in memory. Plain data only: the kernel units of
// every instruction set include this, so nothing here may instantiate a standard template.
//
// A weight matrix [rows, cols] is cut into panels of 16 rows; a panel is a run of blocks of 32
// columns, each with its scales in front of its codes, so that a panel is one sequential stream:
//
//   | every 8th block of a wide kind: f16 scale x 16 (, f16 min x 16) |
//   | of a narrow kind: f16 scale x 16 (, f16 min x 16); of a wide one: bytes x 16 (, x 16) |
//   | planes of codes |
//
// A block's codes are 8 vectors of 64 bytes: byte 4r + j of vector i is row r, column 4i + j. A
// plane holds some bits of all of them:
//
//   8 bits  8 vectors, as they are
//   4 bits  4 vectors: 2i in the low nibbles of the i-th, 2i + 1 in the high ones
//   2 bits  2 vectors: 4i + j in bits 2j and 2j + 1 of the i-th
//   1 bit   1 vector: i in bit i
//
// 5 bits are 4 and 1, 6 are 4 and 2, 3 are 2 and 1, the lower bits first. 16- and 32-bit values lie
// column by column.
//
// Activations are int8 with one scale per 16, quantised token by token.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace sglite {

constexpr int kPanelRows = 16;
constexpr int kBlock = 32;
constexpr int kPageSize = 16;
constexpr int kChunkKeys = 256;  // attention adds up in chunks of so many keys, from position 0
constexpr int kCacheLine = 64;

enum class PanelKind : uint8_t {
    Four,       // Q4_0
    FourMin,    // Q4_1
    FourWide,   // Q4_K
    Five,       // Q5_0
    FiveMin,    // Q5_1
    FiveWide,   // Q5_K
    Eight,      // Q8_0
    TwoWide,    // Q2_K
    ThreeWide,  // Q3_K
    SixWide,    // Q6_K
    Curve,      // IQ4_NL
    CurveWide,  // IQ4_XS
    Half,       // f16 values
    Brain,      // bf16 values
    Float,      // f32 values
};
constexpr int kPanelKinds = 15;
constexpr int kQuantisedKinds = 12;

constexpr bool is_quantised(PanelKind kind) { return static_cast<int>(kind) < kQuantisedKinds; }

constexpr int kWide = 8;  // blocks under one f16 scale of a wide kind

// What the codes of a kind mean: value = (code - zero) * scale + min, in f32.
struct PanelShape {
    uint8_t bits;       // of a code
    int8_t zero_shift;  // zero is 1 << zero_shift; -1 for a zero of 0
    bool wide;          // scales are an f16 times a byte, see below
    bool min;
    uint8_t bytes;  // bytes of scales of a row in a block of a wide kind
    bool curve;     // codes stand for the values of kCurve

    // Of a wide kind with 1 byte, it is an int8 scale; with 2 and a min, scale and min of the
    // block; with 2 and no min, int8 scales of columns [0, 16) and [16, 32); with 2 and codes of
    // 2 bits, the same, each with the scale in the low and the min in the high nibble.
    constexpr bool nibble_scales() const { return bits == 2; }
    constexpr int groups() const { return bytes == 2 && (!min || nibble_scales()) ? 2 : 1; }
    constexpr int halves() const { return min ? 2 : 1; }
    constexpr int zero() const { return zero_shift < 0 ? 0 : 1 << zero_shift; }
    // Bytes in front of every kWide blocks, and those of one block.
    constexpr size_t header_bytes() const { return wide ? halves() * 2 * kPanelRows : 0; }
    constexpr size_t scale_bytes() const { return (wide ? bytes : halves() * 2) * kPanelRows; }
    constexpr size_t block_bytes() const {
        return scale_bytes() + static_cast<size_t>(bits) * kPanelRows * kBlock / 8;
    }
};

// Of quantised kinds, in their order.
constexpr PanelShape kPanelShapes[kQuantisedKinds] = {
    {4, 3, false, false, 0, false}, {4, -1, false, true, 0, false}, {4, -1, true, true, 2, false},
    {5, 4, false, false, 0, false}, {5, -1, false, true, 0, false}, {5, -1, true, true, 2, false},
    {8, 7, false, false, 0, false}, {2, -1, true, true, 2, false},  {3, 2, true, false, 2, false},
    {6, 5, true, false, 2, false},  {4, 7, false, false, 0, true},  {4, 7, true, false, 1, true},
};

// The values of the 16 codes of a curve, plus 128.
alignas(16) constexpr uint8_t kCurve[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                            129, 141, 153, 166, 181, 197, 217, 241};

constexpr PanelShape panel_shape(PanelKind kind) { return kPanelShapes[static_cast<int>(kind)]; }

// Bytes of `blocks` blocks, 16 rows x 32 columns each; whole runs of kWide for wide kinds.
constexpr size_t panel_bytes(PanelKind kind, int blocks) {
    if (!is_quantised(kind)) {
        return static_cast<size_t>(blocks) * kBlock * kPanelRows *
               (kind == PanelKind::Float ? 4 : 2);
    }
    const PanelShape shape = panel_shape(kind);
    return blocks * shape.block_bytes() + blocks / kWide * shape.header_bytes();
}

struct Matrix {
    const uint8_t* data = nullptr;
    size_t panel_stride = 0;  // bytes from one panel to the next
    int rows = 0;
    int cols = 0;
    PanelKind kind = PanelKind::Float;

    int panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
    int blocks() const { return cols / kBlock; }
};

// 32 activations of one token: x[i] = scale[i / 16] * codes[i]. `sum` is the sum of all x, for
// weights with a min; `zero` is -128 * (sum of 16 codes), which takes back the zero of the weights'
// codes. One scale per 16 nearly halves the error of one per 32 and costs a tenth of the speed.
struct ActivationBlock {
    int8_t codes[kBlock];
    float scale[2];
    float sum;
    int32_t zero[2];
};

}  // namespace sglite
