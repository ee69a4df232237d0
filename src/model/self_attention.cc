#include "model/self_attention.h"

#include "ops/attention.h"
#include "ops/elementwise.h"

namespace mx8 {

Result<SelfAttention> SelfAttention::load(WeightLoader& loader, const ModelConfig& config,
                                          int layer, const std::string& prefix) {
  SelfAttention a;
  a.layer_ = layer;
  a.window_ = config.windows[static_cast<size_t>(layer)];
  a.head_dim_ = config.shape.head_dim;
  a.q_width_ = config.q_width();
  a.kv_width_ = config.kv_width();
  a.norm_eps_ = config.norm_eps;
  MX8_TRY(a.qkv_,
          loader.linear(
              {.name = prefix + ".qkv_proj", .cols = config.shape.hidden, .bias = config.qkv_bias},
              {{prefix + ".q_proj", a.q_width_},
               {prefix + ".k_proj", a.kv_width_},
               {prefix + ".v_proj", a.kv_width_}}));
  if (config.qk_norm) {
    MX8_TRY(a.q_norm_, loader.vector(prefix + ".q_norm.weight", TensorKind::kNorm, a.head_dim_));
    MX8_TRY(a.k_norm_, loader.vector(prefix + ".k_norm.weight", TensorKind::kNorm, a.head_dim_));
  }
  MX8_TRY(a.out_,
          loader.linear({.name = prefix + ".o_proj", .cols = a.q_width_, .bias = config.o_bias},
                        config.shape.hidden));
  return a;
}

void SelfAttention::forward(const Step& step, const Mat& x, const Mat& h) const {
  const Exec& exec = step.exec;
  const Arena::Scope scope(*exec.workspace);
  const Mat qkv = step.temporary(x.rows, q_width_ + 2 * kv_width_);
  qkv_.apply(exec, x, qkv);
  const Mat q = qkv.cols_slice(0, q_width_);
  const Mat k = qkv.cols_slice(q_width_, kv_width_);
  const Mat v = qkv.cols_slice(q_width_ + kv_width_, kv_width_);

  if (!q_norm_.empty()) {
    head_rms_norm(exec, q, head_dim_, q_norm_, norm_eps_);
    head_rms_norm(exec, k, head_dim_, k_norm_, norm_eps_);
  }
  rope(exec, step.rope, step.batch.positions, head_dim_, q);
  rope(exec, step.rope, step.batch.positions, head_dim_, k);

  const Mat mixed = step.temporary(x.rows, q_width_);
  const KvLayer& cache = step.batch.kv[static_cast<size_t>(layer_)];
  step.attention(window_).run(exec, step.batch.attention, q, k, v, cache, mixed);
  out_.apply(exec, mixed, h, {EpilogueKind::kResidual, h});
}

}  // namespace mx8
