#include "kernels/reference/elementwise.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/exp.h"

namespace mx8::reference {

void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* out) {
  float a[32] = {};
  for (int64_t i = 0; i < n; ++i) a[i % 32] = std::fma(x[i], x[i], a[i % 32]);
  float b[8];
  for (int i = 0; i < 8; ++i) b[i] = (a[i] + a[i + 8]) + (a[i + 16] + a[i + 24]);
  const float inverse = 1.0f / std::sqrt(sum8(b) / static_cast<float>(n) + eps);
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] * inverse) * weight[i];
}

void rope(const float* cos, const float* sin, int half, int heads, int head_dim, float* x) {
  for (int h = 0; h < heads; ++h) {
    float* low = x + int64_t{h} * head_dim;
    float* high = low + half;
    for (int i = 0; i < half; ++i) {
      const float a = low[i];
      const float b = high[i];
      low[i] = a * cos[i] - b * sin[i];
      high[i] = b * cos[i] + a * sin[i];
    }
  }
}

void weighted_sum(const float* const* rows, const float* weights, int count, int64_t n,
                  bool accumulate, float* out) {
  for (int64_t c = 0; c < n; ++c) {
    float sum = 0;
    for (int i = 0; i < count; ++i) sum = std::fma(weights[i], rows[i][c], sum);
    out[c] = accumulate ? out[c] + sum : sum;
  }
}

void scale(float factor, int64_t n, float* x) {
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

void softmax(const float* x, int64_t n, float* p) {
  float max = x[0];
  for (int64_t i = 1; i < n; ++i) max = std::max(max, x[i]);
  float partial[8] = {};
  for (int64_t i = 0; i < n; ++i) {
    p[i] = exp(x[i] - max);
    partial[i % 8] += p[i];
  }
  const float sum = sum8(partial);
  for (int64_t i = 0; i < n; ++i) p[i] /= sum;
}

}  // namespace mx8::reference
