// quantization_config, hf_quant_config.json and a module's name, separated by zero bytes.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/strings.h"
#include "checkpoint/quant_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto parts = mx8::split(text, '\0');
  parts.resize(3);
  const auto plan = mx8::parse_quant_plan(parts[0], "c", parts[1], "s");
  if (!plan.ok()) return 0;
  for (const std::string& name :
       {parts[2], std::string("lm_head"), std::string("model.layers.0.mlp.experts.1.up_proj")}) {
    const auto m = plan->module(name);
    if (m.ok() && !m->scheme.is_plain() && !m->scheme.is_mxfp8()) std::abort();
  }
  return 0;
}
