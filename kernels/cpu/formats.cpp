#include "formats.h"

#include "half.h"

namespace sglite {
namespace {

float read_half(const uint8_t* at) {
    uint16_t bits;
    memcpy(&bits, at, 2);
    return half_to_float(bits);
}

void set_scale(BlockCodes& out, float scale, float min) {
    out.scale[0] = out.scale[1] = scale;
    out.min = min;
}

// 16 bytes: value j in the low nibble of byte j, value 16 + j in the high one.
void split_nibbles(const uint8_t* bytes, uint8_t* codes) {
    for (int j = 0; j < 16; ++j) {
        codes[j] = bytes[j] & 0x0f;
        codes[16 + j] = bytes[j] >> 4;
    }
}

// | f16 scale | 16 bytes |, value = scale * (code - 8)
void unpack_q4_0(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = row + index * 18;
    const float scale = read_half(block);
    set_scale(out, scale, -8.0f * scale);
    split_nibbles(block + 2, out.codes);
}

// | f16 scale | f16 min | 16 bytes |, value = scale * code + min
void unpack_q4_1(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = row + index * 20;
    set_scale(out, read_half(block), read_half(block + 2));
    split_nibbles(block + 4, out.codes);
}

// | f16 scale | 32 high bits | 16 bytes |, value = scale * (code - 16)
void unpack_q5_0(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = row + index * 22;
    set_scale(out, read_half(block), 0.0f);
    uint32_t high;
    memcpy(&high, block + 2, 4);
    split_nibbles(block + 6, out.codes);
    for (int j = 0; j < kBlock; ++j) {
        out.codes[j] = static_cast<uint8_t>(out.codes[j] + ((high >> j & 1u) << 4) + 112);
    }
}

// | f16 scale | 32 int8 |, value = scale * code
void unpack_q8_0(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = row + index * 34;
    set_scale(out, read_half(block), 0.0f);
    for (int j = 0; j < kBlock; ++j) out.codes[j] = block[2 + j] ^ 0x80;
}

// 256 values: | f16 d | f16 dmin | 8 pairs of 6-bit (scale, min) in 12 bytes | 128 bytes |,
// value = d * scale * code - dmin * min; 32 bytes hold 64 values: low nibbles, then high ones.
void unpack_q4_k(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = row + index / 8 * 144;
    const uint8_t* packed = block + 4;
    const int j = index % 8;
    int scale, min;
    if (j < 4) {
        scale = packed[j] & 63;
        min = packed[j + 4] & 63;
    } else {
        scale = (packed[j + 4] & 0x0f) | (packed[j - 4] >> 6) << 4;
        min = packed[j + 4] >> 4 | (packed[j] >> 6) << 4;
    }
    set_scale(out, read_half(block) * static_cast<float>(scale),
              -read_half(block + 2) * static_cast<float>(min));
    const uint8_t* codes = block + 16 + j / 2 * 32;
    const int shift = j % 2 * 4;
    for (int i = 0; i < kBlock; ++i) out.codes[i] = codes[i] >> shift & 0x0f;
}

// 256 values: | 128 bytes of low nibbles | 64 bytes of high bit pairs | 16 int8 scales | f16 d |,
// value = d * scale * (code - 32), one scale for 16 values.
void unpack_q6_k(const uint8_t* row, int index, BlockCodes& out) {
    const uint8_t* block = row + index / 8 * 210;
    const int half = index % 8 / 4;
    const int quarter = index % 4;
    const uint8_t* low = block + 64 * half + 32 * (quarter % 2);
    const uint8_t* high = block + 128 + 32 * half;
    for (int i = 0; i < kBlock; ++i) {
        const int code = (low[i] >> (quarter / 2 * 4) & 0x0f) | (high[i] >> (2 * quarter) & 3) << 4;
        out.codes[i] = static_cast<uint8_t>(code + 96);
    }
    const float d = read_half(block + 208);
    for (int i = 0; i < 2; ++i) {
        const auto scale = static_cast<int8_t>(block[192 + 8 * half + 2 * quarter + i]);
        out.scale[i] = d * static_cast<float>(scale);
    }
    out.min = 0.0f;
}

constexpr Format kFormats[] = {
    {0, "F32", PanelKind::Float, 1, 4, nullptr},
    {1, "F16", PanelKind::Half, 1, 2, nullptr},
    {2, "Q4_0", PanelKind::NibbleHalf, 32, 18, unpack_q4_0},
    {3, "Q4_1", PanelKind::NibbleHalf, 32, 20, unpack_q4_1},
    {6, "Q5_0", PanelKind::ByteHalf, 32, 22, unpack_q5_0},
    {8, "Q8_0", PanelKind::ByteHalf, 32, 34, unpack_q8_0},
    {12, "Q4_K", PanelKind::NibbleFloat, 256, 144, unpack_q4_k},
    {14, "Q6_K", PanelKind::ByteFloat2, 256, 210, unpack_q6_k},
};

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
    if (format.kind == PanelKind::Half) {
        for (int i = 0; i < cols; ++i) out[i] = read_half(row + 2 * i);
        return;
    }
    const bool nibbles =
        format.kind == PanelKind::NibbleHalf || format.kind == PanelKind::NibbleFloat;
    BlockCodes block;
    for (int index = 0; index < cols / kBlock; ++index) {
        format.unpack(row, index, block);
        for (int i = 0; i < kBlock; ++i) {
            const float code = static_cast<float>(block.codes[i]);
            *out++ =
                nibbles ? code * block.scale[0] + block.min : (code - 128.0f) * block.scale[i / 16];
        }
    }
}

}  // namespace sglite
