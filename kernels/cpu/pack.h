// From the rows of a GGUF tensor to the panels of layout.h.
#pragma once

#include "formats.h"

namespace sglite {

// Writes panels [begin, end) of `matrix` to the zeroed memory at `data`, which is where
// matrix.data points.
void pack_panels(const Matrix& matrix, uint8_t* data, const Format& format, const uint8_t* source,
                 int begin, int end);

}  // namespace sglite
