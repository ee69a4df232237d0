// Loads the weight of one linear layer as its quantisation plan says.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "checkpoint/quant_config.h"
#include "checkpoint/tensor_source.h"
#include "tensor/quant.h"

namespace mx8 {

// A weight [rows, cols] in the order of checkpoint files. `scales` is empty for plain weights.
struct LoadedWeight {
  std::string name;  // the module's
  TensorData codes;
  TensorData scales;
  QuantScheme scheme;             // as stored
  bool quantize_at_load = false;  // plain now, to become `target`
  QuantScheme target;

  QuantView view() const;
  uint64_t bytes() const { return codes.bytes().size() + scales.bytes().size(); }
};

// Loads `module`.weight of shape [rows, cols] (before sharding), and for MXFP8 its scales, found as
// .weight_scale or .weight_scale_inv, U8 or F8_E8M0, [rows, cols / 32]. What the files hold must be
// what the plan says: a plain weight where the plan has MXFP8, or the reverse, is an error that
// names the module. Shards along the columns start and end at whole blocks.
Result<LoadedWeight> load_quant_weight(TensorSource& source, const QuantPlan& plan,
                                       const std::string& module, ModuleKind kind, int64_t rows,
                                       int64_t cols, const ShardSpec& shard = {});
// Lets the source's pages of the weight and its scales go.
void release_quant_weight(TensorSource& source, const LoadedWeight& weight);

}  // namespace mx8
