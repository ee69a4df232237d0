#include "model/sparse_moe.h"

namespace mx8 {

Result<SparseMoe> SparseMoe::load(WeightLoader& loader, const ModelConfig& config,
                                  const MoeNames& names) {
  SparseMoe moe;
  moe.shape_ = {.experts = config.experts,
                .top_k = config.experts_per_token,
                .renormalise = config.renormalise};
  MX8_TRY(moe.router_,
          loader.linear(
              {.name = names.router, .cols = config.shape.hidden, .kind = ModuleKind::kRouter},
              config.experts));
  MX8_TRY(moe.gate_up_, loader.experts({.name = names.layer + ".experts.gate_up_proj",
                                        .cols = config.shape.hidden,
                                        .order = RowOrder::kGateUpInterleaved},
                                       config.experts,
                                       {{names.gate, config.expert_intermediate},
                                        {names.up, config.expert_intermediate}}));
  MX8_TRY(moe.down_, loader.experts({.name = names.layer + ".experts.down_proj",
                                     .cols = config.expert_intermediate},
                                    config.experts, {{names.down, config.shape.hidden}}));
  return moe;
}

void SparseMoe::forward(const Step& step, const Mat& x, const Mat& h) {
  const Exec& exec = step.exec;
  const Arena::Scope scope(*exec.workspace);
  const Mat logits = step.temporary(x.rows, shape_.experts);
  router_.apply(exec, x, logits);
  route_tokens(exec, shape_, logits, routing_);

  const int64_t rows = x.rows * shape_.top_k;
  const Mat act = step.temporary(rows, down_.k());
  gate_up_.apply(exec, x, routing_.offsets, routing_.rows, act, {EpilogueKind::kSiluMul, {}});
  const Mat out = step.temporary(rows, h.cols);
  down_.apply(exec, act, routing_.offsets, {}, out);
  combine_experts(exec, routing_, shape_.top_k, out, h, /*accumulate=*/true);
}

}  // namespace mx8
