// What an attention kernel is given, and the order of operations that all attention kernels share.
//
// Order, per query and head, over the keys lo .. position that it sees (lo = 0 without a window):
//   The context is cut at fixed positions into segments of kSegmentKeys, those into blocks of
//   kBlockKeys. Within a segment, a running softmax over its blocks in ascending order:
//     s[j]  = scale * (fma chain over d = 0 .. head_dim - 1, from 0)
//     m'    = max(m, max s[j]);  c = exp(m - m');  p[j] = exp(s[j] - m'), 0 for keys not seen
//     l[i]  = fma(l[i], c, (p[i] + p[i + 8]) + p[i + 16] + ... + p[i + 56]), i = 0 .. 7
//     acc[d] = acc[d] * c, then fma(p[j], v[j][d], acc[d]) in ascending order of the keys seen
//   Segments are merged in ascending order: m' = max(mt, ms), ct = exp(mt - m'), cs = exp(ms - m'),
//   l[i] = fma(l[i], ct, ls[i] * cs), the same for acc. At the end out[d] = acc[d] * (1 / sum8(l)).
// Nothing here depends on where a tile, a chunk or a batch begins, so a row's bits don't either.
// Keys that a query does not see never enter its arithmetic: what lies in unused slots does not
// matter.
#pragma once

#include <cstdint>

namespace mx8 {

inline constexpr int kBlockKeys = 64;
inline constexpr int kSegmentKeys = 256;
// The state of a row over one segment: l[8], m, padding to 16 floats, acc[head_dim].
inline constexpr int kStateHeader = 16;
inline constexpr int kStateM = 8;

// One layer's cache. Keys lie transposed within a page, [page][kv_head][head_dim][slot], so that
// consecutive keys are consecutive in memory and scores need no horizontal sums; values are
// [page][kv_head][slot][head_dim]. Elements are BF16, or F32.
struct KvCache {
  void* keys;
  void* values;
  bool f32;
  int page_size;
  int kv_heads;
  int head_dim;
};

// The query heads of one KV head for consecutive queries of one sequence, over a range of segments.
struct AttentionTile {
  KvCache cache;
  const int32_t* pages;  // of the sequence
  int kv_head;
  int group;       // query heads to a KV head
  const float* q;  // first query, first head of the group; heads are head_dim apart
  int64_t q_ld;
  float* out;  // as q
  int64_t out_ld;
  int queries;
  int first_position;  // of the first query
  float scale;
  int window;  // 0: none
  int segment_begin;
  int segment_end;  // exclusive
  // Null: the segments are all that the queries see; write out. Else the state of row
  // r = query * group + head over segment s goes to partials + (r * partial_segments +
  // s - partial_begin) * (kStateHeader + head_dim).
  float* partials;
  int partial_begin;
  int partial_segments;
  float* scratch;  // attention_scratch(tile) floats, 64-byte aligned
};

static constexpr int first_key(int position, int window) {
  return window > 0 && position >= window ? position - window + 1 : 0;
}

// Floats of scratch for a tile of `rows` = queries * group.
static constexpr int64_t attention_scratch(int rows, int head_dim) {
  const int64_t state = int64_t{2} * rows * (kStateHeader + head_dim);  // segment, total
  const int64_t block = int64_t{2} * kBlockKeys * head_dim;             // keys, values
  return (state + block + 8 * kBlockKeys + 15) / 16 * 16;
}

// Merges the states of the segments of one row and writes its output.
struct AttentionMerge {
  const float* states;  // [segments][kStateHeader + head_dim]
  int segments;
  int head_dim;
  float* scratch;  // kStateHeader + head_dim floats
  float* out;
};

// Writes the keys and values of consecutive rows of the batch.
struct KvWrite {
  KvCache cache;
  const float* k;  // rows of kv_heads * head_dim
  int64_t k_ld;
  const float* v;
  int64_t v_ld;
  const int32_t* slots;  // negative: the row is not written
  int rows;
};

}  // namespace mx8
