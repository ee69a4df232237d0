// Vector helpers for the files compiled for AVX2. Everything is static: an inline function with
// external linkage could be picked by the linker for code that runs on older processors.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/exp_constants.h"

namespace mx8::cpu::avx2 {

// exp(x) for x <= 0 or NaN; kernels/exp_constants.h has the steps.
static inline __m256 exp_nonpositive(__m256 x) {
  namespace c = exp_f32;
  const __m256 n =
      _mm256_sub_ps(_mm256_fmadd_ps(x, _mm256_set1_ps(c::kLog2E), _mm256_set1_ps(c::kRound)),
                    _mm256_set1_ps(c::kRound));
  const __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(c::kLn2Low),
                                    _mm256_fnmadd_ps(n, _mm256_set1_ps(c::kLn2High), x));
  __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(c::kP0), r, _mm256_set1_ps(c::kP1));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c::kP2));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c::kP3));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c::kP4));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c::kP5));
  p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
  // The conversion gives 0x80000000 for NaN, whose shift is 0: NaN stays.
  const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  p = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
  return _mm256_and_ps(p, _mm256_cmp_ps(x, _mm256_set1_ps(c::kMin), _CMP_NLT_UQ));
}

// The sum of the lanes in the order of reference::sum8: halves, then pairs.
static inline float sum8(__m256 v) {
  const __m128 halves = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 pairs = _mm_add_ps(halves, _mm_movehl_ps(halves, halves));
  return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_shuffle_ps(pairs, pairs, 1)));
}

// The largest lane.
static inline float max8(__m256 v) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}

static inline __m256i lane_numbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }

// All ones in the first `count` lanes, for masked loads and stores of a row's tail.
static inline __m256i first_lanes(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane_numbers());
}

// Eight floats to BF16 (nearest, ties to even, NaN stays NaN) in the low half of each 32-bit lane.
static inline __m256i bf16_bits(__m256 v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(
      _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
  const __m256i nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256 is_nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
  return _mm256_blendv_epi8(rounded, nan, _mm256_castps_si256(is_nan));
}

static inline __m256 bf16_to_f32(const uint16_t* from) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

}  // namespace mx8::cpu::avx2
