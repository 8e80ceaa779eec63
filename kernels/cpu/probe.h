// What benchmarks run of the kernels by itself: one product, the int8 peak and a plain read. Plain
// data, see layout.h.
#pragma once

#include "step.h"

namespace sglite {

enum class ProbeKind : uint8_t {
    Quantise,  // x to the form that the product reads
    Product,   // out = x * the matrix, as a step computes it
    Dots,      // dot products of int8 without memory traffic
    Read,      // all bytes of the matrix
};

struct Probe {
    ProbeKind kind;
    const ModelWeights* model;  // only its int8_activations
    Matrix matrix;
    const float* x;  // [tokens, cols]
    int tokens;
    Input input;      // [tokens, cols]
    float* out;       // [tokens, rows]
    uint8_t* unused;  // [kProbeChunks, kCacheLine]: results that nobody wants, but must be there
};

constexpr int kProbeChunks = 64;
constexpr int kProbeDots = 12 * 20000;  // vectors of dots in a chunk, of 8 operations a lane

// One thread's walk.
using ProbeFunction = void (*)(const Probe& probe, Phases& phases);

void probe_portable(const Probe& probe, Phases& phases);
#if defined(SGLITE_X86)
void probe_avx2(const Probe& probe, Phases& phases);
void probe_avx512(const Probe& probe, Phases& phases);
#endif

}  // namespace sglite
