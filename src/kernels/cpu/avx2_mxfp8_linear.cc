// MXFP8 linear layers for AVX2: y[m, n] = sum over k of w[n, k] x[m, k].
//
// Operands: weights in CpuPanel8 (docs/layouts.md), FP32 activations, FP32 sums. 1.03 bytes a
// weight, read once per chunk of up to 240 rows; 2 N K M flops.
//
// Two kernels. Up to M = 8 weights are decoded and multiplied in registers ("vec"): bound by memory
// up to M = 2. Above, 16 columns x 256 k of weights are decoded to FP32 in L1 and multiplied by
// strips of 6 rows ("tile"): bound by FMA. On a Sapphire Rapids virtual machine at 3.0 GHz, one
// thread, 2026-12: vec decodes 18 GB/s from L2 at M = 1 and reaches 0.67 of the FMA peak at M = 8;
// tile 0.74 at M = 12 and 0.82 from M = 48 on.
//
// Numeric contract: every result has the bits of kernels/reference/linear.cc, for every input. The
// kernels run its operations in its order, one lane per output; what differs is where powers of two
// are multiplied in, which is exact.
//
// - Raw decode puts the code's 7 magnitude bits under a wider exponent field: w 2^-120, in 9
//   operations for 32 codes. Subnormal codes become subnormal floats, each of which costs an Intel
//   core 60 to 120 ns; the layout flags the blocks that hold one, and those go another way.
// - Half decode makes the same bits an FP16 number, w 2^-8, and widens it: exact for every code, at
//   twice the operations.
// - The tile kernel multiplies decoded weights back to w before it stores them.
// - The vec kernel leaves w 2^-120 and multiplies x by 2^112 beforehand. All terms of a block are
//   then 2^-8 of the twin's, as they are after the half decode with x itself, and the exponent of
//   the scale makes up for it, which holds for scale bytes up to 246. This is exact while 2^-109 <=
//   |x| < 2^16, since the last bit of a product weighs at least 2^(-109 - 23 - 9 - 8) = 2^-149, the
//   last bit of the smallest float. A strip that holds an x outside, zeros apart, takes the wide
//   form: half decode back to w, x itself.
#include <immintrin.h>

#include "kernels/cpu/avx2_linear.h"
#include "pack/cpu_panel8_shape.h"

namespace mx8::cpu::avx2 {

namespace {

using namespace panel8;  // NOLINT: the layout's constants

#define MX8_INLINE inline __attribute__((always_inline))

// Up to this many rows the vec kernel is faster (2026-12, Sapphire Rapids: 0.62 of the FMA peak
// against 0.53 at M = 7, 0.60 against 0.65 at M = 9).
constexpr int64_t kVecRows = 8;
// Columns of the vec kernel's widest step: 4 panels.
constexpr int64_t kVecStep = 32;
// How far ahead each stream is fetched.
constexpr int64_t kPrefetch = 2048;
// Columns of the register tile (two panels), and its largest number of rows: 12 sums, 2 weights and
// one activation make 15 of 16 registers.
constexpr int64_t kTileCols = 16;
constexpr int64_t kTileRows = 6;
constexpr int64_t kGroupDepth = kGroupBlocks * kBlock;

int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

const float* row_of(const LinearInput& in, int64_t m) {
  return in.x + (in.rows == nullptr ? m : in.rows[m]) * in.ld;
}

// The weight as this file sees it.
struct Panels {
  const uint8_t* data;
  const uint8_t* flags;
  int64_t count;
  int64_t stride;  // bytes of a panel
  int64_t blocks;
  int64_t groups;

  explicit Panels(const WeightRef& w) {
    data = static_cast<const uint8_t*>(w.data);
    count = (w.n + kRows - 1) / kRows;
    blocks = w.k / kBlock;
    groups = (blocks + kGroupBlocks - 1) / kGroupBlocks;
    stride = groups * kGroupScaleBytes + blocks * kBlockBytes;
    flags = data + count * stride;
  }
  int64_t blocks_in(int64_t group) const {
    return min_of(kGroupBlocks, blocks - group * kGroupBlocks);
  }
  static constexpr int64_t group_offset(int64_t group) {
    return group * (kGroupScaleBytes + kGroupBlocks * kBlockBytes);
  }
};

// 8 rows x 4 k of codes, decoded in two steps so that few registers are alive: words(), then
// lane<q>() for k = q.
struct RawDecode {
  struct Words {
    __m256i even;  // k = 0 and 2 of each row as 16-bit words
    __m256i odd;
  };
  static MX8_INLINE Words words(const uint8_t* unit) {
    const __m256i mask = _mm256_set1_epi16(static_cast<int16_t>(0x87F0));
    const __m256i v = _mm256_load_si256(reinterpret_cast<const __m256i*>(unit));
    return {_mm256_and_si256(_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 4), mask),
            _mm256_and_si256(_mm256_srai_epi16(v, 4), mask)};
  }
  template <int q>
  static MX8_INLINE __m256 lane(const Words& w) {
    const __m256i v = q % 2 == 0 ? w.even : w.odd;
    if (q < 2) return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
    return _mm256_castsi256_ps(
        _mm256_and_si256(v, _mm256_set1_epi32(static_cast<int32_t>(0xFFFF0000))));
  }
  static constexpr float kToWeight = 0x1p120f;
};

struct HalfDecode {
  struct Words {
    __m256i even;  // FP16: k = 0 of 8 rows, then k = 2
    __m256i odd;
  };
  static MX8_INLINE __m256i gather(__m256i v) {
    const __m256i low_words_first =
        _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1, 4, 5, 8, 9, 12,
                         13, 2, 3, 6, 7, 10, 11, 14, 15);
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, low_words_first), 0xD8);
  }
  static MX8_INLINE Words words(const uint8_t* unit) {
    const __m256i mask = _mm256_set1_epi16(static_cast<int16_t>(0xBF80));
    const __m256i v = _mm256_load_si256(reinterpret_cast<const __m256i*>(unit));
    return {gather(_mm256_and_si256(_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 1), mask)),
            gather(_mm256_and_si256(_mm256_srai_epi16(v, 1), mask))};
  }
  template <int q>
  static MX8_INLINE __m256 lane(const Words& w) {
    const __m256i v = q % 2 == 0 ? w.even : w.odd;
    return _mm256_cvtph_ps(q < 2 ? _mm256_castsi256_si128(v) : _mm256_extracti128_si256(v, 1));
  }
  static constexpr float kToWeight = 0x1p8f;
};

// The weight itself.
struct WideDecode : HalfDecode {
  template <int q>
  static MX8_INLINE __m256 lane(const Words& w) {
    return _mm256_mul_ps(HalfDecode::lane<q>(w), _mm256_set1_ps(kToWeight));
  }
};

// The scales of 8 rows as floats: byte 0 means 2^-127, the only subnormal among them.
MX8_INLINE __m256 scale_factors(const uint8_t* scales) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales));
  const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu8_epi32(bytes), 23);
  return _mm256_castsi256_ps(_mm256_max_epi32(bits, _mm256_set1_epi32(0x00400000)));
}

// The same times 2^8, for sums that are 2^-8 of the true ones. Bytes above 246, which only blocks
// of zeros may have here, saturate to a finite factor.
MX8_INLINE __m256 scale_factors_up8(const uint8_t* scales) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales));
  const __m128i up = _mm_min_epu8(_mm_adds_epu8(bytes, _mm_set1_epi8(8)), _mm_set1_epi8(-2));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(up), 23));
}

// --------------------------------------------------------------------------------------- few rows

template <class D, int q, int T, int P>
MX8_INLINE void multiply(const typename D::Words (&w)[P], const float* x, __m256 (&s)[P][T]) {
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    const __m256 xk = _mm256_broadcast_ss(x + q * T + t);
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) s[p][t] = _mm256_fmadd_ps(D::template lane<q>(w[p]), xk, s[p][t]);
  }
}

// s[p][t] = the sum of one block of panel p and row t; x is [k][T]. `ahead` is what each stream
// will want later.
template <class D, int T, int P>
MX8_INLINE void block_sums(const uint8_t* units, int64_t stride, int64_t ahead, const float* x,
                           __m256 (&s)[P][T]) {
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) s[p][t] = _mm256_setzero_ps();
  }
#pragma GCC unroll 8
  for (int u = 0; u < kBlock / 4; ++u) {
    typename D::Words w[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      const uint8_t* unit = units + p * stride + u * kUnitBytes;
      if (u % 2 == 0) _mm_prefetch(reinterpret_cast<const char*>(unit + ahead), _MM_HINT_T0);
      w[p] = D::words(unit);
    }
    multiply<D, 0, T, P>(w, x + 4 * u * T, s);
    multiply<D, 1, T, P>(w, x + 4 * u * T, s);
    multiply<D, 2, T, P>(w, x + 4 * u * T, s);
    multiply<D, 3, T, P>(w, x + 4 * u * T, s);
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
template <int T, int P>
void vec_kernel(const Panels& w, int64_t panel, const VecInput& in, float* out, int64_t ld) {
  const uint8_t* base = w.data + panel * w.stride;
  const uint8_t* flags = w.flags + panel * w.groups;
  const float* x = in.x;
  const float* scaled = in.scaled;
  __m256 sums[P][T];
  for (int p = 0; p < P; ++p) {
    for (int t = 0; t < T; ++t) sums[p][t] = _mm256_setzero_ps();
  }
  for (int64_t g = 0; g < w.groups; ++g) {
    const uint8_t* group = base + Panels::group_offset(g);
    // Near its end a stream fetches the start of the panel that it will walk next.
    const bool leaving = Panels::group_offset(g + 1) + kPrefetch > w.stride;
    const int64_t ahead = kPrefetch + (leaving ? (P - 1) * w.stride : 0);
    unsigned marked = flags[g];
    for (int p = 1; p < P; ++p) marked |= flags[p * w.groups + g];
    for (int p = 0; p < P; ++p) {
      _mm_prefetch(reinterpret_cast<const char*>(group + p * w.stride + ahead), _MM_HINT_T0);
    }
    const int64_t blocks = w.blocks_in(g);
    for (int64_t b = 0; b < blocks; ++b) {
      const uint8_t* scales = group + b * kRows;
      const uint8_t* units = group + kGroupScaleBytes + b * kBlockBytes;
      __m256 s[P][T];
      if (!in.exact) {
        block_sums<WideDecode, T, P>(units, w.stride, ahead, x, s);
      } else if (marked >> b & 1) {
        block_sums<HalfDecode, T, P>(units, w.stride, ahead, x, s);
      } else {
        block_sums<RawDecode, T, P>(units, w.stride, ahead, scaled, s);
      }
      x += kBlock * T;
      scaled += kBlock * T;
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const uint8_t* at = scales + p * w.stride;
        const __m256 factor = in.exact ? scale_factors_up8(at) : scale_factors(at);
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) sums[p][t] = _mm256_fmadd_ps(s[p][t], factor, sums[p][t]);
      }
    }
  }
  for (int p = 0; p < P; ++p) {
    for (int t = 0; t < T; ++t) _mm256_storeu_ps(out + t * ld + p * kRows, sums[p][t]);
  }
}

using VecKernel = void (*)(const Panels&, int64_t, const VecInput&, float*, int64_t);

// For T rows: the kernel that walks several panels at once, and the one for the panels left over.
struct VecKernels {
  VecKernel many;
  VecKernel one;
  int64_t panels;
};

// At least 8 chains of FMAs hide their latency; one row is bound by decoding, and takes 4 panels
// for the sake of 4 streams of memory.
constexpr VecKernels kVecKernels[kVecRows + 1] = {{nullptr, nullptr, 0},
                                                  {vec_kernel<1, 4>, vec_kernel<1, 1>, 4},
                                                  {vec_kernel<2, 4>, vec_kernel<2, 1>, 4},
                                                  {vec_kernel<3, 2>, vec_kernel<3, 1>, 2},
                                                  {vec_kernel<4, 2>, vec_kernel<4, 1>, 2},
                                                  {vec_kernel<5, 1>, vec_kernel<5, 1>, 1},
                                                  {vec_kernel<6, 1>, vec_kernel<6, 1>, 1},
                                                  {vec_kernel<7, 1>, vec_kernel<7, 1>, 1},
                                                  {vec_kernel<8, 1>, vec_kernel<8, 1>, 1}};

// Writes x 2^112; true if every x is 0 or within [2^-109, 2^16).
bool scale_up(const float* x, int64_t count, float* out) {
  const __m256 up = _mm256_set1_ps(0x1p112f), least = _mm256_set1_ps(0x1p-109f);
  const __m256 limit = _mm256_set1_ps(0x1p16f), zero = _mm256_setzero_ps();
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  __m256 good = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
  for (int64_t i = 0; i < count; i += 8) {
    const __m256 v = _mm256_loadu_ps(x + i);
    const __m256 size = _mm256_and_ps(v, magnitude);
    const __m256 inside = _mm256_and_ps(_mm256_cmp_ps(size, least, _CMP_GE_OQ),
                                        _mm256_cmp_ps(size, limit, _CMP_LT_OQ));
    good = _mm256_and_ps(good, _mm256_or_ps(inside, _mm256_cmp_ps(v, zero, _CMP_EQ_OQ)));
    _mm256_storeu_ps(out + i, _mm256_mul_ps(v, up));
  }
  return _mm256_movemask_ps(good) == 0xFF;
}

void vec_gemm(const Panels& w, int64_t m, const VecInput& in, const LinearTile& tile) {
  const VecKernels& kernels = kVecKernels[m];
  const int64_t end = (tile.n1 + kRows - 1) / kRows;
  for (int64_t p = tile.n0 / kRows; p < end;) {
    const bool many = p + kernels.panels <= end;
    float* out = tile.sums + p * kRows - tile.n0;
    (many ? kernels.many : kernels.one)(w, p, in, out, tile.ld);
    p += many ? kernels.panels : 1;
  }
}

// ------------------------------------------------------------------------------------------- tile

// Weights of 16 columns x one group in FP32 and the factors of its blocks.
struct TileScratch {
  float weights[kGroupDepth * kTileCols];
  float factors[kGroupBlocks * kTileCols];
};

template <class D>
MX8_INLINE void decode_block(const uint8_t* units, float* out) {
  const __m256 up = _mm256_set1_ps(D::kToWeight);
#pragma GCC unroll 8
  for (int u = 0; u < kBlock / 4; ++u) {
    const typename D::Words w = D::words(units + u * kUnitBytes);
    float* at = out + 4 * u * kTileCols;
    _mm256_store_ps(at, _mm256_mul_ps(D::template lane<0>(w), up));
    _mm256_store_ps(at + kTileCols, _mm256_mul_ps(D::template lane<1>(w), up));
    _mm256_store_ps(at + 2 * kTileCols, _mm256_mul_ps(D::template lane<2>(w), up));
    _mm256_store_ps(at + 3 * kTileCols, _mm256_mul_ps(D::template lane<3>(w), up));
  }
}

void decode_group(const Panels& w, int64_t panel, int64_t g, TileScratch& out) {
  for (int64_t half = 0; half < 2; ++half) {
    // A missing second panel repeats the first; its results land in columns beyond N.
    const int64_t p = min_of(panel + half, w.count - 1);
    const uint8_t* group = w.data + p * w.stride + Panels::group_offset(g);
    const unsigned marked = w.flags[p * w.groups + g];
    for (int64_t b = 0; b < w.blocks_in(g); ++b) {
      const uint8_t* units = group + kGroupScaleBytes + b * kBlockBytes;
      float* weights = out.weights + b * kBlock * kTileCols + half * kRows;
      if (marked >> b & 1) {
        decode_block<HalfDecode>(units, weights);
      } else {
        decode_block<RawDecode>(units, weights);
      }
      _mm256_store_ps(out.factors + b * kTileCols + half * kRows, scale_factors(group + b * kRows));
    }
  }
}

// sums[r][0..15] += the blocks of one group; x is packed [k][R].
template <int R>
void tile_kernel(const float* x, const TileScratch& w, int64_t blocks, float* sums, int64_t ld) {
  const float* weights = w.weights;
  for (int64_t b = 0; b < blocks; ++b) {
    __m256 s[R][2];
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) s[r][0] = s[r][1] = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (int64_t k = 0; k < kBlock; ++k) {
      const __m256 w0 = _mm256_load_ps(weights), w1 = _mm256_load_ps(weights + 8);
#pragma GCC unroll 6
      for (int r = 0; r < R; ++r) {
        const __m256 xk = _mm256_broadcast_ss(x + r);
        s[r][0] = _mm256_fmadd_ps(w0, xk, s[r][0]);
        s[r][1] = _mm256_fmadd_ps(w1, xk, s[r][1]);
      }
      weights += kTileCols;
      x += R;
    }
    const __m256 f0 = _mm256_load_ps(w.factors + b * kTileCols);
    const __m256 f1 = _mm256_load_ps(w.factors + b * kTileCols + 8);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      float* to = sums + r * ld;
      _mm256_storeu_ps(to, _mm256_fmadd_ps(s[r][0], f0, _mm256_loadu_ps(to)));
      _mm256_storeu_ps(to + 8, _mm256_fmadd_ps(s[r][1], f1, _mm256_loadu_ps(to + 8)));
    }
  }
}

using TileKernel = void (*)(const float*, const TileScratch&, int64_t, float*, int64_t);
constexpr TileKernel kTileKernels[kTileRows + 1] = {nullptr,        tile_kernel<1>, tile_kernel<2>,
                                                    tile_kernel<3>, tile_kernel<4>, tile_kernel<5>,
                                                    tile_kernel<6>};

// Strips have 6 rows; where 1 to 3 would be left over, the last two share what they have, because
// strips of 4 and 5 rows keep the FMA units busy and strips of 1 to 3 don't.
int64_t tile_first_row(int64_t m, int64_t strip) {
  const int64_t strips = (m + kTileRows - 1) / kTileRows;
  if (strip >= strips) return m;
  const int64_t rest = m % kTileRows;
  if (strip == strips - 1 && strips > 1 && rest >= 1 && rest <= 3) {
    return m - (kTileRows + rest) / 2;
  }
  return strip * kTileRows;
}

void tile_gemm(const Panels& w, const LinearInput& in, const float* prepared,
               const LinearTile& tile, TileScratch& scratch) {
  const int64_t end = (tile.n1 + kRows - 1) / kRows;
  for (int64_t m = 0; m < tile.m1 - tile.m0; ++m) {
    for (int64_t c = 0; c < tile.ld; c += 8) {
      _mm256_storeu_ps(tile.sums + m * tile.ld + c, _mm256_setzero_ps());
    }
  }
  for (int64_t g = 0; g < w.groups; ++g) {
    for (int64_t p = tile.n0 / kRows; p < end; p += 2) {
      decode_group(w, p, g, scratch);
      for (int64_t s = tile.strip0; s < tile.strip1; ++s) {
        const int64_t row = tile_first_row(in.m, s), rows = tile_first_row(in.m, s + 1) - row;
        const float* x = prepared + row * in.k + g * kGroupDepth * rows;
        float* sums = tile.sums + (row - tile.m0) * tile.ld + p * kRows - tile.n0;
        kTileKernels[rows](x, scratch, w.blocks_in(g), sums, tile.ld);
      }
    }
  }
}

// --------------------------------------------------------------------------------------- both

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

// R rows of x as [k][R].
template <int R>
void interleave(const float* const* x, int64_t k, float* out) {
  int64_t i = 0;
  // A store writes 8 floats of which R count; the next one overwrites the others. The last step
  // goes one by one, so that nothing is written beyond the end.
  for (; i + 8 < k; i += 8) {
    __m256 v[8];
    for (int r = 0; r < 8; ++r) v[r] = r < R ? _mm256_loadu_ps(x[r] + i) : _mm256_setzero_ps();
    transpose(v);
    for (int j = 0; j < 8; ++j) _mm256_storeu_ps(out + (i + j) * R, v[j]);
  }
  for (; i < k; ++i) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) out[i * R + r] = x[r][i];
  }
}

using Interleave = void (*)(const float* const*, int64_t, float*);
constexpr Interleave kInterleave[kVecRows + 1] = {nullptr,       interleave<1>, interleave<2>,
                                                  interleave<3>, interleave<4>, interleave<5>,
                                                  interleave<6>, interleave<7>, interleave<8>};

void interleave_rows(const LinearInput& in, int64_t row, int64_t rows, float* out) {
  const float* x[kVecRows];
  for (int64_t r = 0; r < rows; ++r) x[r] = row_of(in, row + r);
  kInterleave[rows](x, in.k, out);
}

// All rows are one strip, whose prepared form is x, the scaled x, and whether that is exact.
int64_t vec_first_row(int64_t m, int64_t strip) { return strip == 0 ? 0 : m; }

int64_t vec_prepared_floats(int64_t m, int64_t k) { return 2 * m * k + 1; }

void vec_prepare(const LinearInput& in, int64_t, int64_t, float* x) {
  const int64_t count = in.m * in.k;
  interleave_rows(in, 0, in.m, x);
  x[2 * count] = scale_up(x, count, x + count) ? 1.0f : 0.0f;
}

void vec_sums(const WeightRef& w, const LinearInput& in, const float* x, const LinearTile& tile,
              float*) {
  const int64_t count = in.m * in.k;
  vec_gemm(Panels(w), in.m, {x, x + count, x[2 * count] != 0}, tile);
}

int64_t tile_prepared_floats(int64_t m, int64_t k) { return m * k; }

int64_t tile_scratch_floats(int64_t, int64_t) {
  return static_cast<int64_t>(sizeof(TileScratch) / sizeof(float));
}

int64_t no_scratch(int64_t, int64_t) { return 0; }

void tile_prepare(const LinearInput& in, int64_t strip0, int64_t strip1, float* prepared) {
  for (int64_t s = strip0; s < strip1; ++s) {
    const int64_t row = tile_first_row(in.m, s), rows = tile_first_row(in.m, s + 1) - row;
    interleave_rows(in, row, rows, prepared + row * in.k);
  }
}

void tile_sums(const WeightRef& w, const LinearInput& in, const float* prepared,
               const LinearTile& tile, float* scratch) {
  tile_gemm(Panels(w), in, prepared, tile, *reinterpret_cast<TileScratch*>(scratch));
}

constexpr LinearKernels kVec = {"avx2_mxfp8_linear_vec", kVecRows,   kVecStep,    vec_first_row,
                                vec_prepared_floats,     no_scratch, vec_prepare, vec_sums,
                                linear_epilogue,         32,         12};
constexpr LinearKernels kTile = {"avx2_mxfp8_linear_tile",
                                 kTileRows,
                                 kTileCols,
                                 tile_first_row,
                                 tile_prepared_floats,
                                 tile_scratch_floats,
                                 tile_prepare,
                                 tile_sums,
                                 linear_epilogue,
                                 36,
                                 12};

}  // namespace

const LinearKernels& mxfp8_linear(int64_t m) { return m <= kVecRows ? kVec : kTile; }

}  // namespace mx8::cpu::avx2
