// Linear layers with plain weights (BF16, F16, F32; row-major) for AVX2: y[m, n] = sum over k of
// w[n, k] x[m, k]. Bytes: 2 (or 4) per weight once per chunk of rows; 2 N K M flops.
//
// Numeric contract: the bits of kernels/reference/linear.cc: eight partial sums by k % 8, which are
// the lanes of one vector, then the same tree. So both operands are read along k and nothing is
// packed. M <= 2 is a matrix-vector kernel over several rows of weights at once (as many chains of
// FMAs and streams of memory); above, 4 rows of weights are turned into FP32 in L1 and multiplied
// by 3 rows of activations at a time: 12 sums, 7 loads for 12 FMAs.
#include <immintrin.h>

#include "kernels/cpu/avx2_linear.h"

namespace mx8::cpu::avx2 {

namespace {

#define MX8_INLINE inline __attribute__((always_inline))

constexpr int64_t kStripRows = 3;
constexpr int64_t kTileCols = 4;
constexpr int64_t kVecRows = 2;
constexpr int64_t kColStep = 16;  // whole groups of gate and up

const float* row_of(const LinearInput& in, int64_t m) {
  return in.x + (in.rows == nullptr ? m : in.rows[m]) * in.ld;
}

int64_t padded(int64_t k) { return (k + 7) / 8 * 8; }

struct Bf16 {
  using Type = uint16_t;
  static MX8_INLINE __m256 load(const Type* p) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
  }
};

struct F16 {
  using Type = uint16_t;
  static MX8_INLINE __m256 load(const Type* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
};

struct F32 {
  using Type = float;
  static MX8_INLINE __m256 load(const Type* p) { return _mm256_loadu_ps(p); }
};

// The last count < 8 elements, then zeros.
template <class C>
__m256 load_tail(const typename C::Type* p, int64_t count) {
  typename C::Type buffer[8] = {};
  for (int64_t i = 0; i < count; ++i) buffer[i] = p[i];
  return C::load(buffer);
}

MX8_INLINE float reduce(__m256 v) {
  const __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps(pair, pair, 1)));
}

// R rows of weights from w times T rows of activations.
template <class C, int R, int T>
MX8_INLINE void matvec_rows(const typename C::Type* w, int64_t k, const float* const (&x)[T],
                            float* const (&out)[T]) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(typename C::Type));
  // Short rows: the same place of the rows that come next. Long ones: some lines ahead.
  const int64_t ahead = k * R <= 64 * kLine * R ? k * R : 16 * kLine;
  __m256 s[R][T];
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) s[r][t] = _mm256_setzero_ps();
  }
  const auto step = [&](int64_t i) __attribute__((always_inline)) {
    __m256 xi[T];
#pragma GCC unroll 2
    for (int t = 0; t < T; ++t) xi[t] = _mm256_loadu_ps(x[t] + i);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256 v = C::load(w + r * k + i);
#pragma GCC unroll 2
      for (int t = 0; t < T; ++t) s[r][t] = _mm256_fmadd_ps(v, xi[t], s[r][t]);
    }
  };
  int64_t i = 0;
  for (; i + kLine <= k; i += kLine) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      _mm_prefetch(reinterpret_cast<const char*>(w + r * k + i + ahead), _MM_HINT_T0);
    }
#pragma GCC unroll 4
    for (int64_t j = 0; j < kLine; j += 8) step(i + j);
  }
  for (; i + 8 <= k; i += 8) step(i);
  if (i < k) {
    for (int t = 0; t < T; ++t) {
      const __m256 xi = load_tail<F32>(x[t] + i, k - i);
      for (int r = 0; r < R; ++r) {
        s[r][t] = _mm256_fmadd_ps(load_tail<C>(w + r * k + i, k - i), xi, s[r][t]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) out[t][r] = reduce(s[r][t]);
  }
}

template <class C, int T>
void matvec(const WeightRef& ref, const LinearTile& tile, const float* const (&x)[T]) {
  constexpr int R = 8 / T;
  const auto* w = static_cast<const typename C::Type*>(ref.data);
  for (int64_t n = tile.n0; n < tile.n1;) {
    float* out[T];
    for (int t = 0; t < T; ++t) out[t] = tile.sums + t * tile.ld + n - tile.n0;
    if (n + R <= tile.n1) {
      matvec_rows<C, R, T>(w + n * ref.k, ref.k, x, {out});
      n += R;
    } else {
      matvec_rows<C, 1, T>(w + n * ref.k, ref.k, x, {out});
      ++n;
    }
  }
}

// R rows of activations times 4 rows of FP32 weights, padded with zeros to a multiple of 8.
template <int R>
void tile_kernel(const float* const* x, const float* w, int64_t k, float* sums, int64_t ld) {
  const int64_t depth = padded(k);
  __m256 s[R][kTileCols];
#pragma GCC unroll 3
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < kTileCols; ++c) s[r][c] = _mm256_setzero_ps();
  }
  int64_t i = 0;
  for (; i + 8 <= k; i += 8) {
    __m256 xi[R];
#pragma GCC unroll 3
    for (int r = 0; r < R; ++r) xi[r] = _mm256_loadu_ps(x[r] + i);
#pragma GCC unroll 4
    for (int c = 0; c < kTileCols; ++c) {
      const __m256 v = _mm256_load_ps(w + c * depth + i);
#pragma GCC unroll 3
      for (int r = 0; r < R; ++r) s[r][c] = _mm256_fmadd_ps(v, xi[r], s[r][c]);
    }
  }
  if (i < k) {
    for (int r = 0; r < R; ++r) {
      const __m256 xi = load_tail<F32>(x[r] + i, k - i);
      for (int c = 0; c < kTileCols; ++c) {
        s[r][c] = _mm256_fmadd_ps(_mm256_load_ps(w + c * depth + i), xi, s[r][c]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < kTileCols; ++c) sums[r * ld + c] = reduce(s[r][c]);
  }
}

using TileKernel = void (*)(const float* const*, const float*, int64_t, float*, int64_t);
constexpr TileKernel kTileKernels[kStripRows + 1] = {nullptr, tile_kernel<1>, tile_kernel<2>,
                                                     tile_kernel<3>};

template <class C>
void decode_rows(const typename C::Type* w, int64_t rows, int64_t k, float* out) {
  for (int64_t c = 0; c < kTileCols; ++c) {
    // Missing rows repeat the last; their sums land in columns beyond N.
    const auto* row = w + (c < rows ? c : rows - 1) * k;
    float* to = out + c * padded(k);
    int64_t i = 0;
    for (; i + 8 <= k; i += 8) _mm256_store_ps(to + i, C::load(row + i));
    if (i < k) _mm256_store_ps(to + i, load_tail<C>(row + i, k - i));
  }
}

template <class C>
void gemm(const WeightRef& ref, const LinearInput& in, const LinearTile& tile, float* scratch) {
  const auto* w = static_cast<const typename C::Type*>(ref.data);
  for (int64_t n = tile.n0; n < tile.n1; n += kTileCols) {
    const int64_t rows = tile.n1 - n < kTileCols ? tile.n1 - n : kTileCols;
    decode_rows<C>(w + n * ref.k, rows, ref.k, scratch);
    for (int64_t m = tile.m0; m < tile.m1; m += kStripRows) {
      const int64_t count = tile.m1 - m < kStripRows ? tile.m1 - m : kStripRows;
      const float* x[kStripRows];
      for (int64_t r = 0; r < count; ++r) x[r] = row_of(in, m + r);
      float* sums = tile.sums + (m - tile.m0) * tile.ld + n - tile.n0;
      kTileKernels[count](x, scratch, ref.k, sums, tile.ld);
    }
  }
}

template <class C>
void sums_of(const WeightRef& w, const LinearInput& in, const LinearTile& tile, float* scratch) {
  if (in.m == 1) {
    matvec<C, 1>(w, tile, {row_of(in, 0)});
  } else if (in.m == 2) {
    matvec<C, 2>(w, tile, {row_of(in, 0), row_of(in, 1)});
  } else {
    gemm<C>(w, in, tile, scratch);
  }
}

int64_t first_row(int64_t m, int64_t strip) {
  return strip * kStripRows < m ? strip * kStripRows : m;
}

int64_t prepared_floats(int64_t, int64_t) { return 0; }

int64_t scratch_floats(int64_t m, int64_t k) { return m <= kVecRows ? 0 : kTileCols * padded(k); }

void prepare(const LinearInput&, int64_t, int64_t, float*) {}

void sums(const WeightRef& w, const LinearInput& in, const float*, const LinearTile& tile,
          float* scratch) {
  switch (w.code) {
    case WeightCode::kBf16:
      return sums_of<Bf16>(w, in, tile, scratch);
    case WeightCode::kF16:
      return sums_of<F16>(w, in, tile, scratch);
    case WeightCode::kF32:
      return sums_of<F32>(w, in, tile, scratch);
    case WeightCode::kMxE4m3:
      break;  // never in this layout
  }
}

constexpr LinearKernels kPlain = {"avx2_plain_linear",
                                  kStripRows,
                                  kColStep,
                                  first_row,
                                  prepared_floats,
                                  scratch_floats,
                                  prepare,
                                  sums,
                                  linear_epilogue,
                                  40,
                                  12};

}  // namespace

const LinearKernels& plain_linear(int64_t) { return kPlain; }

}  // namespace mx8::cpu::avx2
