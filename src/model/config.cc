#include "model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/strings.h"

namespace mx8 {
namespace {

Error refuse(const HfConfig& hf, const std::string& what) {
  return unsupported(str_cat(hf.path, ": ", what));
}

// Fields that say nothing about the numbers of a forward pass: training, defaults of generation,
// bookkeeping of libraries.
constexpr auto kHarmlessFields = std::to_array<std::string_view>({
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "_num_labels",
    "attention_dropout",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "chunk_size_feed_forward",
    "decoder_start_token_id",
    "diversity_penalty",
    "early_stopping",
    "embd_pdrop",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "initializer_range",
    "is_decoder",
    "is_llama_config",
    "label2id",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "output_scores",
    "prefix",
    "problem_type",
    "remove_invalid_values",
    "resid_pdrop",
    "return_dict",
    "return_dict_in_generate",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "tf_legacy_loss",
    "tokenizer_class",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
    "unsloth_fixed",
    "unsloth_version",
});

// Fields that change what a model computes in some family, with the values at which they don't
// change anything here. null always is such a value.
struct MeaningfulField {
  std::string_view name;
  std::string_view neutral;   // JSON text, or ""
  std::string_view neutral2;  // another spelling
};
constexpr auto kMeaningfulFields = std::to_array<MeaningfulField>({
    {"add_cross_attention", "false", ""},
    {"alibi", "false", ""},
    {"attention_chunk_size", "", ""},
    {"attention_multiplier", "", ""},
    {"attn_logit_softcapping", "", ""},
    {"attn_temperature_tuning", "false", ""},
    {"clip_qkv", "", ""},
    {"cross_attention_layers", "[]", ""},
    {"dim_model_base", "", ""},
    {"embedding_multiplier", "1", "1.0"},
    {"final_logit_softcapping", "", ""},
    {"first_k_dense_replace", "0", ""},
    {"is_encoder_decoder", "false", ""},
    {"kv_lora_rank", "", ""},
    {"logit_scale", "1", "1.0"},
    {"logits_scaling", "1", "1.0"},
    {"moe_layer_freq", "1", ""},
    {"n_group", "1", ""},
    {"n_shared_experts", "0", ""},
    {"no_rope_layer_interval", "0", ""},
    {"no_rope_layers", "[]", ""},
    {"num_nextn_predict_layers", "0", ""},
    {"parallel_attn", "false", ""},
    {"pretraining_tp", "1", ""},
    {"pruned_heads", "{}", ""},
    {"q_lora_rank", "", ""},
    {"qk_layernorm", "false", ""},
    {"qk_norm", "false", ""},
    {"query_pre_attn_scalar", "", ""},
    {"residual_multiplier", "1", "1.0"},
    {"rope_interleave", "false", ""},
    {"rope_interleaved", "false", ""},
    {"routed_scaling_factor", "1", "1.0"},
    {"scale_depth", "", ""},
    {"scale_emb", "1", "1.0"},
    {"scoring_func", "\"softmax\"", ""},
    {"tie_encoder_decoder", "false", ""},
    {"topk_group", "1", ""},
    {"topk_method", "\"greedy\"", ""},
    {"use_parallel_residual", "false", ""},
    {"use_qk_norm", "false", ""},
});

Result<void> check_other_fields(const HfConfig& hf, std::vector<std::string>& notes) {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : hf.other_fields) {
    if (value == "null") continue;
    if (std::find(kHarmlessFields.begin(), kHarmlessFields.end(), name) != kHarmlessFields.end()) {
      continue;
    }
    const auto field = std::find_if(kMeaningfulFields.begin(), kMeaningfulFields.end(),
                                    [&](const MeaningfulField& f) { return f.name == name; });
    if (field == kMeaningfulFields.end()) {
      unknown.push_back(name);
    } else if (value != field->neutral && value != field->neutral2) {
      return refuse(hf, str_cat(name, " is ", value.substr(0, 60), "; mx8 runs ", hf.architecture,
                                field->neutral.empty() ? std::string(" only without it")
                                                       : str_cat(" only with ", field->neutral)));
    }
  }
  if (!unknown.empty()) {
    notes.push_back(str_cat(hf.path, ": fields without a meaning to mx8: ", join(unknown, ", ")));
  }
  return {};
}

// An optional switch that this architecture doesn't read must not be on.
Result<void> must_be_off(const HfConfig& hf, std::string_view name, const std::optional<bool>& on) {
  if (!on.value_or(false)) return {};
  return refuse(hf, str_cat(name, " is true, which ", hf.architecture, " has no use for"));
}

Result<void> read_biases(const HfConfig& hf, const FamilyRules& rules, ModelConfig& out) {
  using AttentionBias = FamilyRules::AttentionBias;
  const AttentionBias kind = rules.attention_bias;
  switch (kind) {
    case AttentionBias::kNone:
      break;
    case AttentionBias::kQkv:
      out.qkv_bias = true;
      break;
    case AttentionBias::kQkvByConfig:
      out.qkv_bias = hf.qkv_bias.value_or(true);
      break;
    case AttentionBias::kQkvoByConfig:
      out.qkv_bias = out.o_bias = hf.attention_bias.value_or(false);
      break;
  }
  if (kind == AttentionBias::kNone || kind == AttentionBias::kQkvByConfig) {
    MX8_RETURN_IF_ERROR(must_be_off(hf, "attention_bias", hf.attention_bias));
  }
  if (kind == AttentionBias::kNone || kind == AttentionBias::kQkvoByConfig) {
    MX8_RETURN_IF_ERROR(must_be_off(hf, "qkv_bias", hf.qkv_bias));
  }
  if (kind == AttentionBias::kQkv &&
      !(hf.attention_bias.value_or(true) && hf.qkv_bias.value_or(true))) {
    return refuse(hf, str_cat("attention_bias (or qkv_bias) is false, but ", hf.architecture,
                              " always has biases on q, k and v"));
  }
  if (rules.mlp_bias) {
    out.mlp_bias = hf.mlp_bias.value_or(false);
    return {};
  }
  return must_be_off(hf, "mlp_bias", hf.mlp_bias);
}

Result<void> read_windows(const HfConfig& hf, const FamilyRules& rules, ModelConfig& out) {
  const bool on = hf.sliding_window > 0 && hf.use_sliding_window.value_or(!rules.window_switch);
  if (on && !rules.sliding_window) {
    return refuse(hf, str_cat("sliding_window is ", hf.sliding_window,
                              ", which mx8 does not run for ", hf.architecture));
  }
  if (rules.sliding_window && !rules.window_switch && hf.sliding_window > 0 && !on) {
    return refuse(hf, str_cat("use_sliding_window is false, which ", hf.architecture,
                              " has no use for: set sliding_window to null to switch it off"));
  }
  for (int64_t i = 0; i < hf.num_hidden_layers; ++i) {
    const int64_t window = on ? hf.layer_window(i) : 0;
    out.windows.push_back(static_cast<int>(std::min(window, out.shape.max_positions)));
    if (hf.layer_types.empty()) continue;
    const std::string& type = hf.layer_types[static_cast<size_t>(i)];
    const bool sliding = type == "sliding_attention";
    const bool mixing = rules.sliding_window && rules.window_switch;
    if (sliding == on || (mixing && !sliding)) continue;
    return refuse(
        hf, str_cat("layer_types[", i, "] is \"", type, "\", but sliding_window and ",
                    "use_sliding_window make ", on ? "every layer slide" : "no layer slide", " in ",
                    hf.architecture));
  }
  return {};
}

Result<void> read_experts(const HfConfig& hf, const FamilyRules& rules, ModelConfig& out) {
  for (int64_t i = 0; i < hf.num_hidden_layers; ++i) {
    out.moe_layers.push_back(rules.experts && hf.layer_is_moe(i));
  }
  if (!rules.experts) {
    if (hf.num_experts == 0) return {};
    return refuse(hf, str_cat("num_experts is ", hf.num_experts, ", but ", hf.architecture,
                              " is a dense model"));
  }
  if (hf.num_experts == 0) {
    return refuse(hf,
                  str_cat("num_experts is 0, but ", hf.architecture, " is a mixture of experts"));
  }
  if (hf.shared_expert_intermediate_size > 0 && !rules.shared_expert) {
    return refuse(hf,
                  str_cat("shared_expert_intermediate_size is ", hf.shared_expert_intermediate_size,
                          ", but ", hf.architecture, " has no shared expert"));
  }
  if (rules.shared_expert && hf.shared_expert_intermediate_size <= 0) {
    return refuse(hf,
                  str_cat("shared_expert_intermediate_size is ", hf.shared_expert_intermediate_size,
                          ", but ", hf.architecture, " has a shared expert"));
  }
  if (hf.num_experts_per_tok < 1 || hf.num_experts_per_tok > hf.num_experts) {
    return refuse(hf, str_cat("num_experts_per_tok is ", hf.num_experts_per_tok,
                              ", must be from 1 to num_experts, ", hf.num_experts));
  }
  out.experts = static_cast<int>(hf.num_experts);
  out.experts_per_token = static_cast<int>(hf.num_experts_per_tok);
  out.renormalise = rules.always_renormalise || hf.norm_topk_prob;
  out.expert_intermediate = hf.moe_intermediate_size;
  out.shared_intermediate = hf.shared_expert_intermediate_size;
  return {};
}

Result<void> read_shape(const HfConfig& hf, int64_t max_context, ModelConfig& out) {
  const int64_t limit = rope_max_context(hf);
  if (max_context > limit) {
    return refuse(hf, str_cat("a context of ", max_context,
                              " tokens was asked for, but the model's ", "rotary embedding (",
                              rope_type_name(hf.rope_scaling.type), ") reaches ", limit));
  }
  if (hf.num_attention_heads % hf.num_key_value_heads != 0) {
    return refuse(hf, str_cat("num_attention_heads ", hf.num_attention_heads,
                              " is no multiple of num_key_value_heads ", hf.num_key_value_heads));
  }
  out.shape = {.vocab = hf.vocab_size,
               .hidden = hf.hidden_size,
               .layers = static_cast<int>(hf.num_hidden_layers),
               .heads = static_cast<int>(hf.num_attention_heads),
               .kv_heads = static_cast<int>(hf.num_key_value_heads),
               .head_dim = static_cast<int>(hf.head_dim),
               .max_positions = max_context > 0 ? max_context : hf.max_position_embeddings};
  out.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(hf.head_dim)));
  out.norm_eps = static_cast<float>(hf.rms_norm_eps);
  out.intermediate = hf.intermediate_size;
  return {};
}

}  // namespace

Result<ModelConfig> read_model_config(const HfConfig& hf, const FamilyRules& rules,
                                      int64_t max_context) {
  ModelConfig out;
  out.architecture = hf.architecture;
  if (hf.hidden_act != "silu" && hf.hidden_act != "swish") {
    return refuse(hf, str_cat("hidden_act is \"", hf.hidden_act, "\"; mx8 runs ", hf.architecture,
                              " with \"silu\""));
  }
  if (hf.partial_rotary_factor != 1) {
    return refuse(hf, str_cat("partial_rotary_factor is ", hf.partial_rotary_factor, "; ",
                              hf.architecture, " rotates whole heads (1)"));
  }
  MX8_RETURN_IF_ERROR(check_other_fields(hf, out.notes));
  MX8_RETURN_IF_ERROR(read_shape(hf, max_context, out));
  MX8_RETURN_IF_ERROR(read_biases(hf, rules, out));
  MX8_RETURN_IF_ERROR(read_windows(hf, rules, out));
  MX8_RETURN_IF_ERROR(read_experts(hf, rules, out));
  MX8_TRY(out.rope, rope_parameters(hf, out.shape.max_positions));
  if (hf.rope_scaling.type == RopeType::kDynamic) {
    out.notes.push_back(str_cat("rope_scaling dynamic: contexts end at max_position_embeddings, ",
                                hf.max_position_embeddings, ", where nothing is scaled yet"));
  }
  out.qk_norm = rules.qk_norm;
  out.tied_head = hf.tie_word_embeddings;
  return out;
}

}  // namespace mx8
