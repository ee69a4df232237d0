// The scalar twins of the small row kernels. Each works on one row.
#pragma once

#include <cstdint>

namespace mx8::reference {

// out = x * (1 / sqrt(sum(x^2) / n + eps)) * weight. Element i is added to partial sum i mod 32 by
// fma; the partial sums a[32] are added as b[i] = (a[i] + a[i + 8]) + (a[i + 16] + a[i + 24]), then
// sum8(b).
void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* out);

// Rotates the pairs (x[i], x[i + half]) of each head; cos and sin [half]. The products are rounded
// before they are added, as Transformers does.
void rope(const float* cos, const float* sin, int half, int heads, int head_dim, float* x);

// out = (accumulate ? out : 0) + (fma chain from 0 over i of weights[i] * rows[i]).
void weighted_sum(const float* const* rows, const float* weights, int count, int64_t n,
                  bool accumulate, float* out);

// x *= factor.
void scale(float factor, int64_t n, float* x);

// p = exp(x - max(x)) / sum, with partial sum i mod 8 and sum8. max(x) is finite.
void softmax(const float* x, int64_t n, float* p);

}  // namespace mx8::reference
