// compressed-tensors (llm-compressor, vLLM): config_groups of targets, each with arguments for
// weights and input activations. MXFP8 is 8-bit float in groups of 32 with uint8 (E8M0) scales;
// with input_activations null it is W8A16. Matching: entries that are a module's name come first,
// then "re:" patterns (Python's re.match), then class names ("Linear").
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"
#include "checkpoint/quant_dialects.h"

namespace mx8 {

namespace {

using json::Fields;
using json::Json;

// The arguments of one quantiser; absent fields have the library's defaults.
struct QuantArgs {
  int64_t num_bits = 8;
  std::string type = "int";
  std::string strategy;
  int64_t group_size = 0;
  std::vector<int64_t> block;
  bool symmetric = true;
  std::string dynamic = "false";  // "true", "false", "local"
  std::string scale_dtype;        // without "torch."
};

constexpr std::string_view kArgNames[] = {
    "num_bits", "type",     "symmetric", "group_size",      "strategy",    "block_structure",
    "dynamic",  "actorder", "observer",  "observer_kwargs", "scale_dtype", "zp_dtype",
};

// "torch.uint8" and "uint8" are the same.
std::string without_torch(std::string name) {
  return name.starts_with("torch.") ? name.substr(6) : name;
}

Result<QuantArgs> read_args(const Fields& f) {
  for (const auto& [key, value] : f.json().items()) {
    if (std::find(std::begin(kArgNames), std::end(kArgNames), key) == std::end(kArgNames)) {
      return invalid_argument(str_cat(f.path(), ": \"", f.name(key),
                                      "\" is not an argument that compressed-tensors knows"));
    }
  }
  QuantArgs args;
  MX8_RETURN_IF_ERROR(f.integer("num_bits", 1, 64, args.num_bits));
  MX8_RETURN_IF_ERROR(f.string("type", args.type));
  MX8_RETURN_IF_ERROR(f.integer("group_size", -1, int64_t{1} << 20, args.group_size));
  args.strategy = args.group_size > 0 ? "group" : args.group_size < 0 ? "channel" : "tensor";
  MX8_RETURN_IF_ERROR(f.string("strategy", args.strategy));
  MX8_RETURN_IF_ERROR(f.boolean("symmetric", args.symmetric));
  MX8_RETURN_IF_ERROR(f.string("scale_dtype", args.scale_dtype));
  args.scale_dtype = without_torch(args.scale_dtype);
  if (args.strategy == "block") {
    MX8_RETURN_IF_ERROR(f.integers("block_structure", 1, int64_t{1} << 20, args.block));
  }
  if (const Json* dynamic = f.find("dynamic")) {
    if (!dynamic->is_boolean() && *dynamic != "local") {
      return f.wrong("dynamic", "true, false or \"local\"");
    }
    args.dynamic = dynamic->is_boolean() ? (dynamic->get<bool>() ? "true" : "false") : "local";
  }
  return args;
}

// MXFP8 but for whether it is dynamic. Configs without scale_dtype are taken at their word: the
// scales' dtype is checked when they are loaded.
bool is_mxfp8(const QuantArgs& args) {
  const bool e8m0 = args.scale_dtype.empty() || args.scale_dtype == "uint8" ||
                    args.scale_dtype == "float8_e8m0fnu";
  return args.num_bits == 8 && args.type == "float" && args.strategy == "group" &&
         args.group_size == kMxBlock && args.symmetric && e8m0;
}

std::string format_name(const QuantArgs& args) {
  const std::string bits = std::to_string(args.num_bits);
  if (args.type != "float") {
    return str_cat("INT", bits, args.symmetric ? "" : " with zero points");
  }
  if (args.num_bits == 4 && (args.strategy == "tensor_group" || args.group_size == 16)) {
    return "NVFP4";
  }
  if (args.num_bits == 4 && args.group_size == 32) return "MXFP4";
  std::string name = "FP" + bits;
  if (args.strategy == "group") {
    name += str_cat(" in groups of ", args.group_size);
    if (!args.scale_dtype.empty()) name += str_cat(" with ", args.scale_dtype, " scales");
    return name;
  }
  if (args.strategy == "block" && args.block.size() == 2) {
    return str_cat(name, " in blocks of ", args.block[0], "x", args.block[1]);
  }
  return str_cat(name, " per ", args.strategy);
}

// "mxfp8-quantized"; the documentation also calls it mxfp8-pack-quantized.
bool is_mxfp8_format(const std::string& format) {
  return format == "mxfp8-quantized" || format == "mxfp8-pack-quantized" ||
         format == "mxfp8_pack_quantized";
}

Result<ActivationScheme> read_activations(const Fields& group) {
  MX8_TRY(const auto f, group.object("input_activations"));
  if (!f) return ActivationScheme::kNone;
  MX8_TRY(const QuantArgs args, read_args(*f));
  if (is_mxfp8(args) && args.dynamic == "true") return ActivationScheme::kDynamicMxfp8;
  return unsupported(str_cat(group.path(), ": ", group.name("input_activations"), " are ",
                             args.dynamic == "true" ? "dynamic " : "static ", format_name(args),
                             "; beside MXFP8 weights mx8 runs dynamic MXFP8 activations, or null"));
}

// A group that only describes the KV cache of attention modules.
bool is_attention_group(const std::vector<std::string>& targets) {
  return targets.size() == 1 && targets.front().ends_with("Attention");
}

Result<void> read_group(const Fields& group, QuantPlanParts& parts) {
  std::vector<std::string> targets;
  MX8_RETURN_IF_ERROR(group.strings("targets", targets));
  if (targets.empty()) return group.missing("targets", "a list of modules, such as [\"Linear\"]");
  if (is_attention_group(targets)) return {};
  if (group.find("output_activations") != nullptr) {
    return unsupported(str_cat(group.path(), ": \"", group.name("output_activations"),
                               "\" must be null: mx8 does not quantise outputs"));
  }
  MX8_TRY(const auto weights, group.object("weights"));
  if (!weights) return group.missing("weights", "an object with the weights' arguments");
  MX8_TRY(const QuantArgs args, read_args(*weights));
  const std::string where = group.name("weights");
  if (!is_mxfp8(args)) return format_not_runnable(group.path(), where, format_name(args));
  if (args.dynamic != "false") return weights->wrong("dynamic", "false for weights");
  std::string format = "mxfp8-quantized";
  MX8_RETURN_IF_ERROR(group.string("format", format));
  if (!is_mxfp8_format(format)) {
    return format_not_runnable(group.path(), group.name("format"), '"' + format + '"');
  }
  MX8_TRY(const ActivationScheme activations, read_activations(group));
  for (const std::string& target : targets) {
    const bool may_be_class = target.find('.') == std::string::npos;
    MX8_TRY(
        NamePattern pattern,
        parse_entry(target, may_be_class ? NamePattern::Kind::kClass : NamePattern::Kind::kExact,
                    false, group.path(), group.name("targets")));
    parts.targets.add({std::move(pattern), QuantScheme::mxfp8(activations), group.name("targets")});
  }
  return {};
}

Result<void> read_kv_cache(const Fields& config, KvCacheScheme& out) {
  MX8_TRY(const auto f, config.object("kv_cache_scheme"));
  if (!f) return {};
  MX8_TRY(const QuantArgs args, read_args(*f));
  const bool fp8 = args.num_bits == 8 && args.type == "float" && args.symmetric &&
                   args.dynamic == "false" &&
                   (args.strategy == "tensor" || args.strategy == "attn_head");
  if (!fp8) {
    return unsupported(str_cat(config.path(), ": \"", f->name(""), "\" asks for a ",
                               format_name(args),
                               " KV cache; mx8 knows static symmetric FP8 per tensor or head"));
  }
  out = KvCacheScheme::kFp8;
  return {};
}

// What the library can do around the weights and mx8 cannot.
Result<void> check_extras(const Fields& config) {
  std::string status = "compressed";
  MX8_RETURN_IF_ERROR(config.string("quantization_status", status));
  if (status != "compressed") {
    return config.wrong("quantization_status", "\"compressed\": save the model compressed");
  }
  for (const char* key : {"sparsity_config", "transform_config"}) {
    MX8_TRY(const auto f, config.object(key));
    if (!f || f->json().empty()) continue;
    const bool dense = f->json().value("format", Json()) == "dense";
    const Json groups = f->json().value("config_groups", Json());
    if (dense || groups == Json::object()) continue;
    return unsupported(str_cat(config.path(), ": \"", config.name(key), "\" is ",
                               json::shown(f->json()),
                               "; mx8 runs neither sparse weights nor transforms"));
  }
  return {};
}

Result<void> check_format(const Fields& config) {
  std::string format = "mxfp8-quantized";
  MX8_RETURN_IF_ERROR(config.string("format", format));
  if (is_mxfp8_format(format) || format == "mixed-precision") return {};
  return format_not_runnable(config.path(), config.name("format"), '"' + format + '"');
}

}  // namespace

Result<QuantPlanParts> read_compressed_tensors(const json::Fields& config) {
  QuantPlanParts parts;
  parts.dialect = "compressed-tensors";
  MX8_TRY(const auto groups, config.object("config_groups"));
  if (!groups || groups->json().empty()) {
    return config.missing("config_groups", "an object with at least one group");
  }
  for (const auto& [name, value] : groups->json().items()) {
    MX8_TRY(const auto group, groups->object(name));
    if (!group) return groups->wrong(name, "an object");
    MX8_RETURN_IF_ERROR(read_group(*group, parts));
  }
  MX8_RETURN_IF_ERROR(check_format(config));
  MX8_RETURN_IF_ERROR(check_extras(config));
  MX8_RETURN_IF_ERROR(read_kv_cache(config, parts.kv_cache));
  std::vector<std::string> ignore;
  MX8_RETURN_IF_ERROR(config.strings("ignore", ignore));
  for (const std::string& entry : ignore) {
    const bool may_be_class = entry.find('.') == std::string::npos;
    MX8_TRY(NamePattern pattern,
            parse_entry(entry, may_be_class ? NamePattern::Kind::kClass : NamePattern::Kind::kExact,
                        false, config.path(), "ignore"));
    parts.ignore.add({std::move(pattern), QuantScheme{}, "ignore"});
  }
  return parts;
}

}  // namespace mx8
