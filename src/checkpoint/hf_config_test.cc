#include "checkpoint/hf_config.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "checkpoint/checkpoint_test_util.h"

namespace mx8 {
namespace {

using test::expect_contains;

const std::vector<std::string> kKnown = {
    "LlamaForCausalLM",    "Qwen2ForCausalLM",    "Qwen3ForCausalLM",  "MixtralForCausalLM",
    "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM", "MistralForCausalLM"};

Result<HfConfig> parse(const std::string& text, const std::string& generation = "") {
  return parse_hf_config(text, "m/config.json", generation, "m/generation_config.json", kKnown);
}

// SmolLM2-135M with fields replaced or added; later keys must not repeat earlier ones, so `drop`
// removes one first.
struct Field {
  std::string key;
  std::string value;
};

std::vector<Field> smollm2() {
  return {{"architectures", R"(["LlamaForCausalLM"])"},
          {"model_type", R"("llama")"},
          {"hidden_size", "576"},
          {"num_hidden_layers", "30"},
          {"num_attention_heads", "9"},
          {"num_key_value_heads", "3"},
          {"intermediate_size", "1536"},
          {"vocab_size", "49152"},
          {"max_position_embeddings", "8192"},
          {"rms_norm_eps", "1e-05"},
          {"rope_theta", "100000"},
          {"hidden_act", R"("silu")"},
          {"tie_word_embeddings", "true"},
          {"attention_bias", "false"},
          {"bos_token_id", "1"},
          {"eos_token_id", "2"},
          {"rope_scaling", "null"},
          {"torch_dtype", R"("bfloat16")"}};
}

std::string text_of(const std::vector<Field>& fields) {
  std::string text = "{";
  for (size_t i = 0; i < fields.size(); ++i) {
    text += str_cat(i > 0 ? "," : "", '"', fields[i].key, "\":", fields[i].value);
  }
  return text + "}";
}

// An empty value drops the field.
std::string with(const std::vector<Field>& changes) {
  std::vector<Field> fields = smollm2();
  for (const Field& change : changes) {
    std::erase_if(fields, [&](const Field& f) { return f.key == change.key; });
    if (!change.value.empty()) fields.push_back(change);
  }
  return text_of(fields);
}

TEST(HfConfig, ReadsSmolLm2) {
  const auto c = parse(with({}));
  ASSERT_TRUE(c.ok()) << c.error().message;
  EXPECT_EQ(c->architecture, "LlamaForCausalLM");
  EXPECT_EQ(c->model_type, "llama");
  EXPECT_EQ(c->hidden_size, 576);
  EXPECT_EQ(c->num_hidden_layers, 30);
  EXPECT_EQ(c->num_key_value_heads, 3);
  EXPECT_EQ(c->head_dim, 64);
  EXPECT_EQ(c->vocab_size, 49152);
  EXPECT_EQ(c->rms_norm_eps, 1e-5);
  EXPECT_EQ(c->rope_theta, 100000);
  EXPECT_EQ(c->rope_scaling.type, RopeType::kDefault);
  EXPECT_TRUE(c->tie_word_embeddings);
  EXPECT_EQ(c->attention_bias, std::optional<bool>(false));
  EXPECT_EQ(c->mlp_bias, std::nullopt);
  EXPECT_EQ(c->eos_token_ids, std::vector<int64_t>{2});
  EXPECT_EQ(c->dtype, "bfloat16");
  EXPECT_EQ(c->quantization_config, "");
  EXPECT_EQ(c->num_experts, 0);
  EXPECT_FALSE(c->layer_is_moe(0));
  EXPECT_EQ(c->layer_window(0), 0);
}

TEST(HfConfig, KeepsWhatItDoesNotRead) {
  const auto c = parse(with({{"logit_scale", "0.5"}, {"attention_dropout", "0.0"}}));
  ASSERT_TRUE(c.ok()) << c.error().message;
  const std::vector<std::pair<std::string, std::string>> expected = {{"attention_dropout", "0.0"},
                                                                     {"logit_scale", "0.5"}};
  EXPECT_EQ(c->other_fields, expected);
}

TEST(HfConfig, GenerationConfigGoesFirst) {
  const auto c = parse(with({}), R"({"eos_token_id":[7,9],"temperature":0.6,"top_p":0.95,"top_k":20,
      "do_sample":true,"repetition_penalty":1.05,"pad_token_id":-1,"transformers_version":"4"})");
  ASSERT_TRUE(c.ok()) << c.error().message;
  EXPECT_EQ(c->eos_token_ids, (std::vector<int64_t>{7, 9}));
  EXPECT_EQ(c->bos_token_ids, std::vector<int64_t>{1});  // config.json's
  EXPECT_TRUE(c->pad_token_ids.empty());
  EXPECT_EQ(c->generation.temperature, 0.6);
  EXPECT_EQ(c->generation.top_k, 20);
  EXPECT_EQ(c->generation.do_sample, true);
  EXPECT_EQ(c->generation.min_p, std::nullopt);
}

TEST(HfConfig, RopeTypes) {
  struct Row {
    std::string scaling;
    RopeType type;
    double factor;
    int64_t original;
  };
  const Row rows[] = {
      {R"({"type":"linear","factor":2.0})", RopeType::kLinear, 2, 8192},
      {R"({"rope_type":"dynamic","factor":4})", RopeType::kDynamic, 4, 8192},
      {R"({"rope_type":"llama3","factor":32.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
          "original_max_position_embeddings":4096})",
       RopeType::kLlama3, 32, 4096},
      {R"({"type":"yarn","factor":4.0,"original_max_position_embeddings":2048})", RopeType::kYarn,
       4, 2048},
      {R"({"rope_type":"default"})", RopeType::kDefault, 1, 8192},
  };
  for (const Row& row : rows) {
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      SCOPED_TRACE(row.scaling);
      const auto c = parse(with({{"rope_scaling", ""}, {key, row.scaling}}));
      ASSERT_TRUE(c.ok()) << c.error().message;
      EXPECT_EQ(c->rope_scaling.type, row.type);
      EXPECT_EQ(c->rope_scaling.factor, row.factor);
      EXPECT_EQ(c->rope_scaling.original_max_position_embeddings, row.original);
      EXPECT_EQ(c->rope_theta, 100000);
    }
  }
}

TEST(HfConfig, LongRope) {
  std::string factors = "[";
  for (int i = 0; i < 32; ++i) factors += str_cat(i > 0 ? "," : "", 1.0 + i);
  factors += "]";
  const std::string scaling =
      str_cat(R"({"type":"su","short_factor":)", factors, ",\"long_factor\":", factors, "}");
  const auto c =
      parse(with({{"rope_scaling", scaling}, {"original_max_position_embeddings", "4096"}}));
  ASSERT_TRUE(c.ok()) << c.error().message;
  EXPECT_EQ(c->rope_scaling.type, RopeType::kLongRope);
  EXPECT_EQ(c->rope_scaling.factor, 2);
  EXPECT_EQ(c->rope_scaling.long_factor.size(), 32u);
}

TEST(HfConfig, Transformers5RopeParameters) {
  const auto c = parse(with({{"rope_theta", ""},
                             {"rope_scaling", ""},
                             {"torch_dtype", ""},
                             {"dtype", R"("float16")"},
                             {"rope_parameters", R"({"rope_type":"default","rope_theta":5e5})"}}));
  ASSERT_TRUE(c.ok()) << c.error().message;
  EXPECT_EQ(c->rope_theta, 5e5);
  EXPECT_EQ(c->dtype, "float16");
  const std::string one = R"({"rope_type":"default","rope_theta":7000})";
  const auto nested = parse(with(
      {{"rope_theta", ""},
       {"rope_parameters", "{\"full_attention\":" + one + ",\"sliding_attention\":" + one + "}"}}));
  ASSERT_TRUE(nested.ok()) << nested.error().message;
  EXPECT_EQ(nested->rope_theta, 7000);
}

TEST(HfConfig, Windows) {
  const auto mistral = [](const std::string& window) {
    return parse(with({{"architectures", R"(["MistralForCausalLM"])"},
                       {"model_type", R"("mistral")"},
                       {"sliding_window", window}}));
  };
  EXPECT_EQ(mistral("1024")->layer_window(3), 1024);
  EXPECT_EQ(mistral("null")->layer_window(3), 0);
  EXPECT_EQ(mistral("")->layer_window(3), 4096);  // the family's default
  const auto qwen = [](const std::string& use) {
    return parse(with({{"architectures", R"(["Qwen2ForCausalLM"])"},
                       {"model_type", R"("qwen2")"},
                       {"sliding_window", "512"},
                       {"use_sliding_window", use},
                       {"max_window_layers", "10"}}));
  };
  EXPECT_EQ(qwen("false")->layer_window(29), 0);
  EXPECT_EQ(qwen("true")->layer_window(9), 0);
  EXPECT_EQ(qwen("true")->layer_window(10), 512);
  const auto types = parse(with({{"num_hidden_layers", "2"},
                                 {"sliding_window", "64"},
                                 {"layer_types", R"(["full_attention","sliding_attention"])"}}));
  ASSERT_TRUE(types.ok()) << types.error().message;
  EXPECT_EQ(types->layer_window(0), 0);
  EXPECT_EQ(types->layer_window(1), 64);
}

TEST(HfConfig, Experts) {
  const auto qwen = parse(with({{"architectures", R"(["Qwen2MoeForCausalLM"])"},
                                {"model_type", R"("qwen2_moe")"},
                                {"num_experts", "8"},
                                {"num_experts_per_tok", "2"},
                                {"moe_intermediate_size", "128"},
                                {"shared_expert_intermediate_size", "256"},
                                {"norm_topk_prob", "true"},
                                {"decoder_sparse_step", "2"},
                                {"mlp_only_layers", "[3]"}}));
  ASSERT_TRUE(qwen.ok()) << qwen.error().message;
  EXPECT_EQ(qwen->moe_intermediate_size, 128);
  EXPECT_EQ(qwen->shared_expert_intermediate_size, 256);
  EXPECT_TRUE(qwen->norm_topk_prob);
  EXPECT_FALSE(qwen->layer_is_moe(0));
  EXPECT_TRUE(qwen->layer_is_moe(1));
  EXPECT_FALSE(qwen->layer_is_moe(3));
  const auto mixtral = parse(with({{"architectures", R"(["MixtralForCausalLM"])"},
                                   {"model_type", R"("mixtral")"},
                                   {"num_local_experts", "8"},
                                   {"num_experts_per_tok", "2"},
                                   {"rope_theta", ""}}));
  ASSERT_TRUE(mixtral.ok()) << mixtral.error().message;
  EXPECT_EQ(mixtral->num_experts, 8);
  EXPECT_EQ(mixtral->moe_intermediate_size, 1536);
  EXPECT_TRUE(mixtral->norm_topk_prob);
  EXPECT_EQ(mixtral->rope_theta, 1e6);
}

TEST(HfConfig, Qwen3HasItsOwnHeadDim) {
  const std::vector<Field> qwen3 = {{"architectures", R"(["Qwen3ForCausalLM"])"},
                                    {"model_type", R"("qwen3")"}};
  EXPECT_EQ(parse(with(qwen3))->head_dim, 128);
  auto given = qwen3;
  given.push_back({"head_dim", "96"});
  EXPECT_EQ(parse(with(given))->head_dim, 96);
}

struct Impossible {
  std::vector<Field> changes;
  std::vector<std::string> named;
};

TEST(HfConfig, ImpossibleValuesAreNamed) {
  const std::vector<Impossible> rows = {
      {{{"num_attention_heads", "0"}}, {"\"num_attention_heads\" is 0", "from 1"}},
      {{{"num_attention_heads", "7"}, {"num_key_value_heads", "7"}},
       {"\"num_attention_heads\" is 7", "hidden_size, 576"}},
      {{{"num_key_value_heads", "2"}}, {"\"num_key_value_heads\" is 2", "num_attention_heads, 9"}},
      {{{"hidden_size", "100000000000"}}, {"\"hidden_size\" is 100000000000"}},
      {{{"hidden_size", "-576"}}, {"\"hidden_size\" is -576"}},
      {{{"hidden_size", "18446744073709551615"}}, {"\"hidden_size\" is 18446744073709551615"}},
      {{{"hidden_size", "576.5"}}, {"\"hidden_size\" is 576.5", "whole number"}},
      {{{"hidden_size", "\"576\""}}, {"\"hidden_size\" is \"576\"", "whole number"}},
      {{{"hidden_size", ""}}, {"\"hidden_size\" is missing"}},
      {{{"hidden_size", "null"}}, {"\"hidden_size\" is missing"}},
      {{{"num_hidden_layers", ""}}, {"\"num_hidden_layers\" is missing"}},
      {{{"num_hidden_layers", "0"}}, {"\"num_hidden_layers\" is 0"}},
      {{{"intermediate_size", "[]"}}, {"\"intermediate_size\" is []"}},
      {{{"vocab_size", "0"}}, {"\"vocab_size\" is 0"}},
      {{{"head_dim", "63"}}, {"head_dim is 63", "even"}},
      {{{"rms_norm_eps", "\"small\""}}, {"\"rms_norm_eps\" is \"small\""}},
      {{{"rms_norm_eps", "-1"}}, {"\"rms_norm_eps\" is -1"}},
      {{{"rope_theta", "0"}}, {"\"rope_theta\" is 0"}},
      {{{"tie_word_embeddings", "\"yes\""}}, {"\"tie_word_embeddings\"", "true or false"}},
      {{{"hidden_act", "3"}}, {"\"hidden_act\" is 3", "a string"}},
      {{{"eos_token_id", "49152"}}, {"\"eos_token_id\" is 49152"}},
      {{{"eos_token_id", "[2,\"x\"]"}}, {"\"eos_token_id\""}},
      {{{"rope_scaling", R"({"type":"spiral","factor":2})"}},
       {"rope_scaling.rope_type", "spiral", "llama3"}},
      {{{"rope_scaling", R"({"type":"linear"})"}}, {"\"rope_scaling.factor\" is missing"}},
      {{{"rope_scaling", R"({"type":"linear","factor":0.5})"}}, {"\"rope_scaling.factor\" is 0.5"}},
      {{{"rope_scaling", R"({"rope_type":"llama3","factor":8})"}},
       {"\"rope_scaling.low_freq_factor\" is missing"}},
      {{{"rope_scaling", R"({"type":"longrope","short_factor":[1],"long_factor":[1]})"}},
       {"\"rope_scaling.short_factor\"", "head_dim / 2 = 32"}},
      {{{"rope_scaling", R"({"type":"default","mrope_section":[16,24,24]})"}},
       {"\"rope_scaling.mrope_section\" is [16,24,24]"}},
      {{{"rope_scaling", "[]"}}, {"\"rope_scaling\" is []", "an object"}},
      {{{"rope_parameters", R"({"a":{"rope_theta":1e4},"b":{"rope_theta":1e5}})"}},
       {"rope_parameters", "differ"}},
      {{{"rope_parameters", R"({"rope_type":"yarn","factor":2})"},
        {"rope_scaling", R"({"rope_type":"linear","factor":2})"}},
       {"rope_parameters", "yarn", "linear"}},
      {{{"layer_types", R"(["full_attention"])"}}, {"\"layer_types\" has 1", "30"}},
      {{{"num_hidden_layers", "1"}, {"layer_types", R"(["linear_attention"])"}},
       {"layer_types", "linear_attention"}},
      {{{"num_experts", "8"}}, {"\"num_experts_per_tok\" is missing"}},
      {{{"num_experts", "8"}, {"num_experts_per_tok", "9"}}, {"\"num_experts_per_tok\" is 9"}},
      {{{"num_experts", "8"}, {"num_experts_per_tok", "2"}},
       {"\"moe_intermediate_size\" is missing"}},
      {{{"architectures", R"(["GemmaForCausalLM"])"}},
       {"GemmaForCausalLM", "LlamaForCausalLM", "Qwen3MoeForCausalLM"}},
      // A config of another kind may lack everything else; the architecture still comes first.
      {{{"architectures", R"(["LlavaForConditionalGeneration"])"}, {"hidden_size", ""}},
       {"LlavaForConditionalGeneration"}},
      {{{"architectures", ""}}, {"\"architectures\" is missing", "LlamaForCausalLM"}},
      {{{"architectures", "[]"}}, {"\"architectures\""}},
      {{{"architectures", "\"LlamaForCausalLM\""}}, {"\"architectures\"", "a list"}},
  };
  for (const Impossible& row : rows) {
    SCOPED_TRACE(row.changes.front().key + " " + row.changes.front().value);
    const auto c = parse(with(row.changes));
    ASSERT_FALSE(c.ok());
    expect_contains(c.error().message, "m/config.json");
    for (const std::string& part : row.named) expect_contains(c.error().message, part);
    EXPECT_EQ(c.error().message.find('\n'), std::string::npos);
  }
  EXPECT_GE(rows.size(), 40u);
}

TEST(HfConfig, BrokenJsonIsNamed) {
  for (const char* text : {"", "{", "[]", "null", "{\"a\":1,}", "{\"a\":NaN}", "\xff"}) {
    SCOPED_TRACE(text);
    const auto c = parse(text);
    ASSERT_FALSE(c.ok());
    expect_contains(c.error().message, "m/config.json");
  }
  const auto twice = parse(R"({"hidden_size":1,"hidden_size":2})");
  ASSERT_FALSE(twice.ok());
  expect_contains(twice.error().message, "\"hidden_size\" appears twice");
  const auto deep = parse("{\"a\":" + std::string(100000, '['));
  ASSERT_FALSE(deep.ok());
  expect_contains(deep.error().message, "nesting");
  const auto generation = parse(with({}), R"({"temperature":"hot"})");
  ASSERT_FALSE(generation.ok());
  expect_contains(generation.error().message, "m/generation_config.json: \"temperature\"");
}

TEST(HfConfig, ReadsAFolder) {
  const test::TempFolder folder;
  const auto missing = read_hf_config(folder.path(), kKnown);
  ASSERT_FALSE(missing.ok());
  expect_contains(missing.error().message, "no config.json");
  folder.write("config.json", with({{"quantization_config", R"({"quant_method":"x"})"}}));
  folder.write("generation_config.json", R"({"eos_token_id":5})");
  const auto c = read_hf_config(folder.path(), kKnown);
  ASSERT_TRUE(c.ok()) << c.error().message;
  EXPECT_EQ(c->eos_token_ids, std::vector<int64_t>{5});
  EXPECT_EQ(c->quantization_config, R"({"quant_method":"x"})");
}

}  // namespace
}  // namespace mx8
