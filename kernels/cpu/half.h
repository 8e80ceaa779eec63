// f16 <-> f32, and bf16, in plain integer code, rounding to the nearest even as the hardware does.
#pragma once

#include <stdint.h>
#include <string.h>

namespace sglite {
namespace {

[[maybe_unused]] inline float half_to_float(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t rest = half & 0x7fffu;
    uint32_t bits;
    if (rest >= 0x7c00u) {
        bits = sign | 0x7f800000u | (rest & 0x3ffu) << 13;
    } else if (rest >= 0x400u) {
        bits = sign | ((rest << 13) + 0x38000000u);
    } else {  // zero or subnormal: rest * 2^-24
        float value = static_cast<float>(rest) * 5.9604644775390625e-8f;
        memcpy(&bits, &value, 4);
        bits |= sign;
    }
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

[[maybe_unused]] inline uint16_t float_to_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return sign | 0x7e00u;
    if (bits >= 0x477ff000u) return sign | 0x7c00u;  // rounds to infinity
    if (bits < 0x38800000u) {  // below the smallest normal: let an addition round at 2^-24
        float magnitude;
        memcpy(&magnitude, &bits, 4);
        magnitude += 0.5f;
        memcpy(&bits, &magnitude, 4);
        return static_cast<uint16_t>(sign | (bits - 0x3f000000u));
    }
    const uint32_t odd = bits >> 13 & 1u;
    return static_cast<uint16_t>(sign | ((bits - 0x38000000u + 0xfffu + odd) >> 13));
}

[[maybe_unused]] inline float brain_to_float(uint16_t brain) {
    const uint32_t bits = static_cast<uint32_t>(brain) << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

}  // namespace
}  // namespace sglite
