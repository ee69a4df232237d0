// NVIDIA ModelOpt. Two carriers that an export writes both, with other keys:
//   hf_quant_config.json   {"producer": {...}, "quantization": {"quant_algo": "MXFP8",
//                           "kv_cache_quant_algo": "FP8", "group_size": 32, "exclude_modules":
//                           [..], "quantized_layers": {...}}}
//   quantization_config    {"quant_method": "modelopt", "quant_algo": "MXFP8", "ignore": [..],
//                           "kv_cache_scheme": {...}, "quantized_layers": {...}}
// Where both are present they must say the same. Excluded modules are names, parts of names, or
// fnmatch wildcards ("model.layers.0*").
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"
#include "checkpoint/quant_dialects.h"

namespace mx8 {

namespace {

using json::Fields;
using json::Json;

// What either carrier says, in one form.
struct ModeloptConfig {
  std::string algo;                           // "" for none
  std::vector<std::string> exclude;           // sorted, each once
  std::string kv_algo;                        // "" for none
  std::map<std::string, std::string> layers;  // quantized_layers: name, algorithm
  bool has_layers = false;
  std::string path;
  std::string algo_name;  // the fields' full names, for messages
  std::string exclude_name;
  std::string kv_name;
  std::string layers_name;
};

constexpr std::string_view kMixed = "MIXED_PRECISION";
constexpr std::string_view kMxfp8 = "MXFP8";

std::string format_name(const std::string& algo) {
  if (algo == "FP8") return "FP8 per tensor";
  if (algo.starts_with("FP8_PB")) return "FP8 in blocks of 128x128";
  return algo;
}

Result<void> check_group_size(const Fields& f, const std::string& algo) {
  int64_t group = kMxBlock;
  MX8_RETURN_IF_ERROR(f.integer("group_size", 0, int64_t{1} << 20, group));
  if (algo == kMxfp8 && group != kMxBlock) return f.wrong("group_size", "32 for MXFP8");
  return {};
}

Result<void> read_layers(const Fields& f, ModeloptConfig& out) {
  MX8_TRY(const auto layers, f.object("quantized_layers"));
  out.has_layers = layers.has_value();
  if (!layers) return {};
  for (const auto& [name, value] : layers->json().items()) {
    MX8_TRY(const auto layer, layers->object(name));
    if (!layer) return layers->wrong(name, "an object with \"quant_algo\"");
    std::string algo;
    MX8_RETURN_IF_ERROR(layer->string("quant_algo", algo));
    if (algo.empty()) return layer->missing("quant_algo", "the layer's format");
    MX8_RETURN_IF_ERROR(check_group_size(*layer, algo));
    out.layers[name] = algo;
  }
  return {};
}

// The KV cache is a name in the one carrier and usually an object in the other.
Result<void> read_kv(const Fields& f, std::string_view key, ModeloptConfig& out) {
  const Json* value = f.find(key);
  if (value == nullptr) return {};
  if (value->is_string()) {
    out.kv_algo = value->get<std::string>();
    return {};
  }
  if (!value->is_object()) return f.wrong(key, "a name such as \"FP8\", or an object");
  const bool fp8 = value->value("num_bits", Json()) == 8 &&
                   value->value("type", Json()) == "float" &&
                   value->value("dynamic", Json(false)) == false;
  if (!fp8) return f.wrong(key, "static 8-bit float");
  out.kv_algo = "FP8";
  return {};
}

Result<ModeloptConfig> read_carrier(const Fields& outer) {
  MX8_TRY(const auto nested, outer.object("quantization"));
  const Fields& f = nested ? *nested : outer;
  const char* const exclude = f.find("exclude_modules") != nullptr ? "exclude_modules" : "ignore";
  const char* const kv =
      f.find("kv_cache_quant_algo") != nullptr ? "kv_cache_quant_algo" : "kv_cache_scheme";
  ModeloptConfig out;
  out.path = outer.path();
  out.algo_name = f.name("quant_algo");
  out.exclude_name = f.name(exclude);
  out.kv_name = f.name(kv);
  out.layers_name = f.name("quantized_layers");
  MX8_RETURN_IF_ERROR(f.string("quant_algo", out.algo));
  std::transform(out.algo.begin(), out.algo.end(), out.algo.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  MX8_RETURN_IF_ERROR(check_group_size(f, out.algo));
  MX8_RETURN_IF_ERROR(f.strings(exclude, out.exclude));
  std::sort(out.exclude.begin(), out.exclude.end());
  out.exclude.erase(std::unique(out.exclude.begin(), out.exclude.end()), out.exclude.end());
  MX8_RETURN_IF_ERROR(read_kv(f, kv, out));
  MX8_RETURN_IF_ERROR(read_layers(f, out));
  return out;
}

std::string shown(const std::string& text) { return text.empty() ? "none" : text; }
std::string shown(const std::vector<std::string>& list) { return json::shown(Json(list)); }
std::string shown(const std::map<std::string, std::string>& map) { return json::shown(Json(map)); }

Error conflict(const ModeloptConfig& a, const std::string& a_field, const std::string& a_value,
               const ModeloptConfig& b, const std::string& b_field, const std::string& b_value) {
  return invalid_argument(str_cat("the checkpoint describes itself twice and differently: ", a.path,
                                  " has ", a_field, " ", a_value, ", ", b.path, " has ", b_field,
                                  " ", b_value, "; mend or remove one of them"));
}

Result<void> check_agree(const ModeloptConfig& a, const ModeloptConfig& b) {
  if (a.algo != b.algo) {
    return conflict(a, a.algo_name, shown(a.algo), b, b.algo_name, shown(b.algo));
  }
  if (a.exclude != b.exclude) {
    return conflict(a, a.exclude_name, shown(a.exclude), b, b.exclude_name, shown(b.exclude));
  }
  if (a.kv_algo != b.kv_algo) {
    return conflict(a, a.kv_name, shown(a.kv_algo), b, b.kv_name, shown(b.kv_algo));
  }
  if (a.has_layers && b.has_layers && a.layers != b.layers) {
    return conflict(a, a.layers_name, shown(a.layers), b, b.layers_name, shown(b.layers));
  }
  return {};
}

Result<void> add_mixed_layers(const ModeloptConfig& config, QuantRules& rules) {
  if (config.layers.empty()) {
    return invalid_argument(str_cat(config.path, ": \"", config.algo_name, "\" is \"", kMixed,
                                    "\", but \"", config.layers_name, "\" is ",
                                    config.has_layers ? "empty" : "missing",
                                    "; it must map each quantised layer to its format"));
  }
  for (const auto& [name, algo] : config.layers) {
    if (algo != kMxfp8) {
      return format_not_runnable(config.path, str_cat(config.layers_name, " \"", name, '"'),
                                 format_name(algo));
    }
    rules.add({NamePattern(NamePattern::Kind::kPart, name),
               QuantScheme::mxfp8(ActivationScheme::kDynamicMxfp8), "quantized_layers"});
  }
  return {};
}

}  // namespace

bool is_modelopt_method(std::string_view method) { return method.starts_with("modelopt"); }

Result<QuantPlanParts> read_modelopt(const json::Fields* inlined, const json::Fields* side) {
  MX8_CHECK(inlined != nullptr || side != nullptr);
  MX8_TRY(ModeloptConfig config, read_carrier(side != nullptr ? *side : *inlined));
  if (inlined != nullptr && side != nullptr) {
    MX8_TRY(const ModeloptConfig other, read_carrier(*inlined));
    MX8_RETURN_IF_ERROR(check_agree(config, other));
    if (!config.has_layers) config.layers = other.layers;
  }
  QuantPlanParts parts;
  parts.dialect = "modelopt";
  if (config.algo == kMixed) {
    MX8_RETURN_IF_ERROR(add_mixed_layers(config, parts.targets));
  } else if (config.algo == kMxfp8) {
    parts.default_scheme = QuantScheme::mxfp8(ActivationScheme::kDynamicMxfp8);
  } else if (!config.algo.empty()) {
    return format_not_runnable(config.path, str_cat(config.algo_name, " \"", config.algo, '"'),
                               format_name(config.algo));
  } else if (config.kv_algo.empty()) {
    return invalid_argument(str_cat(config.path, ": \"", config.algo_name,
                                    "\" is missing; it must be \"MXFP8\" or \"MIXED_PRECISION\""));
  }
  if (!config.kv_algo.empty()) {
    if (config.kv_algo != "FP8") {
      return unsupported(str_cat(config.path, ": \"", config.kv_name, "\" asks for a ",
                                 config.kv_algo, " KV cache; mx8 knows FP8"));
    }
    parts.kv_cache = KvCacheScheme::kFp8;
  }
  MX8_RETURN_IF_ERROR(add_entries(config.exclude, NamePattern::Kind::kPart, true, QuantScheme{},
                                  config.path, config.exclude_name, parts.ignore));
  return parts;
}

}  // namespace mx8
