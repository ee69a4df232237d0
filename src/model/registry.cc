#include "model/registry.h"

#include <string_view>

#include "base/strings.h"
#include "checkpoint/prefixed_source.h"
#include "model/config.h"
#include "model/families.h"

namespace mx8 {
namespace {

struct Family {
  std::string_view architecture;
  const FamilyRules& rules;
  BuildModel* build;
};

const Family kFamilies[] = {
    {"LlamaForCausalLM", kLlamaRules, build_llama},
    {"MistralForCausalLM", kMistralRules, build_llama},
    {"Qwen2ForCausalLM", kQwen2Rules, build_llama},
    {"Qwen3ForCausalLM", kQwen3Rules, build_llama},
    {"Qwen2MoeForCausalLM", kQwen2MoeRules, build_qwen_moe},
    {"Qwen3MoeForCausalLM", kQwen3MoeRules, build_qwen_moe},
    {"MixtralForCausalLM", kMixtralRules, build_mixtral},
};

Result<std::unique_ptr<Model>> load_family(const Family& family, TensorSource& source,
                                           const HfConfig& config, const QuantPlan& plan,
                                           const LoadOptions& options) {
  MX8_TRY(const ModelConfig model, read_model_config(config, family.rules, options.max_context));
  WeightLoader loader(source, plan, options);
  return family.build(model, loader);
}

}  // namespace

const std::vector<std::string>& supported_architectures() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Family& family : kFamilies) list.emplace_back(family.architecture);
    return list;
  }();
  return names;
}

Result<std::unique_ptr<Model>> load_model(TensorSource& source, const HfConfig& config,
                                          const QuantPlan& plan, const LoadOptions& options) {
  for (const Family& family : kFamilies) {
    if (family.architecture != config.architecture) continue;
    const std::string prefix = prefix_before(source);
    if (prefix.empty()) return load_family(family, source, config, plan, options);
    PrefixedSource inner(source, prefix);
    QuantPlan named = plan;  // its entries may carry the prefix or not
    named.add_name_prefix({"", prefix});
    return load_family(family, inner, config, named, options);
  }
  return unsupported(str_cat(config.path, ": architecture ", config.architecture, " is not one of ",
                             join(supported_architectures(), ", ")));
}

}  // namespace mx8
