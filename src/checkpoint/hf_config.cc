#include "checkpoint/hf_config.h"

#include <algorithm>

#include "base/strings.h"
#include "base/text_file.h"
#include "checkpoint/hf_rope.h"
#include "checkpoint/json.h"

namespace mx8 {

namespace {

using json::Fields;
using json::Json;


constexpr int64_t kMaxHidden = int64_t{1} << 20;
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxHeads = 65536;
constexpr int64_t kMaxHeadDim = 4096;
constexpr int64_t kMaxIntermediate = int64_t{1} << 24;
constexpr int64_t kMaxVocab = int64_t{1} << 24;
constexpr int64_t kMaxPositions = int64_t{1} << 40;
constexpr int64_t kMaxExperts = 65536;

// What transformers assumes where config.json says nothing. num_key_value_heads is not here: its
// defaults differ by family and would not fit most models, so it falls back to the heads.
struct FamilyDefaults {
  std::string_view model_type;
  int64_t max_position_embeddings;
  double rms_norm_eps;
  double rope_theta;
  int64_t head_dim;        // 0: hidden_size / num_attention_heads
  int64_t sliding_window;  // 0: none
};

constexpr FamilyDefaults kFamilies[] = {
    {"llama", 2048, 1e-6, 1e4, 0, 0},         {"mistral", 131072, 1e-6, 1e4, 0, 4096},
    {"mixtral", 131072, 1e-5, 1e6, 0, 0},     {"qwen2", 32768, 1e-6, 1e4, 0, 4096},
    {"qwen2_moe", 32768, 1e-6, 1e4, 0, 4096}, {"qwen3", 32768, 1e-6, 1e4, 128, 4096},
    {"qwen3_moe", 32768, 1e-6, 1e4, 0, 4096},
};

const FamilyDefaults& defaults_of(std::string_view model_type) {
  for (const FamilyDefaults& family : kFamilies) {
    if (family.model_type == model_type) return family;
  }
  return kFamilies[0];
}

Result<void> read_architecture(const Fields& f, std::span<const std::string> known, HfConfig& c) {
  std::vector<std::string> architectures;
  MX8_RETURN_IF_ERROR(f.strings("architectures", architectures));
  const std::string list = join({known.begin(), known.end()}, ", ");
  if (architectures.empty()) {
    return f.missing("architectures", known.empty() ? "a list with the model's class"
                                                    : "a list with one of " + list);
  }
  c.architecture = architectures.front();
  if (!known.empty() && std::find(known.begin(), known.end(), c.architecture) == known.end()) {
    return unsupported(str_cat(f.path(), ": the architecture \"", c.architecture,
                               "\" is not one that mx8 runs; known: ", list));
  }
  return f.string("model_type", c.model_type);
}

Result<void> read_sizes(const Fields& f, const FamilyDefaults& family, HfConfig& c) {
  MX8_RETURN_IF_ERROR(f.required_integer("hidden_size", 1, kMaxHidden, c.hidden_size));
  MX8_RETURN_IF_ERROR(f.required_integer("num_hidden_layers", 1, kMaxLayers, c.num_hidden_layers));
  MX8_RETURN_IF_ERROR(
      f.required_integer("num_attention_heads", 1, kMaxHeads, c.num_attention_heads));
  c.num_key_value_heads = c.num_attention_heads;
  MX8_RETURN_IF_ERROR(f.integer("num_key_value_heads", 1, kMaxHeads, c.num_key_value_heads));
  MX8_RETURN_IF_ERROR(
      f.required_integer("intermediate_size", 1, kMaxIntermediate, c.intermediate_size));
  MX8_RETURN_IF_ERROR(f.required_integer("vocab_size", 1, kMaxVocab, c.vocab_size));
  c.max_position_embeddings = family.max_position_embeddings;
  MX8_RETURN_IF_ERROR(
      f.integer("max_position_embeddings", 1, kMaxPositions, c.max_position_embeddings));
  c.rms_norm_eps = family.rms_norm_eps;
  MX8_RETURN_IF_ERROR(f.number("rms_norm_eps", 0, 1, c.rms_norm_eps));

  if (c.num_attention_heads % c.num_key_value_heads != 0) {
    return f.wrong("num_key_value_heads",
                   str_cat("a divisor of num_attention_heads, ", c.num_attention_heads));
  }
  c.head_dim = family.head_dim;
  MX8_RETURN_IF_ERROR(f.integer("head_dim", 1, kMaxHeadDim, c.head_dim));
  if (c.head_dim == 0) {
    if (c.hidden_size % c.num_attention_heads != 0) {
      return f.wrong("num_attention_heads", str_cat("a divisor of hidden_size, ", c.hidden_size,
                                                    ", or \"head_dim\" be "
                                                    "given"));
    }
    c.head_dim = c.hidden_size / c.num_attention_heads;
  }
  if (c.head_dim % 2 != 0) {
    return invalid_argument(
        str_cat(f.path(), ": head_dim is ", c.head_dim, "; rotary embeddings need an even number"));
  }
  return {};
}

Result<void> read_switches(const Fields& f, HfConfig& c) {
  MX8_RETURN_IF_ERROR(f.string("hidden_act", c.hidden_act));
  MX8_RETURN_IF_ERROR(f.boolean("tie_word_embeddings", c.tie_word_embeddings));
  MX8_RETURN_IF_ERROR(f.string("torch_dtype", c.dtype));
  MX8_RETURN_IF_ERROR(f.string("dtype", c.dtype));
  MX8_RETURN_IF_ERROR(f.boolean("attention_bias", c.attention_bias));
  MX8_RETURN_IF_ERROR(f.boolean("qkv_bias", c.qkv_bias));
  return f.boolean("mlp_bias", c.mlp_bias);
}

Result<void> read_windows(const Fields& f, const FamilyDefaults& family, HfConfig& c) {
  // An explicit null means none; only an absent key takes the family's default.
  if (!f.json().contains("sliding_window")) c.sliding_window = family.sliding_window;
  MX8_RETURN_IF_ERROR(f.integer("sliding_window", 1, kMaxPositions, c.sliding_window));
  MX8_RETURN_IF_ERROR(f.boolean("use_sliding_window", c.use_sliding_window));
  MX8_RETURN_IF_ERROR(f.integer("max_window_layers", 0, kMaxPositions, c.max_window_layers));
  MX8_RETURN_IF_ERROR(f.strings("layer_types", c.layer_types));
  if (c.layer_types.empty()) return {};
  if (static_cast<int64_t>(c.layer_types.size()) != c.num_hidden_layers) {
    return invalid_argument(str_cat(f.path(), ": \"layer_types\" has ", c.layer_types.size(),
                                    " entries; it must have num_hidden_layers, ",
                                    c.num_hidden_layers));
  }
  for (const std::string& type : c.layer_types) {
    if (type != "full_attention" && type != "sliding_attention") {
      return unsupported(str_cat(f.path(), ": \"layer_types\" has \"", type,
                                 "\"; mx8 runs full_attention and sliding_attention"));
    }
  }
  return {};
}

Result<void> read_experts(const Fields& f, HfConfig& c) {
  MX8_RETURN_IF_ERROR(f.integer("num_experts", 0, kMaxExperts, c.num_experts));
  MX8_RETURN_IF_ERROR(f.integer("num_local_experts", 0, kMaxExperts, c.num_experts));
  if (c.num_experts == 0) return {};
  MX8_RETURN_IF_ERROR(
      f.required_integer("num_experts_per_tok", 1, c.num_experts, c.num_experts_per_tok));
  // Mixtral's experts have the plain name, and its router always renormalises.
  if (c.model_type == "mixtral") {
    c.moe_intermediate_size = c.intermediate_size;
    c.norm_topk_prob = true;
    return {};
  }
  MX8_RETURN_IF_ERROR(
      f.required_integer("moe_intermediate_size", 1, kMaxIntermediate, c.moe_intermediate_size));
  MX8_RETURN_IF_ERROR(f.integer("shared_expert_intermediate_size", 0, kMaxIntermediate,
                                c.shared_expert_intermediate_size));
  MX8_RETURN_IF_ERROR(f.boolean("norm_topk_prob", c.norm_topk_prob));
  MX8_RETURN_IF_ERROR(f.integer("decoder_sparse_step", 1, kMaxLayers, c.decoder_sparse_step));
  return f.integers("mlp_only_layers", 0, c.num_hidden_layers - 1, c.mlp_only_layers);
}

// Token ids: a number or a list. Some configs write -1 for none.
Result<void> read_tokens(const Fields& f, std::string_view key, int64_t limit,
                         std::vector<int64_t>& out) {
  MX8_RETURN_IF_ERROR(f.integers(key, -1, limit, out));
  out.erase(std::remove(out.begin(), out.end(), -1), out.end());
  return {};
}

Result<void> read_all_tokens(const Fields& f, HfConfig& c) {
  MX8_RETURN_IF_ERROR(read_tokens(f, "bos_token_id", c.vocab_size - 1, c.bos_token_ids));
  MX8_RETURN_IF_ERROR(read_tokens(f, "eos_token_id", c.vocab_size - 1, c.eos_token_ids));
  // Fine-tunes of Llama 2 pad with an id one past the vocabulary; it is never fed to the model.
  return read_tokens(f, "pad_token_id", kMaxVocab, c.pad_token_ids);
}

Result<void> read_generation(const Fields& f, HfConfig& c) {
  MX8_RETURN_IF_ERROR(read_all_tokens(f, c));
  GenerationDefaults& g = c.generation;
  MX8_RETURN_IF_ERROR(f.boolean("do_sample", g.do_sample));
  MX8_RETURN_IF_ERROR(f.number("temperature", 0, 1000, g.temperature));
  MX8_RETURN_IF_ERROR(f.integer("top_k", 0, kMaxVocab, g.top_k));
  MX8_RETURN_IF_ERROR(f.number("top_p", 0, 1, g.top_p));
  MX8_RETURN_IF_ERROR(f.number("min_p", 0, 1, g.min_p));
  MX8_RETURN_IF_ERROR(f.number("repetition_penalty", 1e-3, 1000, g.repetition_penalty));
  return f.integer("max_new_tokens", 1, kMaxPositions, g.max_new_tokens);
}

void read_quantization(const Fields& f, HfConfig& c) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (const Json* value = f.find(key)) {
      c.quantization_config = value->dump();
      return;
    }
  }
}

Result<Json> parse_object(std::string_view text, const std::string& path) {
  MX8_TRY(Json root, json::parse(text, path));
  if (!root.is_object()) return corrupt(str_cat(path, ": it must hold a JSON object"));
  return root;
}

}  // namespace

bool HfConfig::layer_is_moe(int64_t layer) const {
  if (num_experts == 0 || (layer + 1) % decoder_sparse_step != 0) return false;
  return std::find(mlp_only_layers.begin(), mlp_only_layers.end(), layer) == mlp_only_layers.end();
}

int64_t HfConfig::layer_window(int64_t layer) const {
  if (!layer_types.empty()) {
    return layer_types[static_cast<size_t>(layer)] == "sliding_attention" ? sliding_window : 0;
  }
  if (!std::string_view(model_type).starts_with("qwen")) return sliding_window;
  // The Qwen families have a switch, off by default, and keep the first layers full.
  if (!use_sliding_window.value_or(false)) return 0;
  return layer >= max_window_layers.value_or(28) ? sliding_window : 0;
}

Result<HfConfig> parse_hf_config(std::string_view text, const std::string& path,
                                 std::string_view generation_text,
                                 const std::string& generation_path,
                                 std::span<const std::string> known) {
  MX8_TRY(const Json root, parse_object(text, path));
  const Fields f(root, path);
  HfConfig c;
  c.path = path;
  MX8_RETURN_IF_ERROR(read_architecture(f, known, c));
  const FamilyDefaults& family = defaults_of(c.model_type);
  MX8_RETURN_IF_ERROR(read_sizes(f, family, c));
  MX8_RETURN_IF_ERROR(read_switches(f, c));
  c.rope_theta = family.rope_theta;
  MX8_RETURN_IF_ERROR(read_rope(f, c));
  MX8_RETURN_IF_ERROR(read_windows(f, family, c));
  MX8_RETURN_IF_ERROR(read_experts(f, c));
  MX8_RETURN_IF_ERROR(read_all_tokens(f, c));
  read_quantization(f, c);
  for (const std::string& key : f.unread()) c.other_fields.emplace_back(key, root.at(key).dump());
  if (!generation_text.empty()) {
    MX8_TRY(const Json generation, parse_object(generation_text, generation_path));
    MX8_RETURN_IF_ERROR(read_generation(Fields(generation, generation_path), c));
  }
  return c;
}

Result<HfConfig> read_hf_config(const std::string& folder, std::span<const std::string> known) {
  const std::string path = folder + "/config.json";
  if (!file_exists(folder)) {
    return not_found(str_cat("the model folder ", folder, " does not exist"));
  }
  if (!file_exists(path)) {
    return not_found(
        str_cat("no config.json in ", folder, "; a Hugging Face model folder is expected"));
  }
  MX8_TRY(const std::string text, read_text_file(path, kMaxConfigBytes));
  const std::string generation_path = folder + "/generation_config.json";
  std::string generation;
  if (file_exists(generation_path)) {
    MX8_TRY(generation, read_text_file(generation_path, kMaxConfigBytes));
  }
  return parse_hf_config(text, path, generation, generation_path, known);
}

}  // namespace mx8
