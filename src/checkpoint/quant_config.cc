#include "checkpoint/quant_config.h"

#include <algorithm>

#include "base/strings.h"
#include "base/text_file.h"
#include "checkpoint/json.h"
#include "checkpoint/quant_dialects.h"

namespace mx8 {

namespace {

using json::Fields;
using json::Json;

constexpr uint64_t kMaxSideFileBytes = uint64_t{16} << 20;

// Formats that have a method of their own; none of them runs yet.
struct ForeignMethod {
  std::string_view method;
  std::string_view format;
};

constexpr ForeignMethod kForeignMethods[] = {
    {"fbgemm_fp8", "FP8 per channel (FBGEMM)"},
    {"mxfp4", "MXFP4"},
    {"nvfp4", "NVFP4"},
    {"gptq", "INT4 or INT8 GPTQ"},
    {"gptq_marlin", "INT4 or INT8 GPTQ"},
    {"awq", "INT4 AWQ"},
    {"awq_marlin", "INT4 AWQ"},
    {"bitsandbytes", "bitsandbytes (NF4, FP4 or INT8)"},
    {"torchao", "torchao"},
    {"quark", "AMD Quark"},
    {"hqq", "HQQ"},
    {"aqlm", "AQLM"},
    {"quanto", "Quanto"},
    {"eetq", "EETQ INT8"},
    {"higgs", "HIGGS"},
    {"vptq", "VPTQ"},
    {"spqr", "SpQR"},
    {"bitnet", "BitNet"},
    {"gguf", "GGUF"},
    {"finegrained_fp8", "block FP8"},
};

std::string_view class_name(ModuleKind kind) {
  return kind == ModuleKind::kEmbedding ? "Embedding" : "Linear";
}

// What the parts of fused layers are called, by the last part of the name.
struct FusedName {
  std::string_view part;
  std::string_view fused;
};

constexpr FusedName kFusedNames[] = {
    {"q_proj", "qkv_proj"},
    {"k_proj", "qkv_proj"},
    {"v_proj", "qkv_proj"},
    {"q_proj", "qkv"},
    {"k_proj", "qkv"},
    {"v_proj", "qkv"},
    {"gate_proj", "gate_up_proj"},
    {"up_proj", "gate_up_proj"},
    {"w1", "w13"},
    {"w3", "w13"},
};

void add_fused_names(std::string_view name, std::vector<std::string>& out) {
  const size_t dot = name.rfind('.');
  const size_t last = dot == std::string_view::npos ? 0 : dot + 1;
  for (const FusedName& row : kFusedNames) {
    if (name.substr(last) == row.part) out.push_back(str_cat(name.substr(0, last), row.fused));
  }
  const size_t experts = name.rfind(".experts.");
  if (experts != std::string_view::npos) {
    out.emplace_back(name.substr(0, experts + std::string_view(".experts").size()));
  }
}

// FP8 in blocks of 1x32 with E8M0 scales is MXFP8 by another name; other FP8 is refused.
Result<QuantPlanParts> read_fp8(const Fields& config) {
  std::vector<int64_t> block;
  MX8_RETURN_IF_ERROR(config.integers("weight_block_size", 1, int64_t{1} << 20, block));
  if (block == std::vector<int64_t>{1, kMxBlock}) return read_mxfp8_plain(config);
  const std::string format = block.size() == 2
                                 ? str_cat("FP8 in blocks of ", block[0], "x", block[1])
                                 : std::string("FP8 per tensor");
  return format_not_runnable(config.path(), "quant_method \"fp8\"", format);
}

Result<QuantPlanParts> read_by_method(const Fields& config) {
  std::string method;
  MX8_RETURN_IF_ERROR(config.string("quant_method", method));
  if (method == "compressed-tensors") return read_compressed_tensors(config);
  if (method == "mxfp8") return read_mxfp8_plain(config);
  if (method == "fp8") return read_fp8(config);
  if (method == "auto-round" || method == "intel/auto-round") return read_auto_round(config);
  for (const ForeignMethod& row : kForeignMethods) {
    if (row.method == method) {
      return format_not_runnable(config.path(), str_cat("quant_method \"", method, '"'),
                                 row.format);
    }
  }
  const std::string must = "compressed-tensors, modelopt, mxfp8 or auto-round";
  return config.find("quant_method") == nullptr ? config.missing("quant_method", must)
                                                : config.wrong("quant_method", must);
}

Result<QuantPlanParts> read_dialect(const Fields* inlined, const Fields* side) {
  if (inlined == nullptr && side == nullptr) return QuantPlanParts{};
  std::string method = "modelopt";
  if (inlined != nullptr) {
    MX8_RETURN_IF_ERROR(inlined->string("quant_method", method));
    const bool other = !is_modelopt_method(method) || (inlined->find("quant_method") == nullptr &&
                                                       inlined->find("quant_algo") == nullptr &&
                                                       inlined->find("quantization") == nullptr);
    if (other && side != nullptr) {
      return invalid_argument(
          str_cat(side->path(), " describes a ModelOpt checkpoint, but the quantization_config of ",
                  inlined->path(), " does not (quant_method \"", method,
                  "\"); remove the one that is wrong"));
    }
    if (other) return read_by_method(*inlined);
  }
  return read_modelopt(inlined, side);
}

Result<QuantPlanParts> online_parts(const OnlineQuant& online) {
  QuantPlanParts parts;
  parts.dialect = "online mxfp8";
  parts.online = true;
  parts.default_covers_head = false;
  const QuantScheme scheme = QuantScheme::mxfp8(online.activations);
  parts.default_scheme = scheme;
  const std::string path = "--quantization mxfp8";
  MX8_RETURN_IF_ERROR(add_entries(online.ignore, NamePattern::Kind::kPart, true, QuantScheme{},
                                  path, "ignore", parts.ignore));
  MX8_RETURN_IF_ERROR(add_entries(online.include, NamePattern::Kind::kPart, true, scheme, path,
                                  "include", parts.targets));
  return parts;
}

std::string shown(const ModuleQuant& m) {
  const std::string how = m.scheme.is_plain() ? "not quantised" : describe(m.scheme);
  return m.reason.empty() ? how : str_cat(how, " (", m.reason, ")");
}

}  // namespace

Error format_not_runnable(const std::string& path, std::string_view where,
                          std::string_view format) {
  return unsupported(str_cat(path, ": ", where, ": the weights are ", format,
                             ", not MXFP8, and mx8 does not run that yet; it runs MXFP8 from "
                             "compressed-tensors, ModelOpt, quant_method mxfp8 and AutoRound, and "
                             "plain BF16, FP16 and FP32"));
}

Result<NamePattern> parse_entry(const std::string& text, NamePattern::Kind otherwise,
                                bool wildcards, const std::string& path, std::string_view list) {
  if (text.empty()) return invalid_argument(str_cat(path, ": ", list, " has an empty entry"));
  if (text.starts_with("re:")) {
    Result<NamePattern> pattern = NamePattern::regex(text.substr(3));
    if (!pattern.ok()) {
      return invalid_argument(str_cat(path, ": ", list, ": ", pattern.error().message));
    }
    return pattern;
  }
  if (wildcards && text.find_first_of("*?[") != std::string::npos) {
    return NamePattern(NamePattern::Kind::kWildcard, text);
  }
  return NamePattern(otherwise, text);
}

Result<void> add_entries(const std::vector<std::string>& entries, NamePattern::Kind otherwise,
                         bool wildcards, const QuantScheme& scheme, const std::string& path,
                         const std::string& list, QuantRules& rules) {
  for (const std::string& entry : entries) {
    MX8_TRY(NamePattern pattern, parse_entry(entry, otherwise, wildcards, path, list));
    rules.add({std::move(pattern), scheme, list});
  }
  return {};
}

ModuleNames QuantPlan::names_of(std::string_view name, ModuleKind kind) const {
  ModuleNames names;
  names.class_name = class_name(kind);
  names.own.emplace_back(name);
  for (const NamePrefix& prefix : prefixes_) {
    if (name.starts_with(prefix.checkpoint)) {
      names.own.push_back(prefix.config + std::string(name.substr(prefix.checkpoint.size())));
    }
  }
  const size_t spellings = names.own.size();
  for (size_t i = 0; i < spellings; ++i) add_fused_names(names.own[i], names.fused);
  // Some producers wrap each linear in a module and list the inner one.
  for (size_t i = 0; i < spellings; ++i) names.own.push_back(names.own[i] + ".linear");
  return names;
}

Result<ModuleQuant> QuantPlan::module(std::string_view name, ModuleKind kind) const {
  ModuleQuant out;
  if (kind == ModuleKind::kNorm) return out;
  const ModuleNames names = names_of(name, kind);
  bool by_class = false;
  MX8_TRY(const QuantRule* ignored, parts_.ignore.find(names, by_class));
  if (ignored != nullptr) {
    out.reason = describe(*ignored);
    return out;
  }
  MX8_TRY(const QuantRule* target, parts_.targets.find(names, by_class));
  if (target != nullptr) {
    out.scheme = target->scheme;
    out.by_default = by_class;
    out.reason = describe(*target);
  } else if (parts_.default_scheme) {
    const bool meant = kind == ModuleKind::kLinear ||
                       (kind == ModuleKind::kRouter && !parts_.online) ||
                       (kind == ModuleKind::kLmHead && parts_.default_covers_head);
    if (!meant) return out;
    out.scheme = *parts_.default_scheme;
    out.by_default = true;
  }
  out.quantize_at_load = parts_.online && !out.scheme.is_plain();
  return out;
}

Result<ModuleQuant> QuantPlan::fused(std::span<const std::string> names, ModuleKind kind) const {
  MX8_CHECK(!names.empty());
  MX8_TRY(ModuleQuant first, module(names.front(), kind));
  for (const std::string& name : names.subspan(1)) {
    MX8_TRY(const ModuleQuant other, module(name, kind));
    if (other.scheme == first.scheme) continue;
    return unsupported(str_cat("quantisation config: ", names.front(), " is ", shown(first),
                               " but ", name, " is ", shown(other),
                               "; they run as one layer and must agree"));
  }
  return first;
}

std::vector<std::string> QuantPlan::unmatched() const {
  std::vector<std::string> out;
  for (const QuantRules* rules : {&parts_.ignore, &parts_.targets}) {
    for (const QuantRule* rule : rules->unmatched()) out.push_back(describe(*rule));
  }
  return out;
}

Result<QuantPlan> parse_quant_plan(std::string_view quantization_config,
                                   const std::string& config_path, std::string_view side_file,
                                   const std::string& side_path, const OnlineQuant& online) {
  Json inlined_json, side_json;
  std::optional<Fields> inlined, side;
  if (!quantization_config.empty()) {
    MX8_TRY(inlined_json, json::parse(quantization_config, config_path));
    if (!inlined_json.is_object()) {
      return invalid_argument(str_cat(config_path, ": \"quantization_config\" is ",
                                      json::shown(inlined_json), "; it must be an object"));
    }
    inlined.emplace(inlined_json, config_path, "quantization_config");
  }
  if (!side_file.empty()) {
    MX8_TRY(side_json, json::parse(side_file, side_path));
    if (!side_json.is_object()) {
      return invalid_argument(str_cat(side_path, ": it must hold a JSON object"));
    }
    side.emplace(side_json, side_path);
  }
  MX8_TRY(QuantPlanParts parts,
          read_dialect(inlined ? &*inlined : nullptr, side ? &*side : nullptr));
  if (!online.enabled) return QuantPlan(std::move(parts));
  if (parts.dialect != "none") {
    return invalid_argument(str_cat(config_path, ": the checkpoint is quantised already (",
                                    parts.dialect, "); drop --quantization"));
  }
  MX8_TRY(parts, online_parts(online));
  return QuantPlan(std::move(parts));
}

Result<QuantPlan> read_quant_plan(const std::string& folder, const HfConfig& config,
                                  const OnlineQuant& online) {
  const std::string side_path = folder + "/hf_quant_config.json";
  std::string side;
  if (file_exists(side_path)) {
    MX8_TRY(side, read_text_file(side_path, kMaxSideFileBytes));
    if (side.empty()) return corrupt(str_cat(side_path, " is empty; fetch it again"));
  }
  return parse_quant_plan(config.quantization_config, config.path, side, side_path, online);
}

}  // namespace mx8
