// The architectures that mx8 runs, and how to load one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/quant_config.h"
#include "checkpoint/tensor_source.h"
#include "model/model.h"
#include "model/weights.h"

namespace mx8 {

// "LlamaForCausalLM", ...: what read_hf_config takes as `known`, and doctor prints.
const std::vector<std::string>& supported_architectures();

// Builds the model of `config` from the tensors of `source`, whose pages are let go as layers are
// packed. Errors name the field of the config, or the tensor.
Result<std::unique_ptr<Model>> load_model(TensorSource& source, const HfConfig& config,
                                          const QuantPlan& plan, const LoadOptions& options);

// Every tensor that a checkpoint of this configuration holds, in the order of loading. Needs no
// memory for weights.
Result<std::vector<TensorRequest>> list_tensors(const HfConfig& config, const QuantPlan& plan);

}  // namespace mx8
