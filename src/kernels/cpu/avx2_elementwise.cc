#include "kernels/cpu/avx2_elementwise.h"

#include "kernels/cpu/avx2_math.h"

namespace mx8::cpu::avx2 {

namespace {

// Eight elements of a row.
struct FullLanes {
  __m256 load(const float* from) const { return _mm256_loadu_ps(from); }
  void store(float* to, __m256 v) const { _mm256_storeu_ps(to, v); }
  __m256 load_or(const float* from, __m256) const { return load(from); }
};

// The last elements of a row. Masked stores are slow on some processors, so only here.
struct TailLanes {
  __m256i mask;
  __m256 load(const float* from) const { return _mm256_maskload_ps(from, mask); }
  void store(float* to, __m256 v) const { _mm256_maskstore_ps(to, mask, v); }
  __m256 load_or(const float* from, __m256 other) const {
    return _mm256_blendv_ps(other, load(from), _mm256_castsi256_ps(mask));
  }
};

// Calls body(i, lanes) for each group of eight of n elements; the last may be a tail.
template <class Body>
inline void for_each_8(int64_t n, Body body) {
  for (int64_t i = 0; i + 8 <= n; i += 8) body(i, FullLanes{});
  if (n % 8 != 0) body(n / 8 * 8, TailLanes{first_lanes(n % 8)});
}

inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

}  // namespace

void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* out) {
  // Four chains of fma hide its latency.
  __m256 a[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                 _mm256_setzero_ps()};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    for (int j = 0; j < 4; ++j) {
      const __m256 v = _mm256_loadu_ps(x + i + 8 * j);
      a[j] = _mm256_fmadd_ps(v, v, a[j]);
    }
  }
  for (int j = 0; j < 4 && i + 8 * j < n; ++j) {
    const __m256 v = _mm256_maskload_ps(x + i + 8 * j, first_lanes(n - i - 8 * j));
    a[j] = _mm256_fmadd_ps(v, v, a[j]);
  }
  const __m256 sum = _mm256_add_ps(_mm256_add_ps(a[0], a[1]), _mm256_add_ps(a[2], a[3]));
  const float inverse = 1.0f / square_root(sum8(sum) / static_cast<float>(n) + eps);
  const __m256 factor = _mm256_set1_ps(inverse);
  for_each_8(n, [&](int64_t at, auto lanes) {
    const __m256 scaled = _mm256_mul_ps(lanes.load(x + at), factor);
    lanes.store(out + at, _mm256_mul_ps(scaled, lanes.load(weight + at)));
  });
}

void rope(const float* cos, const float* sin, int half, int heads, int head_dim, float* x) {
  for (int h = 0; h < heads; ++h) {
    float* low = x + int64_t{h} * head_dim;
    float* high = low + half;
    for_each_8(half, [&](int64_t i, auto lanes) {
      const __m256 c = lanes.load(cos + i);
      const __m256 s = lanes.load(sin + i);
      const __m256 a = lanes.load(low + i);
      const __m256 b = lanes.load(high + i);
      lanes.store(low + i, _mm256_sub_ps(_mm256_mul_ps(a, c), _mm256_mul_ps(b, s)));
      lanes.store(high + i, _mm256_add_ps(_mm256_mul_ps(b, c), _mm256_mul_ps(a, s)));
    });
  }
}

void weighted_sum(const float* const* rows, const float* weights, int count, int64_t n,
                  bool accumulate, float* out) {
  for_each_8(n, [&](int64_t at, auto lanes) {
    __m256 sum = _mm256_setzero_ps();
    for (int i = 0; i < count; ++i) {
      sum = _mm256_fmadd_ps(_mm256_set1_ps(weights[i]), lanes.load(rows[i] + at), sum);
    }
    if (accumulate) sum = _mm256_add_ps(lanes.load(out + at), sum);
    lanes.store(out + at, sum);
  });
}

void scale(float factor, int64_t n, float* x) {
  for_each_8(n, [&](int64_t at, auto lanes) {
    lanes.store(x + at, _mm256_mul_ps(lanes.load(x + at), _mm256_set1_ps(factor)));
  });
}

void softmax(const float* x, int64_t n, float* p) {
  const __m256 lowest = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xFF800000)));
  __m256 largest = lowest;
  for_each_8(n, [&](int64_t at, auto lanes) {
    largest = _mm256_max_ps(largest, lanes.load_or(x + at, lowest));
  });
  const __m256 max = _mm256_set1_ps(max8(largest));
  __m256 partial = _mm256_setzero_ps();
  for_each_8(n, [&](int64_t at, auto lanes) {
    const __m256 e = exp_nonpositive(_mm256_sub_ps(lanes.load_or(x + at, lowest), max));
    partial = _mm256_add_ps(partial, e);
    lanes.store(p + at, e);
  });
  const __m256 sum = _mm256_set1_ps(sum8(partial));
  for_each_8(n, [&](int64_t at, auto lanes) {
    lanes.store(p + at, _mm256_div_ps(lanes.load(p + at), sum));
  });
}

}  // namespace mx8::cpu::avx2
