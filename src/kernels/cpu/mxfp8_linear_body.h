// MXFP8 linear layers: y[m, n] = sum over k of w[n, k] x[m, k]. The body that each instruction set
// compiles in a file of its own with its own vectors (avx2_mxfp8_linear.cc,
// avx512_mxfp8_linear.cc).
//
// Operands: weights in a CpuPanel layout (docs/layouts.md), FP32 activations, FP32 sums. 1.03 bytes
// a weight, read once per chunk of up to 240 rows; 2 N K M flops.
//
// Two kernels. For few rows ("vec") weights are decoded and multiplied in registers: bound by
// memory up to M = 2. Above, two panels x one group of weights are decoded to FP32 in L1 and
// multiplied by strips of activations ("tile"): bound by FMA.
//
// Numeric contract: every result has the bits of kernels/reference/linear.cc, for every input. The
// kernels run its operations in its order, one lane per output; what differs is where powers of two
// are multiplied in, which is exact.
//
// - Raw decode puts the code's 7 magnitude bits under a wider exponent field: w 2^-120, in 9
//   operations for 4 k. Subnormal codes become subnormal floats, each of which costs an Intel core
//   60 to 120 ns; the layout flags the blocks that hold one, and those go another way.
// - Half decode makes the same bits an FP16 number, w 2^-8, and widens it: exact for every code, at
//   about twice the operations.
// - The tile kernel multiplies decoded weights back to w before it stores them.
// - The vec kernel leaves w 2^-120 and multiplies x by 2^112 beforehand. All terms of a block are
//   then 2^-8 of the twin's, as they are after the half decode with x itself, and the exponent of
//   the scale makes up for it, which holds for scale bytes up to 246. This is exact while 2^-109 <=
//   |x| < 2^16, since the last bit of a product weighs at least 2^(-109 - 23 - 9 - 8) = 2^-149, the
//   last bit of the smallest float. A batch that holds an x outside, zeros apart, takes the wide
//   form: half decode back to w, x itself.
//
// S is the vector face of an instruction set: F (kLanes floats), RawDecode and HalfDecode (words()
// loads a unit, lane<q>() gives k = q of it), arithmetic, and the sizes of the kernels. Everything
// here is in an unnamed namespace, so that no two instruction sets share a function.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/avx2_linear.h"
#include "kernels/cpu/linear_kernels.h"
#include "pack/cpu_panel_shape.h"

#define MX8_INLINE inline __attribute__((always_inline))

namespace mx8::cpu {

namespace {

// The most rows of a strip, over all instruction sets and both kernels.
constexpr int64_t kMaxStripRows = 12;
// How far ahead the vec kernel fetches each stream. 1 KiB lost 3 to 8 %, 4 KiB 2 to 15 %, 3 KiB
// nothing (Sapphire Rapids, 4 panels of 8 rows, 2026-12).
constexpr int64_t kPrefetch = 2048;

constexpr int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

inline const float* row_of(const LinearInput& in, int64_t m) {
  return in.x + (in.rows == nullptr ? m : in.rows[m]) * in.ld;
}

// The weight as the kernels see it.
template <class S>
struct Panels : PanelShape<S::kLanes> {
  using Shape = PanelShape<S::kLanes>;
  const uint8_t* data;
  const uint8_t* flags;
  int64_t count;
  int64_t stride;  // bytes of a panel
  int64_t blocks;
  int64_t groups;

  explicit Panels(const WeightRef& w) {
    data = static_cast<const uint8_t*>(w.data);
    count = (w.n + Shape::kRows - 1) / Shape::kRows;
    blocks = w.k / Shape::kBlock;
    groups = (blocks + Shape::kGroupBlocks - 1) / Shape::kGroupBlocks;
    stride = groups * Shape::kGroupScaleBytes + blocks * Shape::kBlockBytes;
    flags = data + count * stride;
  }
  int64_t blocks_in(int64_t group) const {
    return min_of(Shape::kGroupBlocks, blocks - group * Shape::kGroupBlocks);
  }
};

// The weight itself.
template <class S>
struct WideDecode : S::HalfDecode {
  using Words = typename S::HalfDecode::Words;
  template <int q>
  static MX8_INLINE typename S::F lane(const Words& w) {
    return S::mul(S::HalfDecode::template lane<q>(w), S::set1(S::HalfDecode::kToWeight));
  }
};

// ----------------------------------------------------------------------------------------- few
// rows

template <class S, class D, int q, int T, int P>
MX8_INLINE void multiply(const typename D::Words (&w)[P], const float* x,
                         typename S::F (&s)[P][T]) {
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    const typename S::F xk = S::broadcast(x + q * T + t);
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) s[p][t] = S::fma(D::template lane<q>(w[p]), xk, s[p][t]);
  }
}

// s[p][t] = the sum of one block of panel p and row t; x is [k][T]. `ahead` is what each stream
// will want later.
template <class S, class D, int T, int P>
MX8_INLINE void block_sums(const uint8_t* units, int64_t stride, int64_t ahead, const float* x,
                           typename S::F (&s)[P][T]) {
  using Shape = PanelShape<S::kLanes>;
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) s[p][t] = S::zero();
  }
#pragma GCC unroll 8
  for (int u = 0; u < Shape::kBlock / 4; ++u) {
    typename D::Words w[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      const uint8_t* unit = units + p * stride + u * Shape::kUnitBytes;
      if (u * Shape::kUnitBytes % 64 == 0) {
        _mm_prefetch(reinterpret_cast<const char*>(unit + ahead), _MM_HINT_T0);
      }
      w[p] = D::words(unit);
    }
    multiply<S, D, 0, T, P>(w, x + 4 * u * T, s);
    multiply<S, D, 1, T, P>(w, x + 4 * u * T, s);
    multiply<S, D, 2, T, P>(w, x + 4 * u * T, s);
    multiply<S, D, 3, T, P>(w, x + 4 * u * T, s);
  }
}

// T rows of activations for the kernel below: [k][T] as they are, the same times 2^112, and whether
// the latter may be used.
struct VecInput {
  const float* x;
  const float* scaled;
  bool exact;
};

// P panels from `panel` times T rows.
template <class S, int T, int P>
void vec_kernel(const Panels<S>& w, int64_t panel, const VecInput& in, float* out, int64_t ld) {
  using Shape = PanelShape<S::kLanes>;
  const uint8_t* base = w.data + panel * w.stride;
  const uint8_t* flags = w.flags + panel * w.groups;
  const float* x = in.x;
  const float* scaled = in.scaled;
  typename S::F sums[P][T];
  for (int p = 0; p < P; ++p) {
    for (int t = 0; t < T; ++t) sums[p][t] = S::zero();
  }
  for (int64_t g = 0; g < w.groups; ++g) {
    const uint8_t* group = base + g * Shape::kGroupBytes;
    // Near its end a stream fetches the start of the panel that it will walk next.
    const bool leaving = (g + 1) * Shape::kGroupBytes + kPrefetch > w.stride;
    const int64_t ahead = kPrefetch + (leaving ? (P - 1) * w.stride : 0);
    unsigned marked = flags[g];
    for (int p = 1; p < P; ++p) marked |= flags[p * w.groups + g];
    for (int p = 0; p < P; ++p) {
      _mm_prefetch(reinterpret_cast<const char*>(group + p * w.stride + ahead), _MM_HINT_T0);
    }
    const int64_t blocks = w.blocks_in(g);
    for (int64_t b = 0; b < blocks; ++b) {
      const uint8_t* scales = group + b * Shape::kRows;
      const uint8_t* units = group + Shape::kGroupScaleBytes + b * Shape::kBlockBytes;
      typename S::F s[P][T];
      if (!in.exact) {
        block_sums<S, WideDecode<S>, T, P>(units, w.stride, ahead, x, s);
      } else if (marked >> b & 1) {
        block_sums<S, typename S::HalfDecode, T, P>(units, w.stride, ahead, x, s);
      } else {
        block_sums<S, typename S::RawDecode, T, P>(units, w.stride, ahead, scaled, s);
      }
      x += Shape::kBlock * T;
      scaled += Shape::kBlock * T;
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const uint8_t* at = scales + p * w.stride;
        const typename S::F factor = in.exact ? S::scale_factors_up8(at) : S::scale_factors(at);
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) sums[p][t] = S::fma(s[p][t], factor, sums[p][t]);
      }
    }
  }
  for (int p = 0; p < P; ++p) {
    for (int t = 0; t < T; ++t) S::storeu(out + t * ld + p * S::kLanes, sums[p][t]);
  }
}

template <class S>
using VecKernel = void (*)(const Panels<S>&, int64_t, const VecInput&, float*, int64_t);

// For T rows: the kernel that walks several panels at once, and the one for the panels left over.
template <class S>
struct VecKernels {
  VecKernel<S> many;
  VecKernel<S> one;
  int64_t panels;
};

template <class S, int T>
constexpr VecKernels<S> vec_kernels() {
  return {vec_kernel<S, T, S::vec_panels(T)>, vec_kernel<S, T, 1>, S::vec_panels(T)};
}

template <class S>
constexpr VecKernels<S> kVecKernels[] = {{},
                                         vec_kernels<S, 1>(),
                                         vec_kernels<S, 2>(),
                                         vec_kernels<S, 3>(),
                                         vec_kernels<S, 4>(),
                                         vec_kernels<S, 5>(),
                                         vec_kernels<S, 6>(),
                                         vec_kernels<S, 7>(),
                                         vec_kernels<S, 8>()};
constexpr int64_t kVecRows = 8;

// Writes x 2^112; true if every x is 0 or within [2^-109, 2^16).
template <class S>
bool scale_up(const float* x, int64_t count, float* out) {
  bool good = true;
  for (int64_t i = 0; i < count; i += S::kLanes) {
    const typename S::F v = S::loadu(x + i);
    good &= S::all_zero_or_within(v, 0x1p-109f, 0x1p16f);
    S::storeu(out + i, S::mul(v, S::set1(0x1p112f)));
  }
  return good;
}

// ----------------------------------------------------------------------------------------------
// tile

// Weights of two panels x one group in FP32 and the factors of its blocks.
template <class S>
struct TileScratch {
  static constexpr int64_t kCols = 2 * S::kLanes;
  float weights[PanelShape<S::kLanes>::kGroupDepth * kCols];
  float factors[PanelShape<S::kLanes>::kGroupBlocks * kCols];
};

template <class S, class D>
MX8_INLINE void decode_block(const uint8_t* units, float* out) {
  using Shape = PanelShape<S::kLanes>;
  constexpr int64_t kCols = TileScratch<S>::kCols;
  const typename S::F up = S::set1(D::kToWeight);
#pragma GCC unroll 8
  for (int u = 0; u < Shape::kBlock / 4; ++u) {
    const typename D::Words w = D::words(units + u * Shape::kUnitBytes);
    float* at = out + 4 * u * kCols;
    S::store(at, S::mul(D::template lane<0>(w), up));
    S::store(at + kCols, S::mul(D::template lane<1>(w), up));
    S::store(at + 2 * kCols, S::mul(D::template lane<2>(w), up));
    S::store(at + 3 * kCols, S::mul(D::template lane<3>(w), up));
  }
}

template <class S>
void decode_group(const Panels<S>& w, int64_t panel, int64_t g, TileScratch<S>& out) {
  using Shape = PanelShape<S::kLanes>;
  constexpr int64_t kCols = TileScratch<S>::kCols;
  for (int64_t half = 0; half < 2; ++half) {
    // A missing second panel repeats the first; its results land in columns beyond N.
    const int64_t p = min_of(panel + half, w.count - 1);
    const uint8_t* group = w.data + p * w.stride + g * Shape::kGroupBytes;
    const unsigned marked = w.flags[p * w.groups + g];
    for (int64_t b = 0; b < w.blocks_in(g); ++b) {
      const uint8_t* units = group + Shape::kGroupScaleBytes + b * Shape::kBlockBytes;
      float* weights = out.weights + b * Shape::kBlock * kCols + half * S::kLanes;
      if (marked >> b & 1) {
        decode_block<S, typename S::HalfDecode>(units, weights);
      } else {
        decode_block<S, typename S::RawDecode>(units, weights);
      }
      S::store(out.factors + b * kCols + half * S::kLanes,
               S::scale_factors(group + b * Shape::kRows));
    }
  }
}

// sums[r] += the blocks of one group, for R rows and two panels; x is packed [k][R].
template <class S, int R>
void tile_kernel(const float* x, const TileScratch<S>& w, int64_t blocks, float* sums, int64_t ld) {
  using F = typename S::F;
  constexpr int64_t L = S::kLanes;
  const float* weights = w.weights;
  for (int64_t b = 0; b < blocks; ++b) {
    F s[R][2];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) s[r][0] = s[r][1] = S::zero();
#pragma GCC unroll 4
    for (int64_t k = 0; k < PanelShape<L>::kBlock; ++k) {
      const F w0 = S::load(weights), w1 = S::load(weights + L);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        const F xk = S::broadcast(x + r);
        s[r][0] = S::fma(w0, xk, s[r][0]);
        s[r][1] = S::fma(w1, xk, s[r][1]);
      }
      weights += 2 * L;
      x += R;
    }
    const F f0 = S::load(w.factors + b * 2 * L), f1 = S::load(w.factors + b * 2 * L + L);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      float* to = sums + r * ld;
      S::storeu(to, S::fma(s[r][0], f0, S::loadu(to)));
      S::storeu(to + L, S::fma(s[r][1], f1, S::loadu(to + L)));
    }
  }
}

template <class S>
using TileKernel = void (*)(const float*, const TileScratch<S>&, int64_t, float*, int64_t);

template <class S, int R>
constexpr TileKernel<S> tile_kernel_of() {
  if constexpr (R <= S::kTileRows) {
    return tile_kernel<S, R>;
  } else {
    return nullptr;
  }
}

template <class S>
constexpr TileKernel<S> kTileKernels[kMaxStripRows + 1] = {nullptr,
                                                           tile_kernel_of<S, 1>(),
                                                           tile_kernel_of<S, 2>(),
                                                           tile_kernel_of<S, 3>(),
                                                           tile_kernel_of<S, 4>(),
                                                           tile_kernel_of<S, 5>(),
                                                           tile_kernel_of<S, 6>(),
                                                           tile_kernel_of<S, 7>(),
                                                           tile_kernel_of<S, 8>(),
                                                           tile_kernel_of<S, 9>(),
                                                           tile_kernel_of<S, 10>(),
                                                           tile_kernel_of<S, 11>(),
                                                           tile_kernel_of<S, 12>()};

// Strips are whole; where half a strip or less would be left over, the last two share what they
// have, because short strips leave the FMA units waiting for each other's results.
template <class S>
int64_t tile_first_row(int64_t m, int64_t strip) {
  constexpr int64_t R = S::kTileRows;
  const int64_t strips = (m + R - 1) / R;
  if (strip >= strips) return m;
  const int64_t rest = m % R;
  const bool shares = strips > 1 && rest >= 1 && rest <= R / 2;
  return shares && strip == strips - 1 ? m - (R + rest) / 2 : strip * R;
}

template <class S>
void tile_gemm(const Panels<S>& w, const LinearInput& in, const float* prepared,
               const LinearTile& tile, TileScratch<S>& scratch) {
  using Shape = PanelShape<S::kLanes>;
  const int64_t end = (tile.n1 + Shape::kRows - 1) / Shape::kRows;
  for (int64_t m = 0; m < tile.m1 - tile.m0; ++m) {
    for (int64_t c = 0; c < tile.ld; c += S::kLanes) {
      S::storeu(tile.sums + m * tile.ld + c, S::zero());
    }
  }
  for (int64_t g = 0; g < w.groups; ++g) {
    for (int64_t p = tile.n0 / Shape::kRows; p < end; p += 2) {
      decode_group<S>(w, p, g, scratch);
      for (int64_t s = tile.strip0; s < tile.strip1; ++s) {
        const int64_t row = tile_first_row<S>(in.m, s), rows = tile_first_row<S>(in.m, s + 1) - row;
        const float* x = prepared + row * in.k + g * Shape::kGroupDepth * rows;
        float* sums = tile.sums + (row - tile.m0) * tile.ld + p * Shape::kRows - tile.n0;
        kTileKernels<S>[rows](x, scratch, w.blocks_in(g), sums, tile.ld);
      }
    }
  }
}

// ----------------------------------------------------------------------------------------------
// both

// v[k] = lane k of each of the rows v, for 8 rows of 8.
MX8_INLINE void transpose(__m256 (&v)[8]) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xEE);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}

// Rows x[0..rows) at i..i+7, transposed; rows beyond are zero.
MX8_INLINE void load_transposed(const float* const* x, int rows, int64_t i, __m256 (&v)[8]) {
  for (int r = 0; r < 8; ++r) v[r] = r < rows ? _mm256_loadu_ps(x[r] + i) : _mm256_setzero_ps();
  transpose(v);
}

// R rows of x as [k][R].
template <int R>
void interleave(const float* const* x, int64_t k, float* out) {
  int64_t i = 0;
  // A store writes 8 or 16 floats of which R count; the next ones overwrite the others. The last 16
  // k go one by one, so that nothing is written beyond the end.
  for (; i + 16 < k; i += 8) {
    __m256 low[8], high[8];
    load_transposed(x, R < 8 ? R : 8, i, low);
    if (R > 8) load_transposed(x + 8, R - 8, i, high);
    for (int j = 0; j < 8; ++j) {
      _mm256_storeu_ps(out + (i + j) * R, low[j]);
      if (R > 8) _mm256_storeu_ps(out + (i + j) * R + 8, high[j]);
    }
  }
  for (; i < k; ++i) {
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) out[i * R + r] = x[r][i];
  }
}

using Interleave = void (*)(const float* const*, int64_t, float*);
constexpr Interleave kInterleave[kMaxStripRows + 1] = {
    nullptr,        interleave<1>,  interleave<2>, interleave<3>, interleave<4>,
    interleave<5>,  interleave<6>,  interleave<7>, interleave<8>, interleave<9>,
    interleave<10>, interleave<11>, interleave<12>};

inline void interleave_rows(const LinearInput& in, int64_t row, int64_t rows, float* out) {
  const float* x[kMaxStripRows];
  for (int64_t r = 0; r < rows; ++r) x[r] = row_of(in, row + r);
  kInterleave[rows](x, in.k, out);
}

// The functions of the two tables.
template <class S>
struct Mxfp8Linear {
  static_assert(S::kTileRows <= kMaxStripRows);

  // vec: all rows are one strip, whose prepared form is x, the scaled x, and whether that is exact.
  static int64_t vec_first_row(int64_t m, int64_t strip) { return strip == 0 ? 0 : m; }
  static int64_t vec_prepared_floats(int64_t m, int64_t k) { return 2 * m * k + 1; }
  static int64_t vec_scratch_floats(int64_t, int64_t) { return 0; }

  static void vec_prepare(const LinearInput& in, int64_t, int64_t, float* x) {
    const int64_t count = in.m * in.k;
    interleave_rows(in, 0, in.m, x);
    x[2 * count] = scale_up<S>(x, count, x + count) ? 1.0f : 0.0f;
  }

  static void vec_sums(const WeightRef& ref, const LinearInput& in, const float* x,
                       const LinearTile& tile, float*) {
    const Panels<S> w(ref);
    const int64_t count = in.m * in.k;
    const VecInput input{x, x + count, x[2 * count] != 0};
    const VecKernels<S>& kernels = kVecKernels<S>[in.m];
    const int64_t end = (tile.n1 + S::kLanes - 1) / S::kLanes;
    for (int64_t p = tile.n0 / S::kLanes; p < end;) {
      const bool many = p + kernels.panels <= end;
      float* out = tile.sums + p * S::kLanes - tile.n0;
      (many ? kernels.many : kernels.one)(w, p, input, out, tile.ld);
      p += many ? kernels.panels : 1;
    }
  }

  // tile: strips of at most kTileRows as [k][rows].
  static int64_t tile_prepared_floats(int64_t m, int64_t k) { return m * k; }
  static int64_t tile_scratch_floats(int64_t, int64_t) {
    return static_cast<int64_t>(sizeof(TileScratch<S>) / sizeof(float));
  }

  static void tile_prepare(const LinearInput& in, int64_t strip0, int64_t strip1, float* prepared) {
    for (int64_t s = strip0; s < strip1; ++s) {
      const int64_t row = tile_first_row<S>(in.m, s), rows = tile_first_row<S>(in.m, s + 1) - row;
      interleave_rows(in, row, rows, prepared + row * in.k);
    }
  }

  static void tile_sums(const WeightRef& w, const LinearInput& in, const float* prepared,
                        const LinearTile& tile, float* scratch) {
    tile_gemm<S>(Panels<S>(w), in, prepared, tile, *reinterpret_cast<TileScratch<S>*>(scratch));
  }

  static constexpr LinearKernels vec(const char* name, double gmacs, double gbytes) {
    return {name,
            kVecRows,
            4 * S::kLanes,
            vec_first_row,
            vec_prepared_floats,
            vec_scratch_floats,
            vec_prepare,
            vec_sums,
            avx2::linear_epilogue,
            gmacs,
            gbytes};
  }

  static constexpr LinearKernels tile(const char* name, double gmacs, double gbytes) {
    return {name,
            S::kTileRows,
            2 * S::kLanes,
            tile_first_row<S>,
            tile_prepared_floats,
            tile_scratch_floats,
            tile_prepare,
            tile_sums,
            avx2::linear_epilogue,
            gmacs,
            gbytes};
  }
};

}  // namespace

}  // namespace mx8::cpu
