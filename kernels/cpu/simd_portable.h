// Vectors of 16 lanes as plain loops, for every other processor; also the reading version of what
// the other simd_*.h do. Products are rounded before they are added: a fused multiply-add would be
// a library call where the processor has none.
#pragma once

#include <math.h>

#include "half.h"
#include "layout.h"

namespace sglite {
namespace {

constexpr int kLanes = 16;
constexpr int kMostTile = 2;
constexpr bool kMany = false;
constexpr bool kTopCodes = false;
constexpr int kScoreVectors = 2;
constexpr int kQueryTile = 2;

struct F {
    float lane[kLanes];
};
struct I {
    int32_t lane[kLanes];
};
struct Codes {
    uint8_t code[kLanes * 4];
};

// To the nearest even whole number, for |x| < 2^22.
inline float round1(float x) { return (x + 12582912.0f) - 12582912.0f; }

template <class Function>
inline F lanes(Function f) {
    F out;
    for (int i = 0; i < kLanes; ++i) out.lane[i] = f(i);
    return out;
}

inline F set1(float x) {
    return lanes([&](int) { return x; });
}
inline F zero() { return set1(0.0f); }
inline F load(const float* p) {
    return lanes([&](int i) { return p[i]; });
}
inline F load(const uint16_t* p) {
    return lanes([&](int i) { return half_to_float(p[i]); });
}
struct Brain {
    uint16_t bits;
};
inline F load(const Brain* p) {
    return lanes([&](int i) { return brain_to_float(p[i].bits); });
}
inline F load(const int8_t* p) {
    return lanes([&](int i) { return static_cast<float>(p[i]); });
}
template <int Shift>
inline F load_nibbles(const uint8_t* p) {
    return lanes([&](int i) { return static_cast<float>(p[i] >> Shift & 15); });
}
inline void store(float* p, const F& x) { memcpy(p, x.lane, sizeof x.lane); }
inline void store(uint16_t* p, const F& x) {
    for (int i = 0; i < kLanes; ++i) p[i] = float_to_half(x.lane[i]);
}
inline F add(const F& a, const F& b) {
    return lanes([&](int i) { return a.lane[i] + b.lane[i]; });
}
inline F sub(const F& a, const F& b) {
    return lanes([&](int i) { return a.lane[i] - b.lane[i]; });
}
inline F mul(const F& a, const F& b) {
    return lanes([&](int i) { return a.lane[i] * b.lane[i]; });
}
inline F div(const F& a, const F& b) {
    return lanes([&](int i) { return a.lane[i] / b.lane[i]; });
}
inline F fma(const F& a, const F& b, const F& c) {
    return lanes([&](int i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
}
inline F min(const F& a, const F& b) {
    return lanes([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline F max(const F& a, const F& b) {
    return lanes([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline F abs(const F& a) {
    return lanes([&](int i) { return fabsf(a.lane[i]); });
}
inline F with_sign_of(const F& size, const F& sign) {
    return lanes([&](int i) { return copysignf(size.lane[i], sign.lane[i]); });
}
inline F round(const F& a) {
    return lanes([&](int i) { return round1(a.lane[i]); });
}
inline F scale_by_power(const F& a, const F& power) {
    return lanes([&](int i) {
        const uint32_t bits = static_cast<uint32_t>(static_cast<int32_t>(power.lane[i]) + 127)
                              << 23;
        float scale;
        memcpy(&scale, &bits, 4);
        return a.lane[i] * scale;
    });
}
inline F zero_below(const F& a, const F& test, float limit) {
    return lanes([&](int i) { return test.lane[i] >= limit ? a.lane[i] : 0.0f; });
}
inline F lane_numbers() {
    return lanes([](int i) { return static_cast<float>(i); });
}
inline F keep_lanes(const F& a, const F& number, const F& first, const F& last,
                    const F& otherwise) {
    return lanes([&](int i) {
        const bool inside = number.lane[i] >= first.lane[i] && number.lane[i] <= last.lane[i];
        return inside ? a.lane[i] : otherwise.lane[i];
    });
}
inline float first_lane(const F& a) { return a.lane[0]; }
inline float sum_lanes(const F& a) {
    float sum = 0.0f;
    for (float lane : a.lane) sum += lane;
    return sum;
}
inline float max_lanes(const F& a) {
    float most = a.lane[0];
    for (float lane : a.lane) most = lane > most ? lane : most;
    return most;
}

inline I int_set1(int32_t x) {
    I out;
    for (int i = 0; i < kLanes; ++i) out.lane[i] = x;
    return out;
}
inline F to_float(const I& a) {
    return lanes([&](int i) { return static_cast<float>(a.lane[i]); });
}
inline Codes load_codes(const uint8_t* p) {
    Codes out;
    memcpy(out.code, p, sizeof out.code);
    return out;
}
inline Codes code_zero() { return Codes{}; }
template <int Shift>
inline Codes put_bits(const Codes& to, const Codes& from, uint8_t mask) {
    Codes out;
    for (int i = 0; i < kLanes * 4; ++i) {
        const int moved = Shift < 0 ? from.code[i] << (-Shift & 7) : from.code[i] >> (Shift & 7);
        out.code[i] = static_cast<uint8_t>(to.code[i] | (moved & mask));
    }
    return out;
}
inline Codes look_up(const uint8_t* table, const Codes& codes) {
    Codes out;
    for (int i = 0; i < kLanes * 4; ++i) out.code[i] = table[codes.code[i] & 15];
    return out;
}
template <int J>
inline F code_to_float(const Codes& a) {
    return lanes([&](int i) { return static_cast<float>(a.code[4 * i + J]); });
}
inline I dot_small(const I& acc, const Codes& w, const int8_t* x) {
    I out;
    for (int i = 0; i < kLanes; ++i) {
        const uint8_t* code = w.code + 4 * i;
        out.lane[i] =
            acc.lane[i] + code[0] * x[0] + code[1] * x[1] + code[2] * x[2] + code[3] * x[3];
    }
    return out;
}
inline I byte_start(int32_t offset) { return int_set1(offset); }
inline const Codes& prepare_bytes(const Codes& w) { return w; }
inline I dot_bytes(const I& acc, const Codes& w, const int8_t* x) { return dot_small(acc, w, x); }

inline int32_t quantise16(const float* x, float inverse, int8_t* codes) {
    int32_t sum = 0;
    for (int i = 0; i < 16; ++i) {
        float whole = round1(x[i] * inverse);
        if (!(whole >= -127.0f)) whole = -127.0f;  // catches NaN, whose conversion is undefined
        codes[i] = static_cast<int8_t>(whole < 127.0f ? whole : 127.0f);
        sum += codes[i];
    }
    return sum;
}

}  // namespace
}  // namespace sglite
