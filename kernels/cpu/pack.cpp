#include "pack.h"

#include "half.h"

namespace sglite {
namespace {

void put_scale(uint8_t* at, int row, float value, bool half) {
    if (half) {
        const uint16_t bits = float_to_half(value);
        memcpy(at + 2 * row, &bits, 2);
    } else {
        memcpy(at + 4 * row, &value, 4);
    }
}

void pack_row(uint8_t* block, PanelKind kind, int row, const BlockCodes& in) {
    const bool half = kind == PanelKind::NibbleHalf || kind == PanelKind::ByteHalf;
    const int scales = half ? 2 * kPanelRows : 4 * kPanelRows;  // bytes of 16 scales
    put_scale(block, row, in.scale[0], half);
    if (kind == PanelKind::NibbleHalf || kind == PanelKind::NibbleFloat) {
        put_scale(block + scales, row, in.min, half);
        uint8_t* codes = block + 2 * scales + 4 * row;
        for (int i = 0; i < 4; ++i) {
            for (int j = 0; j < 4; ++j) {
                const uint8_t* pair = in.codes + 8 * i + j;
                codes[64 * i + j] = static_cast<uint8_t>(pair[0] | pair[4] << 4);
            }
        }
        return;
    }
    uint8_t* codes = block + scales;
    if (kind == PanelKind::ByteFloat2) {
        put_scale(codes, row, in.scale[1], half);
        codes += scales;
    }
    codes += 4 * row;
    for (int i = 0; i < 8; ++i) memcpy(codes + 64 * i, in.codes + 4 * i, 4);
}

template <class Value>
void pack_plain(const Matrix& matrix, uint8_t* to, const uint8_t* source, int first, int rows) {
    for (int r = 0; r < rows; ++r) {
        const uint8_t* row = source + static_cast<size_t>(first + r) * matrix.cols * sizeof(Value);
        for (int k = 0; k < matrix.cols; ++k) {
            memcpy(to + (static_cast<size_t>(k) * kPanelRows + r) * sizeof(Value),
                   row + static_cast<size_t>(k) * sizeof(Value), sizeof(Value));
        }
    }
}

}  // namespace

void pack_panels(const Matrix& matrix, uint8_t* data, const Format& format, const uint8_t* source,
                 int begin, int end) {
    const size_t row_bytes = format.row_bytes(matrix.cols);
    const size_t block_bytes = panel_block_bytes(matrix.kind);
    for (int panel = begin; panel < end; ++panel) {
        uint8_t* to = data + panel * matrix.panel_stride;
        const int first = panel * kPanelRows;
        const int rows = matrix.rows - first < kPanelRows ? matrix.rows - first : kPanelRows;
        if (matrix.kind == PanelKind::Float) {
            pack_plain<float>(matrix, to, source, first, rows);
        } else if (matrix.kind == PanelKind::Half) {
            pack_plain<uint16_t>(matrix, to, source, first, rows);
        } else {
            BlockCodes codes;
            for (int r = 0; r < rows; ++r) {
                const uint8_t* row = source + (first + r) * row_bytes;
                for (int b = 0; b < matrix.blocks(); ++b) {
                    format.unpack(row, b, codes);
                    pack_row(to + b * block_bytes, matrix.kind, r, codes);
                }
            }
        }
    }
}

}  // namespace sglite
