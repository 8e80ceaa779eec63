#include "pack.h"

namespace sglite {
namespace {

// The planes of layout.h; `to` is the row's place in their first vector.
void put_planes(uint8_t* to, int bits, const uint8_t* codes) {
    if (bits == 8) {
        for (int i = 0; i < 8; ++i) memcpy(to + 64 * i, codes + 4 * i, 4);
        return;
    }
    int shift = 0;  // bits of the codes that lie in the planes before
    int first = 0;  // the next plane's first vector
    for (int plane = 4; plane > 0; plane /= 2) {
        if ((bits & plane) == 0) continue;
        const int sharing = 8 / plane;  // vectors of codes in one of the plane
        for (int i = 0; i < 8; ++i) {
            for (int j = 0; j < 4; ++j) {
                const int part = codes[4 * i + j] >> shift & ((1 << plane) - 1);
                uint8_t& byte = to[64 * (first + i / sharing) + j];
                byte = static_cast<uint8_t>(byte | part << (i % sharing * plane));
            }
        }
        shift += plane;
        first += plane;
    }
}

// Writes to zeroed memory.
void pack_row(uint8_t* block, const PanelShape& shape, int row, const BlockCodes& in) {
    if (shape.wide) {
        for (int i = 0; i < shape.bytes; ++i) block[kPanelRows * i + row] = in.bytes[i];
    } else {
        for (int i = 0; i < shape.halves(); ++i) {
            memcpy(block + 2 * (kPanelRows * i + row), in.halves + i, 2);
        }
    }
    put_planes(block + shape.scale_bytes() + 4 * row, shape.bits, in.codes);
}

void pack_rows(const Matrix& matrix, uint8_t* to, const Format& format, const uint8_t* source,
               int rows) {
    const PanelShape shape = panel_shape(matrix.kind);
    const size_t row_bytes = format.row_bytes(matrix.cols);
    BlockCodes codes;
    for (int r = 0; r < rows; ++r) {
        uint8_t* at = to;
        for (int b = 0; b < matrix.blocks(); ++b, at += shape.block_bytes()) {
            format.unpack(source + r * row_bytes, b, codes);
            if (shape.wide && b % kWide == 0) {
                for (int i = 0; i < shape.halves(); ++i) {
                    memcpy(at + 2 * (kPanelRows * i + r), codes.halves + i, 2);
                }
                at += shape.header_bytes();
            }
            pack_row(at, shape, r, codes);
        }
    }
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
    for (int panel = begin; panel < end; ++panel) {
        uint8_t* to = data + panel * matrix.panel_stride;
        const int first = panel * kPanelRows;
        const int rows = matrix.rows - first < kPanelRows ? matrix.rows - first : kPanelRows;
        if (matrix.kind == PanelKind::Float) {
            pack_plain<float>(matrix, to, source, first, rows);
        } else if (!is_quantised(matrix.kind)) {
            pack_plain<uint16_t>(matrix, to, source, first, rows);
        } else {
            pack_rows(matrix, to, format, source + first * format.row_bytes(matrix.cols), rows);
        }
    }
}

}  // namespace sglite
