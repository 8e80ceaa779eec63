// Vectors of 16 lanes on AVX-512 with VNNI. The other simd_*.h define the same names.
#pragma once

#include <immintrin.h>

#include "layout.h"

namespace sglite {
namespace {

constexpr int kLanes = 16;
constexpr int kMostTile = 16;  // tokens that share one read of a panel
constexpr bool kMany = true;   // see kernel_matmul.h, as the next
constexpr bool kTopCodes = true;
constexpr int kScoreVectors = 4;  // see attention: accumulators are queries x vectors
constexpr int kQueryTile = 6;

using F = __m512;
using I = __m512i;
using Codes = __m512i;  // 4 codes in each lane

inline F zero() { return _mm512_setzero_ps(); }
inline F set1(float x) { return _mm512_set1_ps(x); }
inline F load(const float* p) { return _mm512_loadu_ps(p); }
inline F load(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
struct Brain {
    uint16_t bits;
};
inline F load(const Brain* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
inline F load(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}
// The nibbles of bytes: bits [Shift, Shift + 4).
template <int Shift>
inline F load_nibbles(const uint8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m512i moved = _mm512_srli_epi32(_mm512_cvtepu8_epi32(bytes), Shift);
    return _mm512_cvtepi32_ps(_mm512_and_si512(moved, _mm512_set1_epi32(15)));
}
inline void store(float* p, F x) { _mm512_storeu_ps(p, x); }
inline void store(uint16_t* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline F add(F a, F b) { return _mm512_add_ps(a, b); }
inline F sub(F a, F b) { return _mm512_sub_ps(a, b); }
inline F mul(F a, F b) { return _mm512_mul_ps(a, b); }
inline F div(F a, F b) { return _mm512_div_ps(a, b); }
inline F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
inline F min(F a, F b) { return _mm512_min_ps(a, b); }
inline F max(F a, F b) { return _mm512_max_ps(a, b); }  // b where a is NaN
inline F abs(F a) { return _mm512_abs_ps(a); }
inline F with_sign_of(F size, F sign) {
    return _mm512_or_ps(size, _mm512_and_ps(sign, set1(-0.0f)));
}
inline F round(F a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT); }
inline F scale_by_power(F a, F power) { return _mm512_scalef_ps(a, power); }
inline F zero_below(F a, F test, float limit) {  // a where test >= limit, else 0
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(test, set1(limit), _CMP_GE_OQ), a);
}
inline F lane_numbers() {
    return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
inline F keep_lanes(F a, F number, F first, F last, F otherwise) {  // where first <= number <= last
    const __mmask16 inside = _mm512_cmp_ps_mask(number, first, _CMP_GE_OQ) &
                             _mm512_cmp_ps_mask(number, last, _CMP_LE_OQ);
    return _mm512_mask_mov_ps(otherwise, inside, a);
}
inline float first_lane(F a) { return _mm512_cvtss_f32(a); }
inline float sum_lanes(F a) { return _mm512_reduce_add_ps(a); }
inline float max_lanes(F a) { return _mm512_reduce_max_ps(a); }

inline I int_set1(int32_t x) { return _mm512_set1_epi32(x); }
inline F to_float(I a) { return _mm512_cvtepi32_ps(a); }
inline Codes load_codes(const uint8_t* p) {
    return _mm512_loadu_si512(reinterpret_cast<const void*>(p));
}
inline Codes code_zero() { return _mm512_setzero_si512(); }
// Or, with the bits of `mask` of each byte of `from`, moved down by Shift (up where it is below 0).
template <int Shift>
inline Codes put_bits(Codes to, Codes from, uint8_t mask) {
    const __m512i moved =
        Shift < 0 ? _mm512_slli_epi16(from, -Shift & 15) : _mm512_srli_epi16(from, Shift & 15);
    // to | (moved & mask) at once
    return _mm512_ternarylogic_epi32(to, moved, _mm512_set1_epi8(mask), 0xf8);
}
// Each code's entry of a table of 16.
inline Codes look_up(const uint8_t* table, Codes codes) {
    const __m128i entries = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(entries), codes);
}
template <int J>
inline F code_to_float(Codes a) {  // code J of each lane
    return _mm512_cvtepi32_ps(
        _mm512_and_si512(_mm512_srli_epi32(a, 8 * J), _mm512_set1_epi32(255)));
}
inline __m512i broadcast4(const int8_t* x) {
    int32_t four;
    memcpy(&four, x, 4);
    return _mm512_set1_epi32(four);
}
// acc + the dot product of each lane's codes, of 6 bits at most, with x[0..3].
inline I dot_small(I acc, Codes w, const int8_t* x) {
    return _mm512_dpbusd_epi32(acc, w, broadcast4(x));
}
// The same for 8-bit codes, less their offset of 128 once for all that begins at byte_start.
inline I byte_start(int32_t offset) { return _mm512_set1_epi32(offset); }
inline Codes prepare_bytes(Codes w) { return w; }
inline I dot_bytes(I acc, Codes w, const int8_t* x) {
    return _mm512_dpbusd_epi32(acc, w, broadcast4(x));
}

// Rounds 16 values times `inverse` to int8; returns their sum.
inline int32_t quantise16(const float* x, float inverse, int8_t* codes) {
    // max gives its second operand for a NaN: no conversion overflows, and neither does the sum.
    const F bounded = min(max(mul(load(x), set1(inverse)), set1(-127.0f)), set1(127.0f));
    const __m512i whole = _mm512_cvtps_epi32(bounded);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm512_cvtsepi32_epi8(whole));
    return _mm512_reduce_add_epi32(whole);
}

}  // namespace
}  // namespace sglite
