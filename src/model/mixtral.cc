// Mixtral (Jiang et al. 2024): Mistral's layer with a mixture of experts in place of the MLP.
//
//   h = h + Attention(norm(h))
//   h = h + MoE(norm(h)), the weights of the chosen experts divided by their sum
#include <string>
#include <vector>

#include "base/strings.h"
#include "model/decoder.h"
#include "model/families.h"
#include "model/self_attention.h"
#include "model/sparse_moe.h"
#include "ops/elementwise.h"

namespace mx8 {

const FamilyRules kMixtralRules = {
    .sliding_window = true,
    .experts = true,
    .always_renormalise = true,
};

namespace {

struct MixtralLayer {
  float norm_eps = 0;
  std::vector<float> input_norm;
  SelfAttention attention;
  std::vector<float> moe_norm;
  SparseMoe moe;

  static Result<MixtralLayer> load(WeightLoader& loader, const ModelConfig& config, int layer) {
    const std::string prefix = str_cat("model.layers.", layer);
    const std::string block = prefix + ".block_sparse_moe";
    const int64_t hidden = config.shape.hidden;
    MixtralLayer l;
    l.norm_eps = config.norm_eps;
    MX8_TRY(l.input_norm,
            loader.vector(prefix + ".input_layernorm.weight", TensorKind::kNorm, hidden));
    MX8_TRY(l.attention, SelfAttention::load(loader, config, layer, prefix + ".self_attn"));
    MX8_TRY(l.moe_norm,
            loader.vector(prefix + ".post_attention_layernorm.weight", TensorKind::kNorm, hidden));
    MX8_TRY(l.moe, SparseMoe::load(loader, config,
                                   {.layer = block,
                                    .router = block + ".gate",
                                    .gate = block + ".experts.{}.w1",
                                    .up = block + ".experts.{}.w3",
                                    .down = block + ".experts.{}.w2"}));
    return l;
  }

  void forward(const Step& step, const Mat& h) {
    const Arena::Scope scope(*step.exec.workspace);
    const Mat x = step.temporary(h.rows, h.cols);
    rms_norm(step.exec, h, input_norm, norm_eps, x);
    attention.forward(step, x, h);
    rms_norm(step.exec, h, moe_norm, norm_eps, x);
    moe.forward(step, x, h);
  }
};

}  // namespace

Result<std::unique_ptr<Model>> build_mixtral(const ModelConfig& config, WeightLoader& loader) {
  return Decoder<MixtralLayer>::load(config, loader);
}

}  // namespace mx8
