// The parts of a Hugging Face model folder's config.json and generation_config.json that mx8 reads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace mx8 {

enum class RopeType { kDefault, kLinear, kDynamic, kLlama3, kYarn, kLongRope };
std::string_view rope_type_name(RopeType type);  // as in config.json

// `rope_scaling` (transformers 4) or `rope_parameters` (transformers 5). Only the fields of `type`
// have a meaning.
struct RopeScaling {
  RopeType type = RopeType::kDefault;
  double factor = 1;
  // llama3, yarn, longrope: the context before stretching; max_position_embeddings if not given.
  int64_t original_max_position_embeddings = 0;
  double low_freq_factor = 1;              // llama3
  double high_freq_factor = 4;             // llama3
  double beta_fast = 32;                   // yarn
  double beta_slow = 1;                    // yarn
  bool truncate = true;                    // yarn: round the correction range to whole dimensions
  std::optional<double> attention_factor;  // yarn, longrope
  std::optional<double> mscale;            // yarn
  std::optional<double> mscale_all_dim;    // yarn
  std::vector<double> short_factor;        // longrope, head_dim / 2 values
  std::vector<double> long_factor;         // longrope
};

// Sampling defaults of generation_config.json.
struct GenerationDefaults {
  std::optional<bool> do_sample;
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<int64_t> max_new_tokens;
};

// Fields keep the names of config.json. Missing optional fields have the defaults that transformers
// gives to `model_type`.
struct HfConfig {
  std::string path;          // of config.json, for messages
  std::string architecture;  // "LlamaForCausalLM"
  std::string model_type;    // "llama"

  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t intermediate_size = 0;
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  std::string hidden_act = "silu";
  bool tie_word_embeddings = false;
  std::string dtype = "";  // `dtype` or `torch_dtype`: "bfloat16", ...; "" when absent

  double rope_theta = 10000;
  double partial_rotary_factor = 1;
  RopeScaling rope_scaling;

  std::optional<bool> attention_bias;  // Llama, Qwen3: q, k, v and o
  std::optional<bool> qkv_bias;        // Qwen2-MoE: q, k and v
  std::optional<bool> mlp_bias;        // Llama: gate, up and down

  int64_t sliding_window = 0;  // 0: none
  std::optional<bool> use_sliding_window;
  std::optional<int64_t> max_window_layers;
  std::vector<std::string>
      layer_types;  // "full_attention", "sliding_attention"; one a layer or none

  // Mixture of experts; num_experts is 0 for dense models.
  int64_t num_experts = 0;  // or `num_local_experts`
  int64_t num_experts_per_tok = 0;
  int64_t moe_intermediate_size = 0;            // Mixtral: intermediate_size
  int64_t shared_expert_intermediate_size = 0;  // 0: no shared expert
  bool norm_topk_prob = false;
  int64_t decoder_sparse_step = 1;
  std::vector<int64_t> mlp_only_layers;

  std::vector<int64_t> bos_token_ids;
  std::vector<int64_t> eos_token_ids;  // generation_config.json's where it has them
  std::vector<int64_t> pad_token_ids;
  GenerationDefaults generation;

  // The text of `quantization_config`, "" when absent; read by quant_config.h.
  std::string quantization_config;

  // The fields that no member above reads, with their values as JSON text, sorted by name: a
  // model must know each one that would change its numbers, or refuse it.
  std::vector<std::pair<std::string, std::string>> other_fields;

  // True if the MLP of this layer is a mixture of experts.
  bool layer_is_moe(int64_t layer) const;
  // The attention window of a layer in tokens, 0 for full attention, as transformers reads
  // sliding_window, use_sliding_window, max_window_layers and layer_types.
  int64_t layer_window(int64_t layer) const;
};

// A config.json larger than this is none.
inline constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;

// Reads `folder`/config.json and, where present, generation_config.json. The architecture must be
// one of `known` (any, where `known` is empty): that is checked before anything else is asked for.
// Impossible values are refused in one line that names the file and the field.
Result<HfConfig> read_hf_config(const std::string& folder, std::span<const std::string> known);
// The same from text; `generation_text` may be empty.
Result<HfConfig> parse_hf_config(std::string_view text, const std::string& path,
                                 std::string_view generation_text,
                                 const std::string& generation_path,
                                 std::span<const std::string> known);

}  // namespace mx8
