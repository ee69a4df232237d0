// The families: what each does with a config, and how it is built. One file each.
#pragma once

#include <memory>

#include "base/result.h"
#include "model/config.h"
#include "model/model.h"
#include "model/weights.h"

namespace mx8 {

using BuildModel = Result<std::unique_ptr<Model>>(const ModelConfig&, WeightLoader&);

// llama.cc: Llama, SmolLM2, Mistral, Qwen2, Qwen2.5, Qwen3.
extern const FamilyRules kLlamaRules;
extern const FamilyRules kMistralRules;
extern const FamilyRules kQwen2Rules;
extern const FamilyRules kQwen3Rules;
BuildModel build_llama;

// qwen_moe.cc
extern const FamilyRules kQwen2MoeRules;
extern const FamilyRules kQwen3MoeRules;
BuildModel build_qwen_moe;

// mixtral.cc
extern const FamilyRules kMixtralRules;
BuildModel build_mixtral;

}  // namespace mx8
