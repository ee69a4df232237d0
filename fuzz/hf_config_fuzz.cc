// config.json, and generation_config.json after a zero byte.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "checkpoint/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t zero = text.find('\0');
  const std::string_view generation =
      zero == std::string_view::npos ? std::string_view() : text.substr(zero + 1);
  const auto c = mx8::parse_hf_config(text.substr(0, zero), "c", generation, "g", {});
  if (!c.ok()) return 0;
  if (c->num_attention_heads < 1 || c->num_key_value_heads < 1 ||
      c->num_attention_heads % c->num_key_value_heads != 0 || c->head_dim < 2 ||
      c->rope_theta < 1 || c->num_experts_per_tok > c->num_experts) {
    std::abort();
  }
  for (int64_t layer = 0; layer < c->num_hidden_layers; ++layer) {
    if (c->layer_window(layer) < 0) std::abort();
    static_cast<void>(c->layer_is_moe(layer));
  }
  return 0;
}
