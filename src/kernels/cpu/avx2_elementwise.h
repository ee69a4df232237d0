// Small row kernels for AVX2, bit-equal to kernels/reference/elementwise.h, which describes them.
#pragma once

#include <cstdint>

namespace mx8::cpu::avx2 {

void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* out);
void rope(const float* cos, const float* sin, int half, int heads, int head_dim, float* x);
void weighted_sum(const float* const* rows, const float* weights, int count, int64_t n,
                  bool accumulate, float* out);
void scale(float factor, int64_t n, float* x);
void softmax(const float* x, int64_t n, float* p);

}  // namespace mx8::cpu::avx2
