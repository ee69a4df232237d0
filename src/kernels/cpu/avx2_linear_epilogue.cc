// Bias, residual and SiLU-mul over the sums of a chunk, which are still in L1 or L2.
#include <immintrin.h>

#include "kernels/cpu/avx2_linear.h"
#include "kernels/exp_constants.h"

namespace mx8::cpu::avx2 {

namespace {

// Lanes [0, count) of a vector.
__m256i lanes(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count < 8 ? count : 8)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// exp as kernels/exp_constants.h lays down.
__m256 exp(__m256 x) {
  namespace c = exp_f32;
  const __m256 round = _mm256_set1_ps(c::kRound);
  const __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(c::kLog2E), round);
  const __m256 n = _mm256_sub_ps(t, round);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(c::kLn2High), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(c::kLn2Low), r);
  __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(c::kP0), r, _mm256_set1_ps(c::kP1));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c::kP2));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c::kP3));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c::kP4));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c::kP5));
  p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
  const __m256i bits =
      _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(t), 23));
  const __m256 below = _mm256_cmp_ps(x, _mm256_set1_ps(c::kMin), _CMP_LT_OQ);
  const __m256 above = _mm256_cmp_ps(x, _mm256_set1_ps(c::kMax), _CMP_GT_OQ);
  const __m256 infinity = _mm256_castsi256_ps(_mm256_set1_epi32(0x7F800000));
  __m256 out = _mm256_andnot_ps(below, _mm256_castsi256_ps(bits));
  out = _mm256_blendv_ps(out, infinity, above);
  return _mm256_blendv_ps(out, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

__m256 silu(__m256 v) {
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 minus = _mm256_xor_ps(v, _mm256_set1_ps(-0.0f));
  return _mm256_div_ps(v, _mm256_add_ps(one, exp(minus)));
}

__m256 with_bias(const float* sums, const float* bias, __m256i mask) {
  const __m256 v = _mm256_maskload_ps(sums, mask);
  return bias == nullptr ? v : _mm256_add_ps(v, _mm256_maskload_ps(bias, mask));
}

void silu_mul_row(const float* sums, const LinearTile& tile, const LinearOutput& out, float* y) {
  const int64_t half = out.n / 2;
  for (int64_t n = tile.n0; n < tile.n1; n += 16) {
    const int64_t i = n / 2;
    const int64_t width = half - i < 8 ? half - i : 8;
    const __m256i mask = lanes(width);
    const float* at = sums + n - tile.n0;
    const float* bias = out.bias == nullptr ? nullptr : out.bias + n;
    const __m256 gate = with_bias(at, bias, mask);
    const __m256 up = with_bias(at + width, bias == nullptr ? nullptr : bias + width, mask);
    _mm256_maskstore_ps(y + i, mask, _mm256_mul_ps(silu(gate), up));
  }
}

void plain_row(const float* sums, const LinearTile& tile, const LinearOutput& out,
               const float* residual, float* y) {
  for (int64_t n = tile.n0; n < tile.n1; n += 8) {
    const __m256i mask = lanes(tile.n1 - n);
    __m256 v = with_bias(sums + n - tile.n0, out.bias == nullptr ? nullptr : out.bias + n, mask);
    if (residual != nullptr) v = _mm256_add_ps(_mm256_maskload_ps(residual + n, mask), v);
    _mm256_maskstore_ps(y + n, mask, v);
  }
}

}  // namespace

void linear_epilogue(const LinearTile& tile, const LinearOutput& out) {
  for (int64_t m = tile.m0; m < tile.m1; ++m) {
    const float* sums = tile.sums + (m - tile.m0) * tile.ld;
    float* y = out.y + m * out.ldy;
    if (out.op == LinearEpilogue::kSiluMul) {
      silu_mul_row(sums, tile, out, y);
    } else {
      const bool adds = out.op == LinearEpilogue::kResidual;
      plain_row(sums, tile, out, adds ? out.residual + m * out.ldr : nullptr, y);
    }
  }
}

}  // namespace mx8::cpu::avx2
