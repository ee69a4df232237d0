#include "model/gated_mlp.h"

namespace mx8 {

Result<GatedMlp> GatedMlp::load(WeightLoader& loader, const std::string& prefix, int64_t hidden,
                                int64_t intermediate, bool bias) {
  GatedMlp mlp;
  MX8_TRY(mlp.gate_up_, loader.linear({.name = prefix + ".gate_up_proj",
                                       .cols = hidden,
                                       .order = RowOrder::kGateUpInterleaved,
                                       .bias = bias},
                                      {{prefix + ".gate_proj", intermediate},
                                       {prefix + ".up_proj", intermediate}}));
  MX8_TRY(
      mlp.down_,
      loader.linear({.name = prefix + ".down_proj", .cols = intermediate, .bias = bias}, hidden));
  return mlp;
}

void GatedMlp::activate(const Step& step, const Mat& x, const Mat& act) const {
  gate_up_.apply(step.exec, x, act, {EpilogueKind::kSiluMul, {}});
}

void GatedMlp::project(const Step& step, const Mat& act, const Mat& h) const {
  down_.apply(step.exec, act, h, {EpilogueKind::kResidual, h});
}

void GatedMlp::forward(const Step& step, const Mat& x, const Mat& h) const {
  const Arena::Scope scope(*step.exec.workspace);
  const Mat act = step.temporary(x.rows, intermediate());
  activate(step, x, act);
  project(step, act, h);
}

}  // namespace mx8
