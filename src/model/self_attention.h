// Causal self-attention with grouped KV heads: h += W_o attention(rope(W_q x), rope(W_k x), W_v x).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "model/step.h"
#include "model/weights.h"
#include "ops/linear.h"

namespace mx8 {

class SelfAttention {
 public:
  // From the modules q_proj, k_proj, v_proj, o_proj and, by the config, q_norm and k_norm of
  // `prefix`, "model.layers.0.self_attn".
  static Result<SelfAttention> load(WeightLoader& loader, const ModelConfig& config, int layer,
                                    const std::string& prefix);

  // Adds the block's output for the normalised x [M, hidden] to h [M, hidden].
  void forward(const Step& step, const Mat& x, const Mat& h) const;

 private:
  int layer_ = 0;
  int window_ = 0;
  int head_dim_ = 0;
  int64_t q_width_ = 0;
  int64_t kv_width_ = 0;
  float norm_eps_ = 0;
  Linear qkv_;
  Linear out_;
  std::vector<float> q_norm_;  // empty: no QK-norm
  std::vector<float> k_norm_;
};

}  // namespace mx8
