// quant_method "mxfp8": written by SGLang's and MiniMax's tools.
//   {"quant_method": "mxfp8", "activation_scheme": "dynamic", "weight_block_size": [1, 32],
//    "scale_fmt": "ue8m0", "ignored_layers" or "modules_to_not_convert": [...]}
#include "base/strings.h"
#include "checkpoint/quant_dialects.h"

namespace mx8 {

Result<QuantPlanParts> read_mxfp8_plain(const json::Fields& config) {
  std::vector<int64_t> block = {1, kMxBlock};
  MX8_RETURN_IF_ERROR(config.integers("weight_block_size", 1, int64_t{1} << 20, block));
  if (block != std::vector<int64_t>{1, kMxBlock}) {
    return config.wrong("weight_block_size", "[1, 32]: that is what MXFP8 means");
  }
  std::string text = "ue8m0";
  MX8_RETURN_IF_ERROR(config.string("scale_fmt", text));
  if (text != "ue8m0") return config.wrong("scale_fmt", "\"ue8m0\"");
  text = "e4m3";
  MX8_RETURN_IF_ERROR(config.string("fmt", text));
  if (text != "e4m3") return config.wrong("fmt", "\"e4m3\"");
  text = "dynamic";
  MX8_RETURN_IF_ERROR(config.string("activation_scheme", text));
  if (text != "dynamic") {
    return config.wrong("activation_scheme", "\"dynamic\"; static scales do not exist for MXFP8");
  }

  QuantPlanParts parts;
  parts.dialect = "mxfp8";
  parts.default_scheme = QuantScheme::mxfp8(ActivationScheme::kDynamicMxfp8);
  for (const char* key : {"ignored_layers", "modules_to_not_convert"}) {
    std::vector<std::string> entries;
    MX8_RETURN_IF_ERROR(config.strings(key, entries));
    MX8_RETURN_IF_ERROR(add_entries(entries, NamePattern::Kind::kPart, true, QuantScheme{},
                                    config.path(), key, parts.ignore));
  }
  return parts;
}

}  // namespace mx8
