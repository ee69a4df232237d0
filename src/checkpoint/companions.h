// What lies beside the weights in a model folder: tokenizer, templates, licence.
#pragma once

#include <string>

#include "base/result.h"

namespace mx8 {

enum class Companions {
  // All files but weights of any format, the indexes and configurations that describe them
  // (config.json, hf_quant_config.json, *.index.json) and hidden files.
  kAll,
  // Only generation_config.json, tokenizer*.json and chat_template*.jinja: for a folder that may
  // hold anything else.
  kNamed,
};

// Copies those files of folder `from` into folder `to`. Files of the same name are replaced,
// folders and links to nowhere are passed over.
Result<void> copy_companions(const std::string& from, const std::string& to,
                             Companions which = Companions::kAll);

}  // namespace mx8
