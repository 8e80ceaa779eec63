// How weights, activations and the KV cache lie in memory. Plain data only: the kernel units of
// every instruction set include this, so nothing here may instantiate a standard template.
//
// A weight matrix [rows, cols] is cut into panels of 16 rows; a panel is a run of blocks of 32
// columns, each with its scales in front of its codes, so that a panel is one sequential stream:
//
//   Nibble  | scale x 16 | min x 16 | 4 x 64 bytes: byte 4r + j of vector i is row r with column
//           8i + j in the low and column 8i + 4 + j in the high nibble; value = code * scale + min
//   Byte    | scale x 16 (x 2) | 8 x 64 bytes: byte 4r + j of vector i is row r, column 4i + j;
//           value = (code - 128) * scale
//   Float   | 32 x 16 values, column by column
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
    NibbleHalf,   // 4-bit codes, scale and min in f16, one of each per 32 columns
    NibbleFloat,  // 4-bit codes, scale and min in f32
    ByteHalf,     // 8-bit codes, one f16 scale per 32 columns
    ByteFloat2,   // 8-bit codes, one f32 scale per 16 columns
    Half,         // f16 values
    Float,        // f32 values
};
constexpr int kPanelKinds = 6;

// Bytes of one block: 16 rows x 32 columns.
constexpr size_t panel_block_bytes(PanelKind kind) {
    switch (kind) {
        case PanelKind::NibbleHalf:
            return 2 * 32 + 256;
        case PanelKind::NibbleFloat:
            return 2 * 64 + 256;
        case PanelKind::ByteHalf:
            return 32 + 512;
        case PanelKind::ByteFloat2:
            return 2 * 64 + 512;
        case PanelKind::Half:
            return 1024;
        case PanelKind::Float:
            break;
    }
    return 2048;
}

constexpr bool is_quantised(PanelKind kind) {
    return kind != PanelKind::Half && kind != PanelKind::Float;
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
// weights with a min; `zero` is -128 * (sum of 16 codes), which takes back the offset of 8-bit
// codes. One scale per 16 nearly halves the error of one per 32 and costs a tenth of the speed.
struct ActivationBlock {
    int8_t codes[kBlock];
    float scale[2];
    float sum;
    int32_t zero[2];
};

}  // namespace sglite
