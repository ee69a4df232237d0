// What doctor tells of the selector: for a device, which kernels linear layers of some shapes get.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/select.h"

namespace mx8 {

// A layer that shows the selector's rules: ordinary, tiny, and the experts of an MoE layer.
struct ShownShape {
  const char* what;
  int64_t n, k;
  int experts;
};

struct ShownSelection {
  const ShownShape* shape;
  LinearProblem problem;
  Result<LinearPlan> plan;

  // Token counts at which BF16 cuBLAS was measured to be faster, with the ratio (below 1).
  struct Slower {
    int m;
    double ratio;
  };
  std::vector<Slower> slower;
};

// On a CPU one line a shape; on a GPU one for weights alone (w8a16) and one for quantised
// activations (w8a8), unless preference.activations settles which. For a forced device the plan is
// that of a program built for it.
std::vector<ShownSelection> shown_selections(const DeviceCaps& caps, Preference preference);

void print_selections(const DeviceCaps& caps, const std::vector<ShownSelection>& selections);
nlohmann::ordered_json selections_json(const DeviceCaps& caps,
                                       const std::vector<ShownSelection>& selections);

}  // namespace mx8
