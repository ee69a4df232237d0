// Paged attention over a ragged batch: several sequences, each with some new tokens (prefill, a chunk
// of it, or one decode token) and a context in pages of the KV pool.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/exec.h"
#include "tensor/matrix.h"

namespace mx8 {

// One layer's keys and values. CPU layout: [page][kv_head][slot in page][head_dim], keys and values
// apart. A slot number is page * page_size + slot in page.
struct KvLayer {
  void* keys = nullptr;
  void* values = nullptr;
  DType dtype = DType::kBF16;  // BF16 or F32
  int page_size = 16;          // tokens
  int kv_heads = 0;
  int head_dim = 0;
};

// Where the tokens of a step stand. Sequence s owns rows q_start[s] .. q_start[s + 1] - 1 of the
// batch; its context, these tokens included, has context[s] tokens, in pages
// pages[s * max_pages ...]. The last of its rows is the last token of the context.
struct AttentionBatch {
  std::span<const int32_t> q_start;  // [S + 1]
  std::span<const int32_t> context;  // [S]
  std::span<const int32_t> pages;    // [S, max_pages]
  int max_pages = 0;
  std::span<const int32_t> slots;    // [M]: the slot where each token's key and value go

  int sequences() const { return static_cast<int>(context.size()); }
  int64_t tokens() const { return static_cast<int64_t>(slots.size()); }
};

struct AttentionShape {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  float scale = 0;   // usually 1 / sqrt(head_dim)
  int window = 0;    // > 0: a token sees itself and the window - 1 tokens before it
};

class PagedAttention {
 public:
  PagedAttention() = default;
  explicit PagedAttention(const AttentionShape& shape) : shape_(shape) {}

  // Cuts the batch into units of work. Called once a step; every layer's run uses the result.
  void plan(const AttentionBatch& batch, int threads);

  // Writes k, v [M, kv_heads * head_dim] into the cache at batch.slots, then
  // out [M, heads * head_dim] = softmax(q k^T * scale, causal) v per head, with heads / kv_heads query
  // heads to a KV head. q, k, v, out are F32. A row's result depends only on its own query and
  // context: not on the batch, the chunking or the number of threads.
  void run(const Exec& exec, const AttentionBatch& batch, const Mat& q, const Mat& k, const Mat& v,
           const KvLayer& cache, const Mat& out) const;

  const AttentionShape& shape() const { return shape_; }

 private:
  struct Unit {
    int32_t sequence;
    int32_t first_row;  // of the batch
    int32_t rows;
  };
  AttentionShape shape_;
  std::vector<Unit> units_;
};

}  // namespace mx8
