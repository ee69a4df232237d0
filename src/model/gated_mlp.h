// The gated MLP: h += W_down (silu(W_gate x) * W_up x).
#pragma once

#include <string>

#include "base/result.h"
#include "model/config.h"
#include "model/step.h"
#include "model/weights.h"
#include "ops/linear.h"

namespace mx8 {

class GatedMlp {
 public:
  // From the modules gate_proj, up_proj and down_proj of `prefix`, "model.layers.0.mlp".
  static Result<GatedMlp> load(WeightLoader& loader, const std::string& prefix, int64_t hidden,
                               int64_t intermediate, bool bias);

  // silu(W_gate x) * W_up x into act [M, intermediate].
  void activate(const Step& step, const Mat& x, const Mat& act) const;
  // Adds W_down act to h.
  void project(const Step& step, const Mat& act, const Mat& h) const;
  // Both.
  void forward(const Step& step, const Mat& x, const Mat& h) const;

  int64_t intermediate() const { return down_.k(); }

 private:
  Linear gate_up_;
  Linear down_;
};

}  // namespace mx8
