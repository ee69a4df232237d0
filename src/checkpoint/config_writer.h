// Writes the config texts of quantised checkpoints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/quant.h"

namespace mx8 {

// What a writer tells about an MXFP8 checkpoint.
struct QuantDescription {
  ActivationScheme activations = ActivationScheme::kNone;
  std::vector<std::string> ignore;  // linears that stayed plain, by full name
  std::string producer_version;     // of mx8
};

// The value of config.json's quantization_config.
std::string compressed_tensors_config(const QuantDescription& description);
std::string modelopt_config(const QuantDescription& description);
// ModelOpt's hf_quant_config.json.
std::string modelopt_side_file(const QuantDescription& description);

// config.json with quantization_config set to the JSON value `quantization`, all other keys as they
// were and in their order; an empty `quantization` removes the key.
Result<std::string> with_quantization_config(std::string_view config_text, const std::string& path,
                                             std::string_view quantization);

}  // namespace mx8
