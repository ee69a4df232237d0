// A mixture of experts: h += sum over the chosen experts e of p_e * W_down,e (silu(W_gate,e x) *
// W_up,e x), with p = softmax(W_router x).
#pragma once

#include <string>

#include "base/result.h"
#include "model/config.h"
#include "model/step.h"
#include "model/weights.h"
#include "ops/linear.h"
#include "ops/moe.h"

namespace mx8 {

// The names of a family's modules; "{}" stands for the number of the expert.
struct MoeNames {
  std::string layer;   // "model.layers.0.mlp", for messages
  std::string router;  // "model.layers.0.mlp.gate"
  std::string gate;    // "model.layers.0.mlp.experts.{}.gate_proj"
  std::string up;
  std::string down;
};

class SparseMoe {
 public:
  static Result<SparseMoe> load(WeightLoader& loader, const ModelConfig& config,
                                const MoeNames& names);

  // Adds the experts' output for the normalised x to h.
  void forward(const Step& step, const Mat& x, const Mat& h);

 private:
  RouterShape shape_;
  Linear router_;
  GroupedLinear gate_up_;
  GroupedLinear down_;
  Routing routing_;  // of the step at hand; kept for its memory
};

}  // namespace mx8
