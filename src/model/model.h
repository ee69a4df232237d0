// A decoder-only transformer, loaded and ready: token ids in, logits out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ops/attention.h"
#include "runtime/exec.h"
#include "tensor/matrix.h"

namespace mx8 {

// What the engine must know of a model to feed it.
struct ModelShape {
  int64_t vocab = 0;
  int64_t hidden = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int64_t max_positions = 0;
};

// The input of one step, in rows of tokens.
struct ForwardBatch {
  std::span<const int32_t> token_ids;   // [M]
  std::span<const int32_t> positions;   // [M]
  AttentionBatch attention;
  std::span<const int32_t> logit_rows;  // [L]: the rows of the batch whose logits are wanted
  std::span<const KvLayer> kv;          // one a layer
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelShape& shape() const = 0;
  // logits [L, vocab] F32. Called by one thread at a time.
  virtual void forward(const Exec& exec, const ForwardBatch& batch, const Mat& logits) = 0;
  // Bytes of weights in memory, packed and plain.
  virtual size_t resident_bytes() const = 0;
  // "210 linears mxfp8 (w8a16) on cpu-avx2; lm_head bf16": layers per scheme and kernel, for the
  // start-up line.
  virtual std::vector<std::string> summary() const = 0;
};

}  // namespace mx8
