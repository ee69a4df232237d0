// The dense decoders: Llama (Touvron et al. 2023; SmolLM2 is one), Mistral (a sliding window),
// Qwen2 (biases on q, k, v) and Qwen3 (QK-norm).
//
//   h = h + Attention(norm(h))
//   h = h + MLP(norm(h))
#include <string>
#include <vector>

#include "base/strings.h"
#include "model/decoder.h"
#include "model/families.h"
#include "model/gated_mlp.h"
#include "model/self_attention.h"
#include "ops/elementwise.h"

namespace mx8 {

const FamilyRules kLlamaRules = {
    .attention_bias = FamilyRules::AttentionBias::kQkvoByConfig,
    .mlp_bias = true,
};
const FamilyRules kMistralRules = {.sliding_window = true};
const FamilyRules kQwen2Rules = {
    .attention_bias = FamilyRules::AttentionBias::kQkv,
    .sliding_window = true,
    .window_switch = true,
};
const FamilyRules kQwen3Rules = {
    .attention_bias = FamilyRules::AttentionBias::kQkvoByConfig,
    .qk_norm = true,
    .sliding_window = true,
    .window_switch = true,
};

namespace {

struct LlamaLayer {
  float norm_eps = 0;
  std::vector<float> input_norm;
  SelfAttention attention;
  std::vector<float> mlp_norm;
  GatedMlp mlp;

  static Result<LlamaLayer> load(WeightLoader& loader, const ModelConfig& config, int layer) {
    const std::string prefix = str_cat("model.layers.", layer);
    const int64_t hidden = config.shape.hidden;
    LlamaLayer l;
    l.norm_eps = config.norm_eps;
    MX8_TRY(l.input_norm,
            loader.vector(prefix + ".input_layernorm.weight", TensorKind::kNorm, hidden));
    MX8_TRY(l.attention, SelfAttention::load(loader, config, layer, prefix + ".self_attn"));
    MX8_TRY(l.mlp_norm,
            loader.vector(prefix + ".post_attention_layernorm.weight", TensorKind::kNorm, hidden));
    MX8_TRY(l.mlp,
            GatedMlp::load(loader, prefix + ".mlp", hidden, config.intermediate, config.mlp_bias));
    return l;
  }

  void forward(const Step& step, const Mat& h) {
    const Arena::Scope scope(*step.exec.workspace);
    const Mat x = step.temporary(h.rows, h.cols);
    rms_norm(step.exec, h, input_norm, norm_eps, x);
    attention.forward(step, x, h);
    rms_norm(step.exec, h, mlp_norm, norm_eps, x);
    mlp.forward(step, x, h);
  }
};

}  // namespace

Result<std::unique_ptr<Model>> build_llama(const ModelConfig& config, WeightLoader& loader) {
  return Decoder<LlamaLayer>::load(config, loader);
}

}  // namespace mx8
