// What a config may ask for: each field is read, or refused by name.
#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/dummy_source.h"
#include "model/families.h"
#include "model/raw_checkpoint.h"
#include "model/test_support.h"

namespace mx8::test {
namespace {

// Loads the config of a tiny model with some fields changed, and random weights.
Result<std::unique_ptr<Model>> load_changed(
    const std::string& name, const std::vector<std::pair<std::string, std::string>>& fields,
    int64_t max_context = 0) {
  RawCheckpoint checkpoint = read_checkpoint(data_folder("tiny/" + name));
  for (const auto& [field, value] : fields) set_field(checkpoint, field, value);
  MX8_TRY(const HfConfig config,
          parse_hf_config(checkpoint.config, "config.json", "", "", supported_architectures()));
  MX8_TRY(const QuantPlan plan,
          parse_quant_plan(config.quantization_config, "config.json", "", ""));
  Machine machine;
  DummySource source(/*seed=*/1);
  return load_model(source, config, plan,
                    {.caps = machine.caps, .max_context = max_context, .pool = &machine.pool});
}

struct Refusal {
  std::string model;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string named;  // must be in the message
};

const Refusal kRefusals[] = {
    {"llama", {{"hidden_act", R"("gelu")"}}, "hidden_act"},
    {"llama_gelu", {}, "gelu_pytorch_tanh"},
    {"qwen3", {{"hidden_act", R"("relu2")"}}, "relu2"},
    {"qwen3_moe", {{"hidden_act", R"("swigluoai")"}}, "swigluoai"},
    {"llama", {{"architectures", R"(["GPT2LMHeadModel"])"}}, "GPT2LMHeadModel"},
    {"llama", {{"architectures", R"(["LlamaForSequenceClassification"])"}}, "LlamaForSeq"},
    // Rotary embedding.
    {"llama", {{"rope_scaling", R"({"rope_type": "su", "factor": 2})"}}, "short_factor"},
    {"llama", {{"rope_scaling", R"({"rope_type": "mrope", "factor": 2})"}}, "mrope"},
    {"llama", {{"rope_scaling", R"({"rope_type": "proportional"})"}}, "proportional"},
    {"llama", {{"rope_scaling", R"({"rope_type": "linear", "factor": 0})"}}, "factor"},
    {"llama", {{"partial_rotary_factor", "0.5"}}, "partial_rotary_factor"},
    {"llama", {{"rope_theta", "1"}}, "rope_theta"},
    {"llama",
     {{"rope_scaling", R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4,
                           "high_freq_factor": 4, "original_max_position_embeddings": 64})"}},
     "low_freq_factor"},
    {"llama",
     {{"rope_scaling", R"({"rope_type": "longrope", "short_factor": [1], "long_factor": [1],
                           "original_max_position_embeddings": 64})"}},
     "short_factor"},
    // Windows.
    {"llama", {{"sliding_window", "16"}}, "sliding_window"},
    {"qwen2_moe", {{"use_sliding_window", "true"}, {"sliding_window", "16"}}, "sliding_window"},
    {"qwen3_moe", {{"use_sliding_window", "true"}, {"sliding_window", "16"}}, "sliding_window"},
    {"mistral", {{"sliding_window", "16"}, {"use_sliding_window", "false"}}, "use_sliding_window"},
    {"llama", {{"layer_types", R"(["full_attention", "sliding_attention"])"}}, "layer_types"},
    {"mistral_window",
     {{"layer_types", R"(["full_attention", "sliding_attention"])"}},
     "layer_types"},
    {"qwen2", {{"layer_types", R"(["full_attention", "sliding_attention"])"}}, "layer_types"},
    {"qwen3", {{"layer_types", R"(["full_attention", "chunked_attention"])"}}, "chunked_attention"},
    {"qwen3", {{"layer_types", R"(["full_attention"])"}}, "layer_types"},
    // Biases.
    {"mistral", {{"attention_bias", "true"}}, "attention_bias"},
    {"qwen2", {{"attention_bias", "false"}}, "attention_bias"},
    {"qwen2_moe", {{"attention_bias", "true"}}, "attention_bias"},
    {"qwen3", {{"mlp_bias", "true"}}, "mlp_bias"},
    {"llama", {{"qkv_bias", "true"}}, "qkv_bias"},
    // Experts.
    {"llama",
     {{"num_experts", "8"}, {"num_experts_per_tok", "2"}, {"moe_intermediate_size", "32"}},
     "num_experts"},
    {"qwen3_moe", {{"shared_expert_intermediate_size", "64"}}, "shared_expert_intermediate_size"},
    {"qwen2_moe", {{"shared_expert_intermediate_size", "0"}}, "shared_expert_intermediate_size"},
    {"qwen2_moe", {{"num_experts_per_tok", "99"}}, "num_experts_per_tok"},
    {"qwen2_moe", {{"num_experts", "0"}}, "num_experts"},
    // Fields of other families, and of these ones' past.
    {"llama", {{"pretraining_tp", "2"}}, "pretraining_tp"},
    {"llama", {{"rope_interleaved", "true"}}, "rope_interleaved"},
    {"llama", {{"attn_logit_softcapping", "50.0"}}, "attn_logit_softcapping"},
    {"llama", {{"final_logit_softcapping", "30.0"}}, "final_logit_softcapping"},
    {"llama", {{"embedding_multiplier", "12"}}, "embedding_multiplier"},
    {"llama", {{"residual_multiplier", "0.22"}}, "residual_multiplier"},
    {"llama", {{"logits_scaling", "16"}}, "logits_scaling"},
    {"llama", {{"no_rope_layers", "[1, 0]"}}, "no_rope_layers"},
    {"llama", {{"attention_chunk_size", "8192"}}, "attention_chunk_size"},
    {"qwen3", {{"use_qk_norm", "true"}}, "use_qk_norm"},
    {"qwen3_moe", {{"scoring_func", R"("sigmoid")"}}, "scoring_func"},
    {"qwen3_moe", {{"routed_scaling_factor", "2.5"}}, "routed_scaling_factor"},
    {"qwen3_moe", {{"n_shared_experts", "1"}}, "n_shared_experts"},
    {"mistral", {{"clip_qkv", "8"}}, "clip_qkv"},
};

TEST(Config, RefusesByName) {
  for (const Refusal& r : kRefusals) {
    const auto model = load_changed(r.model, r.fields);
    const std::string what = r.fields.empty() ? r.model : r.fields[0].first + r.fields[0].second;
    ASSERT_FALSE(model.ok()) << what;
    const std::string& message = model.error().message;
    EXPECT_NE(message.find(r.named), std::string::npos) << what << ": " << message;
    EXPECT_NE(message.find("config.json"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

struct Accepted {
  std::string model;
  std::vector<std::pair<std::string, std::string>> fields;
};

const Accepted kAccepted[] = {
    {"llama", {{"hidden_act", R"("swish")"}}},
    {"llama", {{"pretraining_tp", "1"}, {"rope_interleaved", "false"}, {"clip_qkv", "null"}}},
    {"llama", {{"logits_scaling", "1.0"}, {"routed_scaling_factor", "1"}}},
    {"llama", {{"sliding_window", "null"}, {"rope_scaling", "null"}}},
    {"llama", {{"sliding_window", "16"}, {"use_sliding_window", "false"}}},
    {"llama", {{"layer_types", R"(["full_attention", "full_attention"])"}}},
    {"llama", {{"mlp_bias", "true"}, {"attention_bias", "true"}}},
    {"mistral_window", {{"layer_types", R"(["sliding_attention", "sliding_attention"])"}}},
    {"qwen2_window", {{"layer_types", R"(["sliding_attention", "full_attention"])"}}},
    {"qwen2", {{"attention_bias", "true"}, {"sliding_window", "16"}}},
    {"qwen2_moe", {{"sliding_window", "16"}}},
    {"qwen2_moe", {{"qkv_bias", "false"}}},
    {"qwen3", {{"attention_bias", "true"}}},
    {"qwen3_moe", {{"mlp_only_layers", "[0, 1]"}}},
    {"mixtral", {{"sliding_window", "null"}, {"head_dim", "null"}}},
};

TEST(Config, AcceptsWhatChangesNothingOrIsRead) {
  for (const Accepted& a : kAccepted) {
    const auto model = load_changed(a.model, a.fields);
    EXPECT_TRUE(model.ok()) << a.model << " " << a.fields[0].first << ": " << model.error().message;
  }
}

TEST(Config, ListsFieldsWithoutAMeaning) {
  const auto model = load_changed("llama", {{"my_new_trick", "3"}, {"use_cache", "false"}});
  ASSERT_TRUE(model.ok()) << model.error().message;
  const std::vector<std::string> lines = model.value()->summary();
  const bool listed = std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("my_new_trick") != std::string::npos &&
           line.find("use_cache") == std::string::npos;
  });
  EXPECT_TRUE(listed);
}

TEST(Config, ContextIsLimitedByTheRotaryEmbedding) {
  const auto shorter = load_changed("llama", {}, /*max_context=*/100);
  ASSERT_TRUE(shorter.ok()) << shorter.error().message;
  EXPECT_EQ(shorter.value()->shape().max_positions, 100);
  const auto whole = load_changed("llama", {});
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole.value()->shape().max_positions, 512);
  EXPECT_FALSE(load_changed("llama", {}, 513).ok());
  EXPECT_FALSE(load_changed("llama_rope_dynamic", {}, 513).ok());
  const auto stretched = load_changed(
      "llama", {{"rope_scaling", R"({"rope_type": "linear", "factor": 4})"}}, /*max_context=*/2048);
  ASSERT_TRUE(stretched.ok()) << stretched.error().message;
  EXPECT_EQ(stretched.value()->shape().max_positions, 2048);
}

HfConfig longrope_config() {
  HfConfig hf;
  hf.path = "config.json";
  hf.head_dim = 8;
  hf.max_position_embeddings = 4096;
  hf.rope_theta = 10000;
  hf.rope_scaling.type = RopeType::kLongRope;
  hf.rope_scaling.factor = 4;
  hf.rope_scaling.original_max_position_embeddings = 1024;
  hf.rope_scaling.short_factor = {1, 1.25, 1.5, 2};
  hf.rope_scaling.long_factor = {2, 3, 5, 8};
  return hf;
}

// LongRoPE by its formula in FP64; the other types are held to Transformers by the goldens.
TEST(Rope, LongRopeTakesTheFactorsOfTheContext) {
  const HfConfig hf = longrope_config();
  for (const int64_t context : {1024, 1025}) {
    const auto rope = rope_parameters(hf, context);
    ASSERT_TRUE(rope.ok()) << rope.error().message;
    const std::vector<double>& factors =
        context > 1024 ? hf.rope_scaling.long_factor : hf.rope_scaling.short_factor;
    for (size_t i = 0; i < 4; ++i) {
      const double expected = 1 / (factors[i] * std::pow(10000.0, static_cast<double>(2 * i) / 8));
      EXPECT_NEAR(rope.value().inv_freq[i] / expected, 1, 1e-6) << context << " " << i;
    }
    const double magnitude = std::sqrt(1 + std::log(4.0) / std::log(1024.0));
    EXPECT_NEAR(rope.value().magnitude, magnitude, 1e-6);
  }
}

TEST(Rope, LongRopeTakesAGivenAttentionFactor) {
  HfConfig hf = longrope_config();
  hf.rope_scaling.attention_factor = 1.5;
  const auto rope = rope_parameters(hf, 4096);
  ASSERT_TRUE(rope.ok());
  EXPECT_EQ(rope.value().magnitude, 1.5f);
}

TEST(Registry, KnowsItsArchitectures) {
  const std::vector<std::string> expected = {
      "LlamaForCausalLM",    "MistralForCausalLM",  "Qwen2ForCausalLM",  "Qwen3ForCausalLM",
      "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM", "MixtralForCausalLM"};
  EXPECT_EQ(supported_architectures(), expected);
}

}  // namespace
}  // namespace mx8::test
