#include "formats.h"

#include "half.h"

namespace sglite {
namespace {

uint16_t read_u16(const uint8_t* at) {
    uint16_t bits;
    memcpy(&bits, at, 2);
    return bits;
}

uint32_t read_u32(const uint8_t* at) {
    uint32_t bits;
    memcpy(&bits, at, 4);
    return bits;
}

// 16 bytes: value j in the low nibble of byte j, value 16 + j in the high one.
void split_nibbles(const uint8_t* bytes, uint8_t* codes) {
    for (int j = 0; j < 16; ++j) {
        codes[j] = bytes[j] & 0x0f;
        codes[16 + j] = bytes[j] >> 4;
    }
}

void add_fifth_bits(uint32_t bits, uint8_t* codes) {
    for (int j = 0; j < kBlock; ++j) codes[j] |= static_cast<uint8_t>((bits >> j & 1u) << 4);
}

// | f16 scale | 16 bytes |, value = scale * (code - 8); of IQ4_NL scale * curve[code]
void unpack_q4_0(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = row + static_cast<size_t>(index) * 18;
    out.halves[0] = read_u16(block);
    split_nibbles(block + 2, out.codes);
}

// | f16 scale | f16 min | 16 bytes |, value = scale * code + min
void unpack_q4_1(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = row + static_cast<size_t>(index) * 20;
    out.halves[0] = read_u16(block);
    out.halves[1] = read_u16(block + 2);
    split_nibbles(block + 4, out.codes);
}

// | f16 scale | 32 high bits | 16 bytes |, value = scale * (code - 16)
void unpack_q5_0(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = row + static_cast<size_t>(index) * 22;
    out.halves[0] = read_u16(block);
    split_nibbles(block + 6, out.codes);
    add_fifth_bits(read_u32(block + 2), out.codes);
}

// | f16 scale | f16 min | 32 high bits | 16 bytes |, value = scale * code + min
void unpack_q5_1(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = row + static_cast<size_t>(index) * 24;
    out.halves[0] = read_u16(block);
    out.halves[1] = read_u16(block + 2);
    split_nibbles(block + 8, out.codes);
    add_fifth_bits(read_u32(block + 4), out.codes);
}

// | f16 scale | 32 int8 |, value = scale * code
void unpack_q8_0(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = row + static_cast<size_t>(index) * 34;
    out.halves[0] = read_u16(block);
    for (int j = 0; j < kBlock; ++j) out.codes[j] = block[2 + j] ^ 0x80;
}

// The K types hold 256 values in a block.
const uint8_t* block_of(const uint8_t* row, int index, int bytes) {
    return row + static_cast<size_t>(index / kWide) * bytes;
}

// The pair `j` of 8 pairs of 6-bit (scale, min) in 12 bytes.
void take_six_bits(const uint8_t* packed, int j, BlockCodes& out) {
    if (j < 4) {
        out.bytes[0] = packed[j] & 63;
        out.bytes[1] = packed[j + 4] & 63;
    } else {
        out.bytes[0] = (packed[j + 4] & 0x0f) | (packed[j - 4] >> 6) << 4;
        out.bytes[1] = packed[j + 4] >> 4 | (packed[j] >> 6) << 4;
    }
}

// 128 bytes: 32 of them hold 64 values, low nibbles, then high ones.
void take_nibbles(const uint8_t* all, int j, uint8_t* codes) {
    const uint8_t* bytes = all + j / 2 * 32;
    for (int i = 0; i < kBlock; ++i) codes[i] = bytes[i] >> (j % 2 * 4) & 0x0f;
}

// | f16 d | f16 dmin | 12 bytes of pairs | 128 bytes |, value = d * scale * code - dmin * min
void unpack_q4_k(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = block_of(row, index, 144);
    out.halves[0] = read_u16(block);
    out.halves[1] = read_u16(block + 2);
    take_six_bits(block + 4, index % kWide, out);
    take_nibbles(block + 16, index % kWide, out.codes);
}

// | f16 d | f16 dmin | 12 bytes of pairs | 32 bytes: bit j is of block j | 128 bytes |
void unpack_q5_k(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = block_of(row, index, 176);
    const int j = index % kWide;
    out.halves[0] = read_u16(block);
    out.halves[1] = read_u16(block + 2);
    take_six_bits(block + 4, j, out);
    take_nibbles(block + 48, j, out.codes);
    for (int i = 0; i < kBlock; ++i) out.codes[i] |= (block[16 + i] >> j & 1) << 4;
}

// | 128 bytes of low nibbles | 64 bytes of high bit pairs | 16 int8 scales | f16 d |,
// value = d * scale * (code - 32), one scale for 16 values.
void unpack_q6_k(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = block_of(row, index, 210);
    const int half = index % kWide / 4, quarter = index % 4;
    const uint8_t* low = block + 64 * half + 32 * (quarter % 2);
    const uint8_t* high = block + 128 + 32 * half;
    for (int i = 0; i < kBlock; ++i) {
        out.codes[i] = static_cast<uint8_t>((low[i] >> (quarter / 2 * 4) & 0x0f) |
                                            (high[i] >> (2 * quarter) & 3) << 4);
    }
    memcpy(out.bytes, block + 192 + 8 * half + 2 * quarter, 2);
    out.halves[0] = read_u16(block + 208);
}

// 64 bytes: 32 of them hold 128 values, two bits each.
uint8_t bit_pair(const uint8_t* all, int j, int i) {
    return all[j / 4 * 32 + i] >> (j % 4 * 2) & 3;
}

// | 16 bytes: scale in the low, min in the high nibble, for 16 values | 64 bytes | f16 d | f16
// dmin |, value = d * scale * code - dmin * min
void unpack_q2_k(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = block_of(row, index, 84);
    const int j = index % kWide;
    for (int i = 0; i < kBlock; ++i) out.codes[i] = bit_pair(block + 16, j, i);
    memcpy(out.bytes, block + 2 * j, 2);
    out.halves[0] = read_u16(block + 80);
    out.halves[1] = read_u16(block + 82);
}

// | 32 bytes: bit j is of block j | 64 bytes | 12 bytes of 6-bit scales | f16 d |,
// value = d * (scale - 32) * (code - 4), one scale for 16 values: its low nibble in byte s % 8, its
// high bits in byte 8 + s % 4.
void unpack_q3_k(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = block_of(row, index, 110);
    const int j = index % kWide;
    for (int i = 0; i < kBlock; ++i) {
        out.codes[i] = static_cast<uint8_t>(bit_pair(block + 32, j, i) | (block[i] >> j & 1) << 2);
    }
    const uint8_t* scales = block + 96;
    for (int i = 0; i < 2; ++i) {
        const int s = 2 * j + i;
        const int low = scales[s % 8] >> (s / 8 * 4) & 0x0f;
        const int high = scales[8 + s % 4] >> (s / 4 * 2) & 3;
        out.bytes[i] = static_cast<uint8_t>((low | high << 4) - 32);
    }
    out.halves[0] = read_u16(block + 108);
}

// | f16 d | u16: high bits of 8 scales | 4 bytes: their low nibbles | 8 x 16 bytes |,
// value = d * (scale - 32) * curve[code]
void unpack_iq4_xs(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = block_of(row, index, 136);
    const int j = index % kWide;
    out.halves[0] = read_u16(block);
    const int high = read_u16(block + 2) >> (2 * j) & 3;
    const int low = block[4 + j / 2] >> (j % 2 * 4) & 0x0f;
    out.bytes[0] = static_cast<uint8_t>((low | high << 4) - 32);
    split_nibbles(block + 8 + 16 * j, out.codes);
}

constexpr Format kFormats[] = {
    {0, "F32", PanelKind::Float, 1, 4, nullptr},
    {1, "F16", PanelKind::Half, 1, 2, nullptr},
    {2, "Q4_0", PanelKind::Four, 32, 18, unpack_q4_0},
    {3, "Q4_1", PanelKind::FourMin, 32, 20, unpack_q4_1},
    {6, "Q5_0", PanelKind::Five, 32, 22, unpack_q5_0},
    {7, "Q5_1", PanelKind::FiveMin, 32, 24, unpack_q5_1},
    {8, "Q8_0", PanelKind::Eight, 32, 34, unpack_q8_0},
    {10, "Q2_K", PanelKind::TwoWide, 256, 84, unpack_q2_k},
    {11, "Q3_K", PanelKind::ThreeWide, 256, 110, unpack_q3_k},
    {12, "Q4_K", PanelKind::FourWide, 256, 144, unpack_q4_k},
    {13, "Q5_K", PanelKind::FiveWide, 256, 176, unpack_q5_k},
    {14, "Q6_K", PanelKind::SixWide, 256, 210, unpack_q6_k},
    {20, "IQ4_NL", PanelKind::Curve, 32, 18, unpack_q4_0},
    {23, "IQ4_XS", PanelKind::CurveWide, 256, 136, unpack_iq4_xs},
    {30, "BF16", PanelKind::Brain, 1, 2, nullptr},
};

// Scale and min of columns [16 * group, 16 * group + 16) of a block.
struct GroupScale {
    float scale, min;
};

GroupScale group_scale(const PanelShape& shape, const BlockCodes& block, int group) {
    float scale = half_to_float(block.halves[0]);
    float min = shape.min ? half_to_float(block.halves[1]) : 0.0f;
    if (!shape.wide) return {scale, min};
    const uint8_t* bytes = block.bytes + (shape.groups() == 2 ? group : 0);
    if (shape.nibble_scales()) {
        return {scale * static_cast<float>(bytes[0] & 0x0f),
                -min * static_cast<float>(bytes[0] >> 4)};
    }
    scale *= static_cast<float>(static_cast<int8_t>(bytes[0]));
    return {scale, shape.min ? -min * static_cast<float>(bytes[1]) : 0.0f};
}

}  // namespace

const Format* find_format(int id) {
    for (const Format& format : kFormats) {
        if (format.id == id) return &format;
    }
    return nullptr;
}

void dequantise_row(const Format& format, const uint8_t* row, int cols, float* out) {
    if (format.kind == PanelKind::Float) {
        memcpy(out, row, static_cast<size_t>(cols) * 4);
        return;
    }
    if (!is_quantised(format.kind)) {
        const auto convert = format.kind == PanelKind::Half ? half_to_float : brain_to_float;
        for (int i = 0; i < cols; ++i) out[i] = convert(read_u16(row + 2 * static_cast<size_t>(i)));
        return;
    }
    const PanelShape shape = panel_shape(format.kind);
    BlockCodes block;
    for (int index = 0; index < cols / kBlock; ++index) {
        format.unpack(row, index, block);
        for (int i = 0; i < kBlock; ++i) {
            const auto [scale, min] = group_scale(shape, block, i / 16);
            const int code = shape.curve ? kCurve[block.codes[i]] : block.codes[i];
            const float value = static_cast<float>(code - shape.zero()) * scale;
            *out++ = shape.min ? value + min : value;
        }
    }
}

}  // namespace sglite
