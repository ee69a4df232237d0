#include <immintrin.h>

#include "kernels/cpu/cpu_probe.h"

namespace mx8::cpu::avx2 {

float probe_fma(int64_t rounds) {
  // Twelve chains hide a latency of four cycles on two units, with room to spare.
  __m256 s[12];
  for (int i = 0; i < 12; ++i) s[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) s[i] = _mm256_fmadd_ps(s[i], a, b);
  }
  for (int i = 1; i < 12; ++i) s[0] = _mm256_add_ps(s[0], s[i]);
  return _mm256_cvtss_f32(s[0]);
}

}  // namespace mx8::cpu::avx2
