// What the layers of one forward pass share.
#pragma once

#include <span>
#include <vector>

#include "base/check.h"
#include "model/model.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "runtime/exec.h"

namespace mx8 {

struct Step {
  const Exec& exec;
  const ForwardBatch& batch;
  const RopeTable& rope;
  std::span<const PagedAttention> attentions;  // planned, one for each window of the model

  int64_t tokens() const { return static_cast<int64_t>(batch.token_ids.size()); }
  const PagedAttention& attention(int window) const {
    for (const PagedAttention& a : attentions) {
      if (a.shape().window == window) return a;
    }
    MX8_CHECK(false, window);
    return attentions.front();
  }
  // A temporary [rows, cols] of FP32 from the step's workspace.
  Mat temporary(int64_t rows, int64_t cols) const {
    return Mat::f32(exec.workspace->alloc<float>(rows * cols), rows, cols);
  }
};

}  // namespace mx8
