// Attention of the query heads of one KV head over pages of keys and values.
//
// What: out = softmax(scale * q k^T) v for rows = queries x heads of the group, in the order that
//   kernels/attention_tile.h states. Both products are register tiles of up to 6 rows: scores have
//   lanes of consecutive keys (keys lie transposed), outputs have lanes of consecutive head
//   elements, so there is no horizontal sum but the maximum of a block.
// Bytes: each key and value is read once per tile: 4 * head_dim bytes a key in BF16.
// FLOPs: 4 * head_dim per (row, key). Per row and block of 64 keys at head_dim 64: 1024 FMAs
//   against about 150 other vector operations, mostly the exponential.
// Bound: decode reads the cache at the speed of memory; prefill is bound by FMA.
// Measured on one thread of a Xeon of family 6 model 207 that was shared with other work:
//   2026-12-01, prefill of 256 and 1024 tokens, 9 heads of 64: 0.60 and 0.61 of the FMA peak (99
//   GFLOP/s), counting only what the causal mask leaves; decode, 128 tokens in cache: 21 GB/s at 3
//   heads to a KV head.
// BF16: one load gives 16 elements; a shift gives the even ones and a mask the odd ones, without a
//   shuffle. The order that comes out (even lanes, odd lanes) is undone once per block of scores
//   and once per output. Tiles of more rows than one register tile convert a block once to FP32.
// Keys not seen: their scores become minus infinity, and the product with the values runs over the
//   keys that all rows of the register tile see, then row by row over the rest, so that nothing in
//   an unseen slot is ever multiplied by 0.
// Lost: keys as [slot][head_dim] (horizontal sums, another order for decode than for tiles);
//   blocks of 32 keys (more corrections of the accumulators); both halves of a load at once beside
//   three rows (spills an accumulator: 11 cycles instead of 7 a step).
#include "kernels/cpu/avx2_attention.h"

#include "kernels/cpu/avx2_math.h"

namespace mx8::cpu::avx2 {

namespace {

constexpr int kStripKeys = 16;  // consecutive keys of one page
constexpr int kStrips = kBlockKeys / kStripKeys;
constexpr int kMaxRows = 6;  // 6 x 2 accumulators, 2 operands and a broadcast: 15 of 16 registers

inline int min_of(int a, int b) { return a < b ? a : b; }
inline int max_of(int a, int b) { return a > b ? a : b; }

// Sixteen elements as two registers. A tile asks for one after the other and uses it up: two at
// once would not fit beside twelve accumulators.
struct Pair {
  __m256 a;
  __m256 b;
};

struct Bf16 {
  using Type = uint16_t;
  static constexpr bool kEvenOdd = true;  // a: even elements, b: odd elements
  static __m256i raw(const Type* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static __m256 a(const Type* from) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(raw(from), 16));
  }
  static __m256 b(const Type* from) {
    const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xFFFF0000));
    return _mm256_castsi256_ps(_mm256_and_si256(raw(from), mask));
  }
  static float to_f32(Type x) { return __builtin_bit_cast(float, uint32_t{x} << 16); }
};

struct F32 {
  using Type = float;
  static constexpr bool kEvenOdd = false;  // a: elements 0 .. 7, b: 8 .. 15
  static __m256 a(const Type* from) { return _mm256_loadu_ps(from); }
  static __m256 b(const Type* from) { return _mm256_loadu_ps(from + 8); }
  static float to_f32(Type x) { return x; }
};

// Even and odd elements to elements 0 .. 7 and 8 .. 15.
inline Pair in_order(Pair p) {
  const __m256 low = _mm256_unpacklo_ps(p.a, p.b);
  const __m256 high = _mm256_unpackhi_ps(p.a, p.b);
  return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
}

// Keys and values of one block. Strip s holds keys 16 s .. 16 s + 15: element d of them is at
// keys[s] + d * key_stride, the value of its i-th key at values[s] + i * head_dim. Pages are too
// short for the processor to see them coming, so each strip names the one a block later to be
// prefetched (itself where there is none).
template <class Kv>
struct Block {
  const typename Kv::Type* keys[kStrips];
  const typename Kv::Type* values[kStrips];
  const typename Kv::Type* next_keys[kStrips];
  const typename Kv::Type* next_values[kStrips];
  int64_t key_stride;
};

// One register tile of rows and the keys of the current block that each of them sees.
struct Rows {
  int count;
  float scale;  // read after the loops: in a register it would cost an accumulator
  const float* q[kMaxRows];
  float* state[kMaxRows];  // of the segment
  int begin[kMaxRows];     // keys of the block seen: begin <= key < end
  int end[kMaxRows];
  float correction[kMaxRows];  // for acc, not applied yet; 1 once it was
};

inline void prefetch(const void* at) { _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T0); }

// acc[r][i], acc[r][i + 1] += x[r][at] * the sixteen elements at `from`. Written so that no more
// than 16 registers live at once: many rows broadcast one factor after the other beside both
// halves, few rows keep their factors and take one half after the other.
template <class Kv, int R, int N>
inline __attribute__((always_inline)) void multiply_add(const float* const (&x)[R], int at,
                                                        const typename Kv::Type* from,
                                                        __m256 (&acc)[R][N], int i) {
  if constexpr (R > 3) {
    const __m256 a = Kv::a(from);
    const __m256 b = Kv::b(from);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256 factor = _mm256_broadcast_ss(x[r] + at);
      acc[r][i] = _mm256_fmadd_ps(factor, a, acc[r][i]);
      acc[r][i + 1] = _mm256_fmadd_ps(factor, b, acc[r][i + 1]);
    }
  } else {
    __m256 factor[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) factor[r] = _mm256_broadcast_ss(x[r] + at);
    const __m256 a = Kv::a(from);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[r][i] = _mm256_fmadd_ps(factor[r], a, acc[r][i]);
    const __m256 b = Kv::b(from);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[r][i + 1] = _mm256_fmadd_ps(factor[r], b, acc[r][i + 1]);
  }
}

// scores[r][16 s + i] = scale * dot(q[r], key i of strip s) for `S` strips from `strip`.
template <class Kv, int R, int S>
__attribute__((noinline)) void score_tile(const Rows& rows, int first, const Block<Kv>& block,
                                          int strip, int head_dim, float* scores) {
  __m256 acc[R][2 * S];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < 2 * S; ++i) acc[r][i] = _mm256_setzero_ps();
  }
  const float* q[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) q[r] = rows.q[first + r];
  const typename Kv::Type* keys[S];
  int64_t ahead[S];
#pragma GCC unroll 8
  for (int s = 0; s < S; ++s) {
    keys[s] = block.keys[strip + s];
    ahead[s] = block.next_keys[strip + s] - keys[s];
  }
  for (int d = 0; d < head_dim; ++d) {
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) {
      multiply_add<Kv, R, 2 * S>(q, d, keys[s], acc, 2 * s);
      prefetch(keys[s] + ahead[s]);
      keys[s] += block.key_stride;
    }
  }
  const __m256 factor = _mm256_set1_ps(rows.scale);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s) {
      Pair p = {_mm256_mul_ps(acc[r][2 * s], factor), _mm256_mul_ps(acc[r][2 * s + 1], factor)};
      if (Kv::kEvenOdd) p = in_order(p);
      float* to = scores + (first + r) * kBlockKeys + (strip + s) * kStripKeys;
      _mm256_store_ps(to, p.a);
      _mm256_store_ps(to + 8, p.b);
    }
  }
}

// acc[r] = acc[r] * correction, then fma over the keys [begin, end) of the block in order, for R
// rows and C pairs of head elements from `column`.
template <class Kv, int R, int C>
__attribute__((noinline)) void value_tile(const Rows& rows, int first, const Block<Kv>& block,
                                          int begin, int end, int head_dim, int column,
                                          const float* scores) {
  __m256 acc[R][2 * C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const float* from = rows.state[first + r] + kStateHeader + column;
    const __m256 c = _mm256_set1_ps(rows.correction[first + r]);
#pragma GCC unroll 8
    for (int i = 0; i < 2 * C; ++i) acc[r][i] = _mm256_mul_ps(_mm256_load_ps(from + 8 * i), c);
  }
  const float* p[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) p[r] = scores + (first + r) * kBlockKeys;
  for (int s = begin / kStripKeys; s * kStripKeys < end; ++s) {
    const int last = min_of(end, (s + 1) * kStripKeys);
    int key = max_of(begin, s * kStripKeys);
    const typename Kv::Type* v =
        block.values[s] + int64_t{key - s * kStripKeys} * head_dim + column;
    const int64_t ahead = block.next_values[s] - block.values[s];
    for (; key < last; ++key, v += head_dim) {
#pragma GCC unroll 8
      for (int i = 0; i < C; ++i) {
        multiply_add<Kv, R, 2 * C>(p, key, v + 16 * i, acc, 2 * i);
        prefetch(v + 16 * i + ahead);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    float* to = rows.state[first + r] + kStateHeader + column;
#pragma GCC unroll 8
    for (int i = 0; i < 2 * C; ++i) _mm256_store_ps(to + 8 * i, acc[r][i]);
  }
}

// Few rows leave registers for more columns, which then hide the latency of the FMAs.
template <class Kv, int R>
inline void value_rows(const Rows& rows, int first, const Block<Kv>& block, int begin, int end,
                       int head_dim, const float* scores) {
  constexpr int kWide = R == 1 ? 4 : R <= 3 ? 2 : 1;
  int column = 0;
  for (; column + 16 * kWide <= head_dim; column += 16 * kWide) {
    value_tile<Kv, R, kWide>(rows, first, block, begin, end, head_dim, column, scores);
  }
  for (; column < head_dim; column += 16) {
    value_tile<Kv, R, 1>(rows, first, block, begin, end, head_dim, column, scores);
  }
}

// Scores of keys that a row does not see become minus infinity; returns the largest score.
inline float mask_scores(int begin, int end, float* scores) {
  const __m256 lowest = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xFF800000)));
  __m256 largest = lowest;
  for (int i = begin / 8; 8 * i < end; ++i) {
    __m256 s = _mm256_load_ps(scores + 8 * i);
    if (8 * i < begin || 8 * i + 8 > end) {
      const __m256i key = _mm256_add_epi32(lane_numbers(), _mm256_set1_epi32(8 * i));
      const __m256i seen = _mm256_and_si256(_mm256_cmpgt_epi32(key, _mm256_set1_epi32(begin - 1)),
                                            _mm256_cmpgt_epi32(_mm256_set1_epi32(end), key));
      s = _mm256_blendv_ps(lowest, s, _mm256_castsi256_ps(seen));
      _mm256_store_ps(scores + 8 * i, s);
    }
    largest = _mm256_max_ps(largest, s);
  }
  return max8(largest);
}

// The running maximum, the weights p in place of the scores, and l. Registers of scores without a
// key that the row sees are left alone: their weights would be 0.
__attribute__((noinline)) void softmax_rows(Rows& rows, float* scores) {
  alignas(32) float before[8] = {};
  alignas(32) float after[8] = {};
  for (int r = 0; r < rows.count; ++r) {
    if (rows.begin[r] >= rows.end[r]) continue;  // exp(0 - 0) = 1 leaves acc as it is
    const float m = rows.state[r][kStateM];
    const float most = mask_scores(rows.begin[r], rows.end[r], scores + r * kBlockKeys);
    before[r] = m;
    after[r] = m > most ? m : most;
    rows.state[r][kStateM] = after[r];
  }
  const __m256 change = _mm256_sub_ps(_mm256_load_ps(before), _mm256_load_ps(after));
  _mm256_store_ps(before, exp_nonpositive(change));
  for (int r = 0; r < rows.count; ++r) {
    rows.correction[r] = before[r];
    if (rows.begin[r] >= rows.end[r]) continue;
    const __m256 m = _mm256_set1_ps(after[r]);
    __m256 sum = _mm256_setzero_ps();
    for (int i = rows.begin[r] / 8; 8 * i < rows.end[r]; ++i) {
      float* at = scores + r * kBlockKeys + 8 * i;
      const __m256 p = exp_nonpositive(_mm256_sub_ps(_mm256_load_ps(at), m));
      _mm256_store_ps(at, p);
      sum = _mm256_add_ps(sum, p);
    }
    const __m256 l = _mm256_load_ps(rows.state[r]);
    _mm256_store_ps(rows.state[r], _mm256_fmadd_ps(l, _mm256_set1_ps(before[r]), sum));
  }
}

template <class Kv>
void value_row_rest(Rows& rows, int r, const Block<Kv>& block, int begin, int end, int head_dim,
                    const float* scores) {
  if (begin >= end) return;
  value_rows<Kv, 1>(rows, r, block, begin, end, head_dim, scores);
  rows.correction[r] = 1.0f;
}

// Adds one block to R rows.
template <class Kv, int R>
void add_block(Rows& rows, const Block<Kv>& block, int head_dim, float* scores) {
  int begin = 0, end = kBlockKeys, first = kBlockKeys, last = 0;
  for (int r = 0; r < R; ++r) {
    begin = max_of(begin, rows.begin[r]);
    end = min_of(end, rows.end[r]);
    if (rows.begin[r] >= rows.end[r]) continue;
    first = min_of(first, rows.begin[r]);
    last = max_of(last, rows.end[r]);
  }
  if (first >= last) return;

  int strip = first / kStripKeys;
  const int strips = (last + kStripKeys - 1) / kStripKeys;
  if constexpr (R <= 3) {
    for (; strip + 2 <= strips; strip += 2) {
      score_tile<Kv, R, 2>(rows, 0, block, strip, head_dim, scores);
    }
  }
  for (; strip < strips; ++strip) {
    score_tile<Kv, R, 1>(rows, 0, block, strip, head_dim, scores);
  }
  softmax_rows(rows, scores);

  // In ascending order for every row: what it sees before the common keys, those, what it sees
  // after.
  if (begin < end) {
    for (int r = 0; r < R; ++r) {
      value_row_rest(rows, r, block, rows.begin[r], begin, head_dim, scores);
    }
    value_rows<Kv, R>(rows, 0, block, begin, end, head_dim, scores);
    for (int r = 0; r < R; ++r) {
      rows.correction[r] = 1.0f;
      value_row_rest(rows, r, block, end, rows.end[r], head_dim, scores);
    }
  } else {
    for (int r = 0; r < R; ++r) {
      value_row_rest(rows, r, block, rows.begin[r], rows.end[r], head_dim, scores);
    }
  }
}

template <class Kv>
void add_block(Rows& rows, const Block<Kv>& block, int head_dim, float* scores) {
  switch (rows.count) {
    case 1:
      return add_block<Kv, 1>(rows, block, head_dim, scores);
    case 2:
      return add_block<Kv, 2>(rows, block, head_dim, scores);
    case 3:
      return add_block<Kv, 3>(rows, block, head_dim, scores);
    case 4:
      return add_block<Kv, 4>(rows, block, head_dim, scores);
    case 5:
      return add_block<Kv, 5>(rows, block, head_dim, scores);
    default:
      return add_block<Kv, 6>(rows, block, head_dim, scores);
  }
}

// The pointers of a block whose strips each lie in one page. Of the context, counted from the
// block's first key, `end` keys have pages.
template <class Kv>
Block<Kv> block_in_cache(const AttentionTile& t, int first_key_of_block, int end) {
  const KvCache& c = t.cache;
  Block<Kv> block = {};
  block.key_stride = c.page_size;
  for (int i = 0; i < 2 * kStrips && i * kStripKeys < end; ++i) {
    const int key = first_key_of_block + i * kStripKeys;
    const int64_t head =
        (int64_t{t.pages[key / c.page_size]} * c.kv_heads + t.kv_head) * c.head_dim * c.page_size;
    const int slot = key % c.page_size;
    const auto* keys = static_cast<const typename Kv::Type*>(c.keys) + head + slot;
    const auto* values =
        static_cast<const typename Kv::Type*>(c.values) + head + int64_t{slot} * c.head_dim;
    if (i < kStrips) {
      block.keys[i] = block.next_keys[i] = keys;
      block.values[i] = block.next_values[i] = values;
    } else {
      block.next_keys[i - kStrips] = keys;
      block.next_values[i - kStrips] = values;
    }
  }
  return block;
}

// The same block as FP32 in scratch, [head_dim][64] and [64][head_dim].
Block<F32> block_in(float* to, int head_dim) {
  Block<F32> block;
  block.key_stride = kBlockKeys;
  for (int s = 0; s < kStrips; ++s) {
    block.keys[s] = block.next_keys[s] = to + s * kStripKeys;
    block.values[s] = block.next_values[s] = to + (kBlockKeys + s * kStripKeys) * int64_t{head_dim};
  }
  return block;
}

Block<F32> convert_block(const Block<Bf16>& from, int end, int head_dim, float* to) {
  for (int s = 0; s * kStripKeys < end; ++s) {
    const uint16_t* k = from.keys[s];
    float* keys = to + s * kStripKeys;
    for (int d = 0; d < head_dim; ++d, k += from.key_stride, keys += kBlockKeys) {
      _mm256_store_ps(keys, bf16_to_f32(k));
      _mm256_store_ps(keys + 8, bf16_to_f32(k + 8));
    }
    const uint16_t* v = from.values[s];
    float* values = to + (kBlockKeys + s * kStripKeys) * int64_t{head_dim};
    const int keys_here = min_of(kStripKeys, end - s * kStripKeys);
    for (int64_t i = 0; i < int64_t{keys_here} * head_dim; i += 8) {
      _mm256_store_ps(values + i, bf16_to_f32(v + i));
    }
  }
  return block_in(to, head_dim);
}

// Key by key, for pages that strips don't fit.
template <class Kv>
Block<F32> gather_block(const AttentionTile& t, int first_key_of_block, int end, float* to) {
  const KvCache& c = t.cache;
  for (int i = 0; i < end; ++i) {
    const int key = first_key_of_block + i;
    const int64_t head =
        (int64_t{t.pages[key / c.page_size]} * c.kv_heads + t.kv_head) * c.head_dim * c.page_size;
    const int slot = key % c.page_size;
    const auto* k = static_cast<const typename Kv::Type*>(c.keys) + head + slot;
    const auto* v =
        static_cast<const typename Kv::Type*>(c.values) + head + int64_t{slot} * c.head_dim;
    for (int d = 0; d < c.head_dim; ++d) {
      to[d * kBlockKeys + i] = Kv::to_f32(k[int64_t{d} * c.page_size]);
      to[(kBlockKeys + i) * int64_t{c.head_dim} + d] = Kv::to_f32(v[d]);
    }
  }
  return block_in(to, c.head_dim);
}

// total = merge of total and from, for a row.
void merge_state(const float* from, int head_dim, float* total) {
  const float m = total[kStateM] > from[kStateM] ? total[kStateM] : from[kStateM];
  const __m256 factors = exp_nonpositive(_mm256_sub_ps(
      _mm256_setr_ps(total[kStateM], from[kStateM], 0, 0, 0, 0, 0, 0), _mm256_set1_ps(m)));
  const __m256 ct = _mm256_broadcastss_ps(_mm256_castps256_ps128(factors));
  const __m256 cs = _mm256_broadcastss_ps(
      _mm_shuffle_ps(_mm256_castps256_ps128(factors), _mm256_castps256_ps128(factors), 1));
  const auto merge = [&](int i) {
    const __m256 added = _mm256_mul_ps(_mm256_load_ps(from + i), cs);
    _mm256_store_ps(total + i, _mm256_fmadd_ps(_mm256_load_ps(total + i), ct, added));
  };
  merge(0);
  for (int i = kStateHeader; i < kStateHeader + head_dim; i += 8) merge(i);
  total[kStateM] = m;
}

void copy_state(const float* from, int head_dim, bool even_odd, float* to) {
  _mm256_store_ps(to, _mm256_load_ps(from));
  to[kStateM] = from[kStateM];
  for (int i = kStateHeader; i < kStateHeader + head_dim; i += 16) {
    Pair p = {_mm256_load_ps(from + i), _mm256_load_ps(from + i + 8)};
    if (even_odd) p = in_order(p);
    _mm256_store_ps(to + i, p.a);
    _mm256_store_ps(to + i + 8, p.b);
  }
}

void finish(const float* total, int head_dim, bool even_odd, float* out) {
  const __m256 inverse = _mm256_set1_ps(1.0f / sum8(_mm256_load_ps(total)));
  for (int d = 0; d < head_dim; d += 16) {
    Pair p = {_mm256_load_ps(total + kStateHeader + d),
              _mm256_load_ps(total + kStateHeader + d + 8)};
    if (even_odd) p = in_order(p);
    _mm256_storeu_ps(out + d, _mm256_mul_ps(p.a, inverse));
    _mm256_storeu_ps(out + d + 8, _mm256_mul_ps(p.b, inverse));
  }
}

// to[d * stride] = x[d] as BF16.
void write_bf16(const float* x, int head_dim, int64_t stride, uint16_t* to) {
  int d = 0;
  for (; d + 8 <= head_dim; d += 8) {
    alignas(32) uint32_t bits[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(bits), bf16_bits(_mm256_loadu_ps(x + d)));
    for (int i = 0; i < 8; ++i) to[(d + i) * stride] = static_cast<uint16_t>(bits[i]);
  }
  for (; d < head_dim; ++d) {
    const __m256i bits = bf16_bits(_mm256_set1_ps(x[d]));
    to[d * stride] = static_cast<uint16_t>(_mm256_extract_epi16(bits, 0));
  }
}

// A tile and its scratch: states of the segment and in total for each row, a block, scores.
class TileRun {
 public:
  explicit TileRun(const AttentionTile& tile)
      : t_(tile),
        rows_(tile.queries * tile.group),
        head_dim_(tile.cache.head_dim),
        state_size_(kStateHeader + tile.cache.head_dim),
        segment_(tile.scratch),
        total_(segment_ + int64_t{rows_} * state_size_),
        block_(total_ + int64_t{rows_} * state_size_),
        scores_(block_ + int64_t{2} * kBlockKeys * head_dim_),
        first_seen_(first_key(tile.first_position, tile.window)),
        last_seen_(tile.first_position + tile.queries - 1),
        in_strips_(tile.cache.page_size % kStripKeys == 0),
        convert_(!in_strips_ || (!tile.cache.f32 && rows_ > kMaxRows)) {}

  void run() {
    for (int segment = t_.segment_begin; segment < t_.segment_end; ++segment) {
      const int begin = max_of(first_seen_, segment * kSegmentKeys);
      const int end = min_of(last_seen_ + 1, (segment + 1) * kSegmentKeys);
      if (begin >= end) continue;
      reset();
      for (int b = begin / kBlockKeys * kBlockKeys; b < end; b += kBlockKeys) {
        add(b, min_of(kBlockKeys, end - b));
      }
      for (int r = 0; r < rows_; ++r) keep(r, segment);
    }
    if (t_.partials != nullptr) return;
    for (int r = 0; r < rows_; ++r) {
      finish(total_ + int64_t{r} * state_size_, head_dim_, even_odd(),
             t_.out + query(r) * t_.out_ld + head(r) * head_dim_);
    }
  }

 private:
  int query(int row) const { return row / t_.group; }
  int head(int row) const { return row % t_.group; }
  int position(int row) const { return t_.first_position + query(row); }
  bool even_odd() const { return !t_.cache.f32 && !convert_; }

  void reset() {
    for (int r = 0; r < rows_; ++r) {
      float* state = segment_ + int64_t{r} * state_size_;
      for (int i = 0; i < state_size_; i += 8) _mm256_store_ps(state + i, _mm256_setzero_ps());
      state[kStateM] = -__builtin_inff();
    }
  }

  // Adds the block from `first`, of which `end` keys are in the segment, to all rows.
  void add(int first, int end) {
    const int exist = last_seen_ + 1 - first;
    if (t_.cache.f32) {
      if (in_strips_) return add_to_rows(block_in_cache<F32>(t_, first, exist), first);
      return add_to_rows(gather_block<F32>(t_, first, end, block_), first);
    }
    if (!in_strips_) return add_to_rows(gather_block<Bf16>(t_, first, end, block_), first);
    const Block<Bf16> block = block_in_cache<Bf16>(t_, first, exist);
    if (!convert_) return add_to_rows(block, first);
    add_to_rows(convert_block(block, end, head_dim_, block_), first);
  }

  template <class Kv>
  void add_to_rows(const Block<Kv>& block, int first) {
    int query = 0, head = 0;
    for (int row = 0; row < rows_; row += kMaxRows) {
      Rows rows;
      rows.scale = t_.scale;
      rows.count = min_of(kMaxRows, rows_ - row);
      for (int r = 0; r < rows.count; ++r) {
        const int position = t_.first_position + query;
        rows.q[r] = t_.q + query * t_.q_ld + head * head_dim_;
        rows.state[r] = segment_ + int64_t{row + r} * state_size_;
        rows.begin[r] = max_of(0, first_key(position, t_.window) - first);
        rows.end[r] = min_of(kBlockKeys, position + 1 - first);
        if (++head == t_.group) head = 0, ++query;
      }
      mx8::cpu::avx2::add_block(rows, block, head_dim_, scores_);
    }
  }

  // A row's segment is done: it becomes a partial state, or joins the total.
  void keep(int row, int segment) {
    const int first_segment = first_key(position(row), t_.window) / kSegmentKeys;
    if (segment < first_segment || segment > position(row) / kSegmentKeys) return;
    const float* state = segment_ + int64_t{row} * state_size_;
    if (t_.partials != nullptr) {
      const int64_t index = int64_t{row} * t_.partial_segments + segment - t_.partial_begin;
      copy_state(state, head_dim_, even_odd(), t_.partials + index * state_size_);
      return;
    }
    float* total = total_ + int64_t{row} * state_size_;
    if (segment == first_segment) {
      copy_state(state, head_dim_, false, total);
    } else {
      merge_state(state, head_dim_, total);
    }
  }

  const AttentionTile& t_;
  int rows_;
  int head_dim_;
  int state_size_;
  float* segment_;
  float* total_;
  float* block_;
  float* scores_;
  int first_seen_;
  int last_seen_;
  bool in_strips_;
  bool convert_;
};

}  // namespace

void attention_tile(const AttentionTile& tile) { TileRun(tile).run(); }

void attention_merge(const AttentionMerge& merge) {
  const int state_size = kStateHeader + merge.head_dim;
  copy_state(merge.states, merge.head_dim, false, merge.scratch);
  for (int s = 1; s < merge.segments; ++s) {
    merge_state(merge.states + int64_t{s} * state_size, merge.head_dim, merge.scratch);
  }
  finish(merge.scratch, merge.head_dim, false, merge.out);
}

void write_kv(const KvWrite& w) {
  const KvCache& c = w.cache;
  const int dim = c.head_dim;
  for (int r = 0; r < w.rows; ++r) {
    if (w.slots[r] < 0) continue;
    const int page = w.slots[r] / c.page_size;
    const int slot = w.slots[r] % c.page_size;
    for (int h = 0; h < c.kv_heads; ++h) {
      const int64_t head = (int64_t{page} * c.kv_heads + h) * dim * c.page_size;
      const float* k = w.k + r * w.k_ld + int64_t{h} * dim;
      const float* v = w.v + r * w.v_ld + int64_t{h} * dim;
      if (c.f32) {
        float* keys = static_cast<float*>(c.keys) + head + slot;
        float* values = static_cast<float*>(c.values) + head + int64_t{slot} * dim;
        for (int d = 0; d < dim; ++d) keys[int64_t{d} * c.page_size] = k[d];
        for (int d = 0; d < dim; ++d) values[d] = v[d];
      } else {
        write_bf16(k, dim, c.page_size, static_cast<uint16_t*>(c.keys) + head + slot);
        write_bf16(v, dim, 1, static_cast<uint16_t*>(c.values) + head + int64_t{slot} * dim);
      }
    }
  }
}

}  // namespace mx8::cpu::avx2
