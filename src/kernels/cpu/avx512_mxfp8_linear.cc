// MXFP8 linear layers for AVX-512 (F, BW, DQ, VL), on CpuPanel16. The kernels are in
// mxfp8_linear_body.h.
//
// On a Sapphire Rapids virtual machine, one thread, 2026-12: the vec kernel 120 GFLOP/s at M = 8,
// the tile kernel 143 at M = 128, where the AVX2 ones reach 65 and 79; at M = 1 both are bound by
// memory.
#include <immintrin.h>

#include "kernels/cpu/avx512_linear.h"
#include "kernels/cpu/mxfp8_linear_body.h"

namespace mx8::cpu::avx512 {

namespace {

struct Simd {
  using F = __m512;
  static constexpr int64_t kLanes = 16;
  // 24 sums, 2 weights and one activation make 27 of 32 registers.
  static constexpr int64_t kTileRows = 12;
  // Four streams of memory; two where four would need more sums than there are registers.
  static constexpr int vec_panels(int rows) { return rows <= 4 ? 4 : 2; }

  static MX8_INLINE F zero() { return _mm512_setzero_ps(); }
  static MX8_INLINE F set1(float v) { return _mm512_set1_ps(v); }
  static MX8_INLINE F broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static MX8_INLINE F load(const float* p) { return _mm512_load_ps(p); }
  static MX8_INLINE F loadu(const float* p) { return _mm512_loadu_ps(p); }
  static MX8_INLINE void store(float* p, F v) { _mm512_store_ps(p, v); }
  static MX8_INLINE void storeu(float* p, F v) { _mm512_storeu_ps(p, v); }
  static MX8_INLINE F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static MX8_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }

  static MX8_INLINE bool all_zero_or_within(F v, float least, float limit) {
    const F size = _mm512_abs_ps(v);
    const __mmask16 inside = _mm512_cmp_ps_mask(size, set1(least), _CMP_GE_OQ) &
                             _mm512_cmp_ps_mask(size, set1(limit), _CMP_LT_OQ);
    return (inside | _mm512_cmp_ps_mask(size, zero(), _CMP_EQ_OQ)) == 0xFFFF;
  }

  // The scales of 16 rows as floats: byte 0 means 2^-127, the only subnormal among them.
  static MX8_INLINE F scale_factors(const uint8_t* scales) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales));
    const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes), 23);
    return _mm512_castsi512_ps(_mm512_max_epi32(bits, _mm512_set1_epi32(0x00400000)));
  }

  // The same times 2^8. Bytes above 246, which only blocks of zeros may have here, saturate to a
  // finite factor.
  static MX8_INLINE F scale_factors_up8(const uint8_t* scales) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales));
    const __m128i up = _mm_min_epu8(_mm_adds_epu8(bytes, _mm_set1_epi8(8)), _mm_set1_epi8(-2));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(up), 23));
  }

  struct RawDecode {
    struct Words {
      __m512i even;  // k = 0 and 2 of each row, as 16-bit words in its 32-bit lane
      __m512i odd;   // k = 1 and 3
    };
    static constexpr float kToWeight = 0x1p120f;
    static MX8_INLINE Words words(const uint8_t* unit) {
      const __m512i mask = _mm512_set1_epi16(static_cast<int16_t>(0x87F0));
      const __m512i v = _mm512_load_si512(unit);
      return {_mm512_and_si512(_mm512_srai_epi16(_mm512_slli_epi16(v, 8), 4), mask),
              _mm512_and_si512(_mm512_srai_epi16(v, 4), mask)};
    }
    template <int q>
    static MX8_INLINE F lane(const Words& w) {
      const __m512i v = q % 2 == 0 ? w.even : w.odd;
      if (q < 2) return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
      const __m512i high = _mm512_set1_epi32(static_cast<int32_t>(0xFFFF0000));
      return _mm512_castsi512_ps(_mm512_and_si512(v, high));
    }
  };

  struct HalfDecode {
    struct Words {
      __m512i even;  // FP16: k = 0 of 16 rows, then k = 2
      __m512i odd;   // k = 1, then k = 3
    };
    static constexpr float kToWeight = 0x1p8f;
    static MX8_INLINE __m512i gather(__m512i v) {
      // Word 2 i of 16, then word 2 i + 1 of 16.
      const __m512i low_words_first =
          _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28, 26,
                           24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
      return _mm512_permutexvar_epi16(low_words_first, v);
    }
    static MX8_INLINE Words words(const uint8_t* unit) {
      const __m512i mask = _mm512_set1_epi16(static_cast<int16_t>(0xBF80));
      const __m512i v = _mm512_load_si512(unit);
      return {gather(_mm512_and_si512(_mm512_srai_epi16(_mm512_slli_epi16(v, 8), 1), mask)),
              gather(_mm512_and_si512(_mm512_srai_epi16(v, 1), mask))};
    }
    template <int q>
    static MX8_INLINE F lane(const Words& w) {
      const __m512i v = q % 2 == 0 ? w.even : w.odd;
      return _mm512_cvtph_ps(q < 2 ? _mm512_castsi512_si256(v) : _mm512_extracti64x4_epi64(v, 1));
    }
  };
};

constexpr LinearKernels kVec = Mxfp8Linear<Simd>::vec("avx512_mxfp8_linear_vec", 60, 12);
constexpr LinearKernels kTile = Mxfp8Linear<Simd>::tile("avx512_mxfp8_linear_tile", 70, 12);

}  // namespace

// Sapphire Rapids, 2026-12: vec 120 GFLOP/s at M = 8, tile 82 at M = 9.
const LinearKernels& mxfp8_linear(int64_t m) { return m <= kVecRows ? kVec : kTile; }

}  // namespace mx8::cpu::avx512
