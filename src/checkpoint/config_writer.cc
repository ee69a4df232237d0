#include "checkpoint/config_writer.h"

#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "checkpoint/json.h"

namespace mx8 {

namespace {

using Ordered = nlohmann::ordered_json;

// The library's QuantizationArgs; it refuses keys that it does not know.
Ordered quant_args(bool dynamic) {
  Ordered args;
  args["num_bits"] = 8;
  args["type"] = "float";
  args["symmetric"] = true;
  args["group_size"] = kMxBlock;
  args["strategy"] = "group";
  args["block_structure"] = nullptr;
  args["dynamic"] = dynamic;
  args["actorder"] = nullptr;
  args["scale_dtype"] = "torch.uint8";
  args["zp_dtype"] = nullptr;
  args["observer"] = dynamic ? Ordered(nullptr) : Ordered("memoryless_minmax");
  args["observer_kwargs"] = Ordered::object();
  return args;
}

Ordered producer(const QuantDescription& description) {
  return {{"name", "mx8"}, {"version", description.producer_version}};
}

}  // namespace

std::string compressed_tensors_config(const QuantDescription& description) {
  const bool w8a8 = description.activations == ActivationScheme::kDynamicMxfp8;
  Ordered group;
  group["targets"] = {"Linear"};
  group["weights"] = quant_args(false);
  group["input_activations"] = w8a8 ? quant_args(true) : Ordered(nullptr);
  group["output_activations"] = nullptr;
  group["format"] = "mxfp8-quantized";
  Ordered config;
  config["config_groups"] = {{"group_0", group}};
  config["quant_method"] = "compressed-tensors";
  config["kv_cache_scheme"] = nullptr;
  config["format"] = "mxfp8-quantized";
  config["quantization_status"] = "compressed";
  config["global_compression_ratio"] = nullptr;
  config["ignore"] = description.ignore;
  return config.dump(2);
}

std::string modelopt_config(const QuantDescription& description) {
  Ordered config;
  config["ignore"] = description.ignore;
  config["quant_algo"] = "MXFP8";
  config["producer"] = producer(description);
  config["quant_method"] = "modelopt";
  return config.dump(2);
}

std::string modelopt_side_file(const QuantDescription& description) {
  Ordered quantization;
  quantization["quant_algo"] = "MXFP8";
  quantization["kv_cache_quant_algo"] = nullptr;
  quantization["group_size"] = kMxBlock;
  quantization["exclude_modules"] = description.ignore;
  Ordered config;
  config["producer"] = producer(description);
  config["quantization"] = quantization;
  return config.dump(2) + "\n";
}

Result<std::string> with_quantization_config(std::string_view config_text, const std::string& path,
                                             std::string_view quantization) {
  MX8_TRY(const json::Json strict, json::parse(config_text, path));
  if (!strict.is_object()) return corrupt(str_cat(path, ": it must hold a JSON object"));
  Ordered config = Ordered::parse(config_text);
  if (quantization.empty()) {
    config.erase("quantization_config");
  } else {
    MX8_TRY(const json::Json checked, json::parse(quantization, "the new quantization_config"));
    config["quantization_config"] = Ordered::parse(quantization);
  }
  return config.dump(2) + "\n";
}

}  // namespace mx8
