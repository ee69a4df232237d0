// MXFP8 linear layers for AVX2, on CpuPanel8. The kernels are in mxfp8_linear_body.h.
//
// On a Sapphire Rapids virtual machine at 3.0 GHz, one thread, 2026-12: the vec kernel decodes 18
// GB/s from L2 at M = 1 and reaches 0.67 of the FMA peak at M = 8; the tile kernel 0.74 at M = 12
// and 0.82 from M = 48 on.
#include <immintrin.h>

#include "kernels/cpu/mxfp8_linear_body.h"

namespace mx8::cpu::avx2 {

namespace {

struct Simd {
  using F = __m256;
  static constexpr int64_t kLanes = 8;
  // 12 sums, 2 weights and one activation make 15 of 16 registers.
  static constexpr int64_t kTileRows = 6;
  // At least 8 chains of FMAs hide their latency; one row is bound by decoding, and takes 4 panels
  // for the sake of 4 streams of memory.
  static constexpr int vec_panels(int rows) { return rows <= 2 ? 4 : rows <= 4 ? 2 : 1; }

  static MX8_INLINE F zero() { return _mm256_setzero_ps(); }
  static MX8_INLINE F set1(float v) { return _mm256_set1_ps(v); }
  static MX8_INLINE F broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static MX8_INLINE F load(const float* p) { return _mm256_load_ps(p); }
  static MX8_INLINE F loadu(const float* p) { return _mm256_loadu_ps(p); }
  static MX8_INLINE void store(float* p, F v) { _mm256_store_ps(p, v); }
  static MX8_INLINE void storeu(float* p, F v) { _mm256_storeu_ps(p, v); }
  static MX8_INLINE F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static MX8_INLINE F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }

  static MX8_INLINE bool all_zero_or_within(F v, float least, float limit) {
    const F size = _mm256_andnot_ps(set1(-0.0f), v);
    const F inside = _mm256_and_ps(_mm256_cmp_ps(size, set1(least), _CMP_GE_OQ),
                                   _mm256_cmp_ps(size, set1(limit), _CMP_LT_OQ));
    return _mm256_movemask_ps(_mm256_or_ps(inside, _mm256_cmp_ps(size, zero(), _CMP_EQ_OQ))) ==
           0xFF;
  }

  // The scales of 8 rows as floats: byte 0 means 2^-127, the only subnormal among them.
  static MX8_INLINE F scale_factors(const uint8_t* scales) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales));
    const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu8_epi32(bytes), 23);
    return _mm256_castsi256_ps(_mm256_max_epi32(bits, _mm256_set1_epi32(0x00400000)));
  }

  // The same times 2^8. Bytes above 246, which only blocks of zeros may have here, saturate to a
  // finite factor.
  static MX8_INLINE F scale_factors_up8(const uint8_t* scales) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales));
    const __m128i up = _mm_min_epu8(_mm_adds_epu8(bytes, _mm_set1_epi8(8)), _mm_set1_epi8(-2));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(up), 23));
  }

  struct RawDecode {
    struct Words {
      __m256i even;  // k = 0 and 2 of each row, as 16-bit words in its 32-bit lane
      __m256i odd;   // k = 1 and 3
    };
    static constexpr float kToWeight = 0x1p120f;
    static MX8_INLINE Words words(const uint8_t* unit) {
      const __m256i mask = _mm256_set1_epi16(static_cast<int16_t>(0x87F0));
      const __m256i v = _mm256_load_si256(reinterpret_cast<const __m256i*>(unit));
      return {_mm256_and_si256(_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 4), mask),
              _mm256_and_si256(_mm256_srai_epi16(v, 4), mask)};
    }
    template <int q>
    static MX8_INLINE F lane(const Words& w) {
      const __m256i v = q % 2 == 0 ? w.even : w.odd;
      if (q < 2) return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
      const __m256i high = _mm256_set1_epi32(static_cast<int32_t>(0xFFFF0000));
      return _mm256_castsi256_ps(_mm256_and_si256(v, high));
    }
  };

  struct HalfDecode {
    struct Words {
      __m256i even;  // FP16: k = 0 of 8 rows, then k = 2
      __m256i odd;   // k = 1, then k = 3
    };
    static constexpr float kToWeight = 0x1p8f;
    static MX8_INLINE __m256i gather(__m256i v) {
      const __m256i low_words_first =
          _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1, 4, 5, 8, 9,
                           12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
      return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, low_words_first), 0xD8);
    }
    static MX8_INLINE Words words(const uint8_t* unit) {
      const __m256i mask = _mm256_set1_epi16(static_cast<int16_t>(0xBF80));
      const __m256i v = _mm256_load_si256(reinterpret_cast<const __m256i*>(unit));
      return {gather(_mm256_and_si256(_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 1), mask)),
              gather(_mm256_and_si256(_mm256_srai_epi16(v, 1), mask))};
    }
    template <int q>
    static MX8_INLINE F lane(const Words& w) {
      const __m256i v = q % 2 == 0 ? w.even : w.odd;
      return _mm256_cvtph_ps(q < 2 ? _mm256_castsi256_si128(v) : _mm256_extracti128_si256(v, 1));
    }
  };
};

constexpr LinearKernels kVec = Mxfp8Linear<Simd>::vec("avx2_mxfp8_linear_vec", 32, 12);
constexpr LinearKernels kTile = Mxfp8Linear<Simd>::tile("avx2_mxfp8_linear_tile", 36, 12);

}  // namespace

// Sapphire Rapids, 2026-12: vec 0.62 of the FMA peak and tile 0.53 at M = 7; 0.60 and 0.65 at M
// = 9.
const LinearKernels& mxfp8_linear(int64_t m) { return m <= kVecRows ? kVec : kTile; }

}  // namespace mx8::cpu::avx2
