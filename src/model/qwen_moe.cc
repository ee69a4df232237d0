// Qwen2-MoE and Qwen3-MoE: Qwen's attention, and in each layer a mixture of experts or, where
// decoder_sparse_step and mlp_only_layers say so, a dense MLP.
//
//   h = h + Attention(norm(h))
//   h = h + MoE(x) + sigmoid(w_s x) * SharedMLP(x), x = norm(h)     (Qwen2: the shared expert)
//   h = h + MoE(norm(h))                                            (Qwen3)
#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"
#include "model/decoder.h"
#include "model/families.h"
#include "model/gated_mlp.h"
#include "model/self_attention.h"
#include "model/sparse_moe.h"
#include "ops/elementwise.h"
#include "ops/moe.h"

namespace mx8 {

// Which layers slide where use_sliding_window is on depends on the version of Transformers, so it
// is refused.
const FamilyRules kQwen2MoeRules = {
    .attention_bias = FamilyRules::AttentionBias::kQkvByConfig,
    .window_switch = true,
    .experts = true,
    .shared_expert = true,
};
const FamilyRules kQwen3MoeRules = {
    .attention_bias = FamilyRules::AttentionBias::kQkvoByConfig,
    .qk_norm = true,
    .window_switch = true,
    .experts = true,
};

namespace {

// An expert that every token takes, behind a gate of its own.
struct SharedExpert {
  GatedMlp mlp;
  Linear gate;  // one output

  static Result<SharedExpert> load(WeightLoader& loader, const ModelConfig& config,
                                   const std::string& prefix) {
    const int64_t hidden = config.shape.hidden;
    SharedExpert s;
    MX8_TRY(s.mlp, GatedMlp::load(loader, prefix + ".shared_expert", hidden,
                                  config.shared_intermediate, /*bias=*/false));
    MX8_TRY(s.gate, loader.linear({.name = prefix + ".shared_expert_gate",
                                   .cols = hidden,
                                   .kind = ModuleKind::kRouter},
                                  /*rows=*/1));
    return s;
  }

  // The gate scales what enters W_down: the same product, without another pass over the output.
  void forward(const Step& step, const Mat& x, const Mat& h) const {
    const Arena::Scope scope(*step.exec.workspace);
    const Mat logit = step.temporary(x.rows, 1);
    gate.apply(step.exec, x, logit);
    const Mat act = step.temporary(x.rows, mlp.intermediate());
    mlp.activate(step, x, act);
    scale_rows_by_sigmoid(step.exec, logit, act);
    mlp.project(step, act, h);
  }
};

struct QwenMoeLayer {
  float norm_eps = 0;
  std::vector<float> input_norm;
  SelfAttention attention;
  std::vector<float> mlp_norm;
  std::optional<GatedMlp> dense;
  std::optional<SparseMoe> moe;
  std::optional<SharedExpert> shared;

  static Result<QwenMoeLayer> load(WeightLoader& loader, const ModelConfig& config, int layer) {
    const std::string prefix = str_cat("model.layers.", layer);
    const std::string mlp = prefix + ".mlp";
    const int64_t hidden = config.shape.hidden;
    QwenMoeLayer l;
    l.norm_eps = config.norm_eps;
    MX8_TRY(l.input_norm,
            loader.vector(prefix + ".input_layernorm.weight", TensorKind::kNorm, hidden));
    MX8_TRY(l.attention, SelfAttention::load(loader, config, layer, prefix + ".self_attn"));
    MX8_TRY(l.mlp_norm,
            loader.vector(prefix + ".post_attention_layernorm.weight", TensorKind::kNorm, hidden));
    if (!config.moe_layers[static_cast<size_t>(layer)]) {
      MX8_TRY(l.dense, GatedMlp::load(loader, mlp, hidden, config.intermediate, /*bias=*/false));
      return l;
    }
    MX8_TRY(l.moe, SparseMoe::load(loader, config,
                                   {.layer = mlp,
                                    .router = mlp + ".gate",
                                    .gate = mlp + ".experts.{}.gate_proj",
                                    .up = mlp + ".experts.{}.up_proj",
                                    .down = mlp + ".experts.{}.down_proj"}));
    if (config.shared_intermediate > 0) {
      MX8_TRY(l.shared, SharedExpert::load(loader, config, mlp));
    }
    return l;
  }

  void forward(const Step& step, const Mat& h) {
    const Arena::Scope scope(*step.exec.workspace);
    const Mat x = step.temporary(h.rows, h.cols);
    rms_norm(step.exec, h, input_norm, norm_eps, x);
    attention.forward(step, x, h);
    rms_norm(step.exec, h, mlp_norm, norm_eps, x);
    if (dense) dense->forward(step, x, h);
    if (moe) moe->forward(step, x, h);
    if (shared) shared->forward(step, x, h);
  }
};

}  // namespace

Result<std::unique_ptr<Model>> build_qwen_moe(const ModelConfig& config, WeightLoader& loader) {
  return Decoder<QwenMoeLayer>::load(config, loader);
}

}  // namespace mx8
