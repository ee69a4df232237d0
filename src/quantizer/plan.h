// Which tensors of a checkpoint become MXFP8: decided from names and shapes, before any is read.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint_reader.h"
#include "quantizer/quantizer.h"

namespace mx8 {

// One tensor of the result, in the order of the source's names.
struct PlannedTensor {
  std::string source;  // name of the tensor in the source
  std::string module;  // of the result, without ".weight"; empty for a tensor that is copied
};

struct QuantizePlan {
  std::vector<PlannedTensor> tensors;
  std::vector<std::string> plain_modules;  // linear layers that stay plain, sorted
  bool unties_head = false;                // lm_head is written although the source ties it
};

// Errors: a quantised layer whose K is not a multiple of 32, stacked experts (3-D weights), a layer
// whose parts run fused and are not treated alike, patterns that match nothing.
Result<QuantizePlan> plan_quantisation(const CheckpointReader& reader, bool tied_head,
                                       const QuantizeOptions& options);

}  // namespace mx8
