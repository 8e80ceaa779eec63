// Row-wise functions: exponential, norms, gating, rotation, quantisation. Each result depends on
// its row alone, in one order of additions.
#pragma once

#include <math.h>

#include "step.h"

namespace sglite {
namespace {

// Within 2 units in the last place for -87 <= x <= 88, exp(0) = 1; 0 below.
inline F exp(F x) {
    const F bounded = min(max(x, set1(-87.0f)), set1(88.0f));
    const F n = round(mul(bounded, set1(1.44269504f)));
    F r = fma(n, set1(-0.693359375f), bounded);
    r = fma(n, set1(2.12194440e-4f), r);
    F y = set1(1.9875691500e-4f);
    y = fma(y, r, set1(1.3981999507e-3f));
    y = fma(y, r, set1(8.3334519073e-3f));
    y = fma(y, r, set1(4.1665795894e-2f));
    y = fma(y, r, set1(1.6666665459e-1f));
    y = fma(y, r, set1(5.0000001201e-1f));
    y = add(fma(y, mul(r, r), r), set1(1.0f));
    return zero_below(scale_by_power(y, n), x, -87.0f);
}

// cap * tanh(x / cap): x where it is small against the cap, never beyond it.
inline F soft_cap(F x, float cap) {
    const F y = exp(mul(abs(x), set1(-2.0f / cap)));
    const F size = mul(set1(cap), div(sub(set1(1.0f), y), add(set1(1.0f), y)));
    return with_sign_of(size, x);
}

inline float exp1(float x) { return first_lane(exp(set1(x))); }

// out = x / rms(x) * weight, for a multiple of 16 values; `out` may be `x`.
inline void rms_norm(const float* x, const float* weight, int count, float epsilon, float* out) {
    F squares = zero();
    for (int i = 0; i < count; i += kLanes) {
        const F v = load(x + i);
        squares = fma(v, v, squares);
    }
    const float mean = sum_lanes(squares) / static_cast<float>(count);
    const F factor = set1(1.0f / sqrtf(mean + epsilon));
    for (int i = 0; i < count; i += kLanes) {
        store(out + i, mul(mul(load(x + i), factor), load(weight + i)));
    }
}

inline void add_to(float* x, const float* y, int count) {
    for (int i = 0; i < count; i += kLanes) store(x + i, add(load(x + i), load(y + i)));
}

// out[i] = activation(gate[i]) * up[i] for 16 values.
inline void gate16(Activation activation, const float* gate, const float* up, float* out) {
    for (int i = 0; i < kPanelRows; i += kLanes) {
        const F x = load(gate + i);
        F inner = x;  // both activations are x * sigmoid(inner)
        if (activation == Activation::GeluTanh) {
            const F cube = mul(mul(x, x), x);
            inner = mul(fma(cube, set1(0.044715f), x), set1(1.5957691216f));
        }
        const F sigmoid = div(set1(1.0f), add(set1(1.0f), exp(sub(zero(), inner))));
        store(out + i, mul(mul(x, sigmoid), load(up + i)));
    }
}

inline void rotate(float* x, const float* cosines, const float* sines, int dim, bool interleaved) {
    const int half = dim / 2;
    if (interleaved) {
        for (int i = 0; i < half; ++i) {
            const float a = x[2 * i], b = x[2 * i + 1];
            x[2 * i] = a * cosines[i] - b * sines[i];
            x[2 * i + 1] = b * cosines[i] + a * sines[i];
        }
    } else {
        for (int i = 0; i < half; ++i) {
            const float a = x[i], b = x[half + i];
            x[i] = a * cosines[i] - b * sines[i];
            x[half + i] = b * cosines[i] + a * sines[i];
        }
    }
}

inline void quantise(const float* x, int count, ActivationBlock* out) {
    for (int i = 0; i < count; i += kBlock, ++out) {
        float sums[2];
        for (int half = 0; half < 2; ++half) {
            const float* from = x + i + 16 * half;
            F most = zero();
            for (int j = 0; j < 16; j += kLanes) most = max(abs(load(from + j)), most);
            const float peak = max_lanes(most);
            const float scale = peak / 127.0f;
            const int32_t sum =
                quantise16(from, peak > 0.0f ? 127.0f / peak : 0.0f, out->codes + 16 * half);
            out->scale[half] = scale;
            out->zero[half] = -128 * sum;
            sums[half] = scale * static_cast<float>(sum);
        }
        out->sum = sums[0] + sums[1];
    }
}

}  // namespace
}  // namespace sglite
