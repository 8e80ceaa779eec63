// Vectors of 8 lanes on AVX2 with FMA and F16C. See simd_avx512.h for what the names mean.
#pragma once

#include <immintrin.h>

#include "layout.h"

namespace sglite {
namespace {

constexpr int kLanes = 8;
constexpr int kMostTile = 4;
constexpr bool kMany = true;
constexpr bool kTopCodes = false;
constexpr int kScoreVectors = 2;
constexpr int kQueryTile = 4;

using F = __m256;
using I = __m256i;
using Codes = __m256i;

inline F zero() { return _mm256_setzero_ps(); }
inline F set1(float x) { return _mm256_set1_ps(x); }
inline F load(const float* p) { return _mm256_loadu_ps(p); }
inline F load(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
struct Brain {
    uint16_t bits;
};
inline F load(const Brain* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline F load(const int8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}
template <int Shift>
inline F load_nibbles(const uint8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    const __m256i moved = _mm256_srli_epi32(_mm256_cvtepu8_epi32(bytes), Shift);
    return _mm256_cvtepi32_ps(_mm256_and_si256(moved, _mm256_set1_epi32(15)));
}
inline void store(float* p, F x) { _mm256_storeu_ps(p, x); }
inline void store(uint16_t* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline F add(F a, F b) { return _mm256_add_ps(a, b); }
inline F sub(F a, F b) { return _mm256_sub_ps(a, b); }
inline F mul(F a, F b) { return _mm256_mul_ps(a, b); }
inline F div(F a, F b) { return _mm256_div_ps(a, b); }
inline F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
inline F min(F a, F b) { return _mm256_min_ps(a, b); }
inline F max(F a, F b) { return _mm256_max_ps(a, b); }
inline F abs(F a) { return _mm256_andnot_ps(set1(-0.0f), a); }
inline F with_sign_of(F size, F sign) {
    return _mm256_or_ps(size, _mm256_and_ps(sign, set1(-0.0f)));
}
inline F round(F a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline F scale_by_power(F a, F power) {  // for powers of normal numbers
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(power), _mm256_set1_epi32(127));
    return mul(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}
inline F zero_below(F a, F test, float limit) {
    return _mm256_and_ps(a, _mm256_cmp_ps(test, set1(limit), _CMP_GE_OQ));
}
inline F lane_numbers() { return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7); }
inline F keep_lanes(F a, F number, F first, F last, F otherwise) {
    const F inside = _mm256_and_ps(_mm256_cmp_ps(number, first, _CMP_GE_OQ),
                                   _mm256_cmp_ps(number, last, _CMP_LE_OQ));
    return _mm256_blendv_ps(otherwise, a, inside);
}
inline float first_lane(F a) { return _mm256_cvtss_f32(a); }
inline float sum_lanes(F a) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}
inline float max_lanes(F a) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
}

inline I int_set1(int32_t x) { return _mm256_set1_epi32(x); }
inline F to_float(I a) { return _mm256_cvtepi32_ps(a); }
inline Codes load_codes(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline Codes code_zero() { return _mm256_setzero_si256(); }
template <int Shift>
inline Codes put_bits(Codes to, Codes from, uint8_t mask) {
    const __m256i moved =
        Shift < 0 ? _mm256_slli_epi16(from, -Shift & 15) : _mm256_srli_epi16(from, Shift & 15);
    return _mm256_or_si256(to, _mm256_and_si256(moved, _mm256_set1_epi8(mask)));
}
inline Codes look_up(const uint8_t* table, Codes codes) {
    const __m128i entries = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), codes);
}
template <int J>
inline F code_to_float(Codes a) {
    return _mm256_cvtepi32_ps(
        _mm256_and_si256(_mm256_srli_epi32(a, 8 * J), _mm256_set1_epi32(255)));
}
inline __m256i broadcast4(const int8_t* x) {
    int32_t four;
    memcpy(&four, x, 4);
    return _mm256_set1_epi32(four);
}
inline I dot_vectors(I acc, __m256i w, __m256i x) {
    const __m256i pairs = _mm256_maddubs_epi16(w, x);
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline I dot_small(I acc, Codes w, const int8_t* x) { return dot_vectors(acc, w, broadcast4(x)); }
// maddubs saturates on offset codes; |code| * (x with the sign of the code) stays below 2^15.
inline I byte_start(int32_t) { return int_set1(0); }
inline Codes prepare_bytes(Codes w) { return _mm256_xor_si256(w, _mm256_set1_epi8(-128)); }
inline I dot_bytes(I acc, Codes w, const int8_t* x) {
    return dot_vectors(acc, _mm256_abs_epi8(w), _mm256_sign_epi8(broadcast4(x), w));
}

inline int32_t quantise16(const float* x, float inverse, int8_t* codes) {
    // max gives its second operand for a NaN: no conversion overflows, and neither does the sum.
    const auto whole = [&](const float* from) {
        const F scaled = mul(load(from), set1(inverse));
        return _mm256_cvtps_epi32(min(max(scaled, set1(-127.0f)), set1(127.0f)));
    };
    const __m256i a = whole(x), b = whole(x + 8);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), bytes);
    const __m256i both = _mm256_add_epi32(a, b);
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1)));
}

}  // namespace
}  // namespace sglite
