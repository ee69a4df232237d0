// What lies beside the weights in a model folder: tokenizer, templates, licence.
#pragma once

#include <string>

#include "base/result.h"

namespace mx8 {

// Copies the files of folder `from` into folder `to`, but for weights of any format, the indexes
// and configurations that describe them (config.json, hf_quant_config.json, *.index.json) and
// hidden files. Files of the same name are replaced.
Result<void> copy_companions(const std::string& from, const std::string& to);

}  // namespace mx8
