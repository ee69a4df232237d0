// Paged attention over a ragged batch: several sequences, each with some new tokens (prefill, a
// chunk of it, or one decode token) and a context in pages of the KV pool.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/op_kernels.h"
#include "runtime/exec.h"
#include "tensor/matrix.h"

namespace mx8 {

// One layer's keys and values. CPU layout: keys [page][kv_head][head_dim][slot in page], transposed
// so that consecutive keys are consecutive in memory; values [page][kv_head][slot in
// page][head_dim]. A slot number is page * page_size + slot in page. Memory that was never written
// may hold anything.
struct KvLayer {
  void* keys = nullptr;
  void* values = nullptr;
  DType dtype = DType::kBF16;  // BF16 or F32
  int page_size = 16;          // tokens; fast where it is a multiple of 16
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
  std::span<const int32_t> slots;  // [M]: where each token's key and value go; < 0: nowhere

  int sequences() const { return static_cast<int>(context.size()); }
  int64_t tokens() const { return static_cast<int64_t>(slots.size()); }
};

struct AttentionShape {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  float scale = 0;  // usually 1 / sqrt(head_dim)
  int window = 0;   // > 0: a token sees itself and the window - 1 tokens before it
};

class PagedAttention {
 public:
  PagedAttention() = default;
  explicit PagedAttention(const AttentionShape& shape);

  // Cuts the batch into units of work. Called once a step; every layer's run uses the result.
  void plan(const AttentionBatch& batch, int threads);

  // Writes k, v [M, kv_heads * head_dim] into the cache at batch.slots, then
  // out [M, heads * head_dim] = softmax(q k^T * scale, causal) v per head, with heads / kv_heads
  // query heads to a KV head. q, k, v, out are F32; out may be q. A row's result depends only on
  // its own query and context: not on the batch, the chunking or the number of threads. Takes its
  // temporaries from exec.workspace.
  void run(const Exec& exec, const AttentionBatch& batch, const Mat& q, const Mat& k, const Mat& v,
           const KvLayer& cache, const Mat& out) const;

  const AttentionShape& shape() const { return shape_; }

 private:
  // The query heads of one KV head for some rows of one sequence over a range of segments
  // (kernels/attention_tile.h). split >= 0: one of several units of splits_[split].
  struct Unit {
    int32_t sequence;
    int32_t kv_head;
    int32_t first_row;  // of the batch
    int32_t rows;
    int32_t segment_begin;
    int32_t segment_end;
    int32_t split;
    int64_t cost() const { return int64_t{rows} * (segment_end - segment_begin); }
  };
  // A tile whose segments are spread over several units and merged afterwards.
  struct Split {
    int32_t kv_head;
    int32_t first_row;
    int32_t rows;
    int32_t first_position;
    int32_t segment_begin;
    int32_t segments;
    int64_t states;  // the first of rows * group * segments states
  };

  int group() const { return shape_.heads / shape_.kv_heads; }
  void add_tile(const AttentionBatch& batch, int sequence, int first_row, int rows, int chunk);
  AttentionTile make_tile(const Unit& unit, const AttentionBatch& batch, const Mat& q,
                          const KvCache& cache, const Mat& out, float* states) const;
  void merge_split(const cpu::OpKernels& kernels, const Split& split, const float* states,
                   float* scratch, const Mat& out) const;

  AttentionShape shape_;
  std::vector<Unit> units_;
  std::vector<Split> splits_;
  int64_t states_ = 0;     // over all splits
  int64_t most_rows_ = 0;  // query rows times heads of the largest unit
  int64_t work_ = 0;       // query heads times keys, an estimate
};

}  // namespace mx8
