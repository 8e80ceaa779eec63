// The weight types of GGUF: their blocks, and how 32 values of one become codes, scales and a min.
// A new type is one unpack function and one line in the table of formats.cpp.
#pragma once

#include "layout.h"

namespace sglite {

// 32 values as a panel stores them: what is not in the panel's kind is left as it is.
struct BlockCodes {
    uint8_t codes[kBlock];
    uint16_t halves[2];  // f16 scale and min; of a wide kind those of all kWide blocks
    uint8_t bytes[2];    // of a wide kind
};

struct Format {
    int id;  // ggml's number of the type
    const char* name;
    PanelKind kind;
    int block;  // values in a block of the file
    int bytes;  // bytes of such a block
    // Values [32 * index, 32 * index + 32) of the row. Null for f16, bf16 and f32.
    void (*unpack)(const uint8_t* row, int index, BlockCodes& out);

    size_t row_bytes(int cols) const { return static_cast<size_t>(cols) / block * bytes; }
};

// Null for a type that is not supported.
const Format* find_format(int id);

// The `cols` values of a row as f32.
void dequantise_row(const Format& format, const uint8_t* row, int cols, float* out);

}  // namespace sglite
