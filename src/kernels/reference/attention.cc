#include "kernels/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/exp.h"
#include "mx/bf16.h"

namespace mx8::reference {

namespace {

float load(const void* data, bool f32, int64_t i) {
  return f32 ? static_cast<const float*>(data)[i]
             : bf16_to_f32(static_cast<const uint16_t*>(data)[i]);
}

void store(void* data, bool f32, int64_t i, float value) {
  if (f32) {
    static_cast<float*>(data)[i] = value;
  } else {
    static_cast<uint16_t*>(data)[i] = f32_to_bf16(value);
  }
}

// Where one head of a page starts, in both arrays.
int64_t head_base(const KvCache& c, int page, int kv_head) {
  return (int64_t{page} * c.kv_heads + kv_head) * c.head_dim * c.page_size;
}
// Element d of the key in `slot` of a head is at key_start + d * page_size, that of the value at
// value_start + d.
int64_t key_start(const KvCache& c, int page, int slot, int kv_head) {
  return head_base(c, page, kv_head) + slot;
}
int64_t value_start(const KvCache& c, int page, int slot, int kv_head) {
  return head_base(c, page, kv_head) + int64_t{slot} * c.head_dim;
}

float max_as_vectors_do(float a, float b) { return a > b ? a : b; }

void reset(float* state, int head_dim) {
  std::fill(state, state + kStateHeader + head_dim, 0.0f);
  state[kStateM] = -std::numeric_limits<float>::infinity();
}

// Adds the keys [begin, end) of one block to the running softmax of one row.
void add_block(const AttentionTile& t, const float* q, int begin, int end, float* state) {
  const KvCache& c = t.cache;
  float* l = state;
  float* acc = state + kStateHeader;
  const int block = begin / kBlockKeys * kBlockKeys;

  float p[kBlockKeys] = {};
  float m = state[kStateM];
  for (int key = begin; key < end; ++key) {
    const int64_t k = key_start(c, t.pages[key / c.page_size], key % c.page_size, t.kv_head);
    float dot = 0;
    for (int d = 0; d < c.head_dim; ++d) {
      dot = std::fma(q[d], load(c.keys, c.f32, k + int64_t{d} * c.page_size), dot);
    }
    p[key - block] = dot * t.scale;
    m = max_as_vectors_do(m, p[key - block]);
  }
  const float correction = exp(state[kStateM] - m);
  state[kStateM] = m;
  for (int key = begin; key < end; ++key) p[key - block] = exp(p[key - block] - m);
  for (int i = 0; i < 8; ++i) {
    float sum = p[i];
    for (int j = i + 8; j < kBlockKeys; j += 8) sum += p[j];
    l[i] = std::fma(l[i], correction, sum);
  }
  for (int d = 0; d < c.head_dim; ++d) acc[d] *= correction;
  for (int key = begin; key < end; ++key) {
    const int64_t v = value_start(c, t.pages[key / c.page_size], key % c.page_size, t.kv_head);
    for (int d = 0; d < c.head_dim; ++d) {
      acc[d] = std::fma(p[key - block], load(c.values, c.f32, v + d), acc[d]);
    }
  }
}

void merge_state(const float* from, int head_dim, float* total) {
  const float m = max_as_vectors_do(total[kStateM], from[kStateM]);
  const float ct = exp(total[kStateM] - m);
  const float cs = exp(from[kStateM] - m);
  total[kStateM] = m;
  for (int i = 0; i < 8; ++i) total[i] = std::fma(total[i], ct, from[i] * cs);
  for (int i = kStateHeader; i < kStateHeader + head_dim; ++i) {
    total[i] = std::fma(total[i], ct, from[i] * cs);
  }
}

void finish(const float* total, int head_dim, float* out) {
  const float inverse = 1.0f / sum8(total);
  for (int d = 0; d < head_dim; ++d) out[d] = total[kStateHeader + d] * inverse;
}

void attend(const AttentionTile& t, int query, int head) {
  const int dim = t.cache.head_dim;
  const int state_size = kStateHeader + dim;
  const int position = t.first_position + query;
  const int lo = first_key(position, t.window);
  const float* q = t.q + query * t.q_ld + head * dim;
  float* state = t.scratch;
  float* total = t.scratch + state_size;

  bool first = true;
  for (int segment = t.segment_begin; segment < t.segment_end; ++segment) {
    const int begin = std::max(lo, segment * kSegmentKeys);
    const int end = std::min(position + 1, (segment + 1) * kSegmentKeys);
    if (begin >= end) continue;
    reset(state, dim);
    for (int b = begin; b < end; b = b / kBlockKeys * kBlockKeys + kBlockKeys) {
      add_block(t, q, b, std::min(end, b / kBlockKeys * kBlockKeys + kBlockKeys), state);
    }
    if (t.partials != nullptr) {
      const int row = query * t.group + head;
      std::copy(state, state + state_size,
                t.partials +
                    (int64_t{row} * t.partial_segments + segment - t.partial_begin) * state_size);
    } else if (first) {
      std::copy(state, state + state_size, total);
    } else {
      merge_state(state, dim, total);
    }
    first = false;
  }
  if (t.partials == nullptr) finish(total, dim, t.out + query * t.out_ld + head * dim);
}

}  // namespace

void attention_tile(const AttentionTile& tile) {
  for (int query = 0; query < tile.queries; ++query) {
    for (int head = 0; head < tile.group; ++head) attend(tile, query, head);
  }
}

void attention_merge(const AttentionMerge& merge) {
  const int state_size = kStateHeader + merge.head_dim;
  float* total = merge.scratch;
  std::copy(merge.states, merge.states + state_size, total);
  for (int s = 1; s < merge.segments; ++s) {
    merge_state(merge.states + int64_t{s} * state_size, merge.head_dim, total);
  }
  finish(total, merge.head_dim, merge.out);
}

void write_kv(const KvWrite& w) {
  const KvCache& c = w.cache;
  for (int r = 0; r < w.rows; ++r) {
    if (w.slots[r] < 0) continue;
    const int page = w.slots[r] / c.page_size;
    const int slot = w.slots[r] % c.page_size;
    for (int h = 0; h < c.kv_heads; ++h) {
      const float* k = w.k + r * w.k_ld + int64_t{h} * c.head_dim;
      const float* v = w.v + r * w.v_ld + int64_t{h} * c.head_dim;
      for (int d = 0; d < c.head_dim; ++d) {
        store(c.keys, c.f32, key_start(c, page, slot, h) + int64_t{d} * c.page_size, k[d]);
        store(c.values, c.f32, value_start(c, page, slot, h) + d, v[d]);
      }
    }
  }
}

}  // namespace mx8::reference
