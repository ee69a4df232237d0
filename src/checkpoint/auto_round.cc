// quant_method "auto-round" (Intel), data_type "mx_fp" with 8 bits:
//   {"quant_method": "auto-round", "bits": 8, "data_type": "mx_fp", "group_size": 32, "sym": true,
//    "act_bits": 8, "act_data_type": "mx_fp", "act_group_size": 32, "act_dynamic": true,
//    "extra_config": {"model.layers.0.mlp.down_proj": {"bits": 16, ...}}}
// Its other data types are refused by name. lm_head is quantised only where extra_config names it.
#include <string>

#include "base/strings.h"
#include "checkpoint/quant_dialects.h"

namespace mx8 {

namespace {

// The fields of the whole config, or of one layer in extra_config, which lacks what it inherits.
struct AutoRoundLayer {
  int64_t bits = 0;
  std::string data_type = "int";
  int64_t group_size = 0;
  bool symmetric = true;
  int64_t act_bits = 16;
  std::string act_data_type;
  int64_t act_group_size = kMxBlock;
  bool act_dynamic = true;
};

Result<void> read_layer(const json::Fields& f, AutoRoundLayer& layer) {
  MX8_RETURN_IF_ERROR(f.integer("bits", 1, 32, layer.bits));
  MX8_RETURN_IF_ERROR(f.string("data_type", layer.data_type));
  MX8_RETURN_IF_ERROR(f.integer("group_size", -1, 1 << 20, layer.group_size));
  MX8_RETURN_IF_ERROR(f.boolean("sym", layer.symmetric));
  MX8_RETURN_IF_ERROR(f.integer("act_bits", 1, 32, layer.act_bits));
  MX8_RETURN_IF_ERROR(f.string("act_data_type", layer.act_data_type));
  MX8_RETURN_IF_ERROR(f.integer("act_group_size", -1, 1 << 20, layer.act_group_size));
  return f.boolean("act_dynamic", layer.act_dynamic);
}

bool is_mx_fp(const std::string& data_type) { return data_type.starts_with("mx_fp"); }

std::string format_name(const AutoRoundLayer& layer) {
  const std::string bits = std::to_string(layer.bits);
  if (is_mx_fp(layer.data_type)) return str_cat("MXFP", bits, " in groups of ", layer.group_size);
  if (layer.data_type == "nv_fp") return "NVFP" + bits;
  if (layer.data_type.starts_with("fp")) return "FP" + bits;
  return "INT" + bits;
}

Result<QuantScheme> scheme_of(const AutoRoundLayer& layer, const json::Fields& where) {
  if (layer.bits >= 16) return QuantScheme{};
  if (layer.bits != 8 || !is_mx_fp(layer.data_type) || layer.group_size != kMxBlock ||
      !layer.symmetric) {
    return format_not_runnable(where.path(), where.name("data_type"), format_name(layer));
  }
  if (layer.act_bits >= 16) return QuantScheme::mxfp8(ActivationScheme::kNone);
  if (layer.act_bits != 8 || !is_mx_fp(layer.act_data_type) || layer.act_group_size != kMxBlock ||
      !layer.act_dynamic) {
    return unsupported(str_cat(where.path(), ": ", where.name("act_data_type"), ": activations of ",
                               layer.act_bits, " bits \"", layer.act_data_type, "\" in groups of ",
                               layer.act_group_size,
                               "; beside MXFP8 weights mx8 runs BF16 activations and dynamic "
                               "MXFP8 ones"));
  }
  return QuantScheme::mxfp8(ActivationScheme::kDynamicMxfp8);
}

// extra_config's keys are names, or regular expressions without a mark.
std::string marked(const std::string& key) {
  const bool plain_name = key.find_first_of("*+?[](){}|^$\\") == std::string::npos;
  return plain_name ? key : "re:" + key;
}

Result<void> add_layers(const json::Fields& extra, const AutoRoundLayer& whole, QuantRules& rules) {
  for (const auto& [key, value] : extra.json().items()) {
    if (!value.is_object()) return extra.wrong(key, "an object");
    AutoRoundLayer layer = whole;
    const json::Fields f(value, extra.path(), extra.name(key));
    MX8_RETURN_IF_ERROR(read_layer(f, layer));
    MX8_TRY(const QuantScheme scheme, scheme_of(layer, f));
    MX8_TRY(NamePattern pattern, parse_entry(marked(key), NamePattern::Kind::kExact, false,
                                             extra.path(), "extra_config"));
    rules.add({std::move(pattern), scheme, "extra_config"});
  }
  return {};
}

}  // namespace

Result<QuantPlanParts> read_auto_round(const json::Fields& config) {
  AutoRoundLayer whole;
  MX8_RETURN_IF_ERROR(read_layer(config, whole));
  QuantPlanParts parts;
  parts.dialect = "auto-round";
  MX8_TRY(const QuantScheme scheme, scheme_of(whole, config));
  if (scheme.is_plain()) return config.wrong("bits", "8");
  parts.default_scheme = scheme;
  parts.default_covers_head = false;

  MX8_TRY(const auto extra, config.object("extra_config"));
  if (extra) MX8_RETURN_IF_ERROR(add_layers(*extra, whole, parts.targets));
  return parts;
}

}  // namespace mx8
