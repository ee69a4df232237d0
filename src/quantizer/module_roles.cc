#include <string>
#include <string_view>

#include "quantizer/quantizer.h"

namespace mx8 {

namespace {

// Last parts of the names of linear layers, in the families that mx8 runs (docs/adding-a-model.md).
constexpr std::string_view kLinearNames[] = {
    "q_proj",    "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
    "down_proj", "w1",     "w2",     "w3",     "qkv_proj",  "gate_up_proj",
};
constexpr std::string_view kRouterNames[] = {"gate", "router", "shared_expert_gate"};

}  // namespace

ModuleRole module_role(const std::string& module) {
  const size_t dot = module.rfind('.');
  const std::string_view last =
      std::string_view(module).substr(dot == std::string::npos ? 0 : dot + 1);
  if (last == "lm_head") return ModuleRole::kLmHead;
  if (last == "embed_tokens") return ModuleRole::kEmbedding;
  for (std::string_view name : kRouterNames) {
    if (last == name) return ModuleRole::kRouter;
  }
  for (std::string_view name : kLinearNames) {
    if (last == name) return ModuleRole::kBlockLinear;
  }
  return ModuleRole::kOther;
}

}  // namespace mx8
