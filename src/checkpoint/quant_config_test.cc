#include "checkpoint/quant_config.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "checkpoint/checkpoint_test_util.h"

namespace mx8 {
namespace {

using test::expect_contains;

constexpr const char* kConfig = "m/config.json";
constexpr const char* kSide = "m/hf_quant_config.json";

Result<QuantPlan> parse(const std::string& inlined, const std::string& side = "",
                        const OnlineQuant& online = {}) {
  return parse_quant_plan(inlined, kConfig, side, kSide, online);
}

std::string error_of(const Result<QuantPlan>& plan) {
  EXPECT_FALSE(plan.ok());
  if (plan.ok()) return "";
  EXPECT_EQ(plan.error().message.find('\n'), std::string::npos) << plan.error().message;
  return plan.error().message;
}

// What module() says, as text: "plain", "w8a8", "w8a16", or the error.
std::string scheme(const QuantPlan& plan, std::string_view name,
                   ModuleKind kind = ModuleKind::kLinear) {
  const auto m = plan.module(name, kind);
  if (!m.ok()) return m.error().message;
  if (m->scheme.is_plain()) return "plain";
  EXPECT_TRUE(m->scheme.is_mxfp8());
  return m->scheme.activations == ActivationScheme::kNone ? "w8a16" : "w8a8";
}

std::string layer(int i, const std::string& rest) { return str_cat("model.layers.", i, ".", rest); }

const std::string kMx = R"({"num_bits":8,"type":"float","strategy":"group","group_size":32,)"
                        R"("symmetric":true,"dynamic":false,"scale_dtype":"torch.uint8"})";
const std::string kMxDynamic = R"({"num_bits":8,"type":"float","strategy":"group","group_size":32,)"
                               R"("symmetric":true,"dynamic":true,"scale_dtype":"uint8"})";

std::string group(const std::string& targets, const std::string& weights = kMx,
                  const std::string& activations = "null", const std::string& more = "") {
  return str_cat("{\"targets\":", targets, ",\"weights\":", weights,
                 ",\"input_activations\":", activations, more, "}");
}

std::string ct(const std::string& groups, const std::string& ignore = "[]",
               const std::string& more = R"(,"format":"mxfp8-quantized")") {
  return str_cat(R"({"quant_method":"compressed-tensors","config_groups":{)", groups,
                 "},\"ignore\":", ignore, more, "}");
}

std::string ct_linear(const std::string& ignore = "[]") {
  return ct("\"group_0\":" + group("[\"Linear\"]"), ignore);
}

TEST(QuantConfig, NoConfigIsPlain) {
  const auto plan = parse("");
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->quantised());
  EXPECT_EQ(scheme(*plan, "lm_head"), "plain");
}

TEST(QuantConfig, DialectsSayTheSame) {
  struct Row {
    const char* dialect;
    std::string inlined;
    std::string side;
    const char* linear;
    const char* head;
  };
  const std::string inline_modelopt =
      R"({"quant_method":"modelopt","quant_algo":"MXFP8","ignore":["lm_head"]})";
  const std::string side_modelopt =
      R"({"producer":{"name":"modelopt","version":"0.47"},"quantization":{"quant_algo":"MXFP8",)"
      R"("kv_cache_quant_algo":null,"group_size":32,"exclude_modules":["lm_head"]}})";
  const std::string auto_round =
      R"({"quant_method":"auto-round","bits":8,"data_type":"mx_fp","group_size":32,"sym":true)";
  const Row rows[] = {
      {"compressed-tensors", ct_linear(R"(["lm_head"])"), "", "w8a16", "plain"},
      {"compressed-tensors",
       ct("\"group_0\":" + group("[\"Linear\"]", kMx, kMxDynamic), R"(["lm_head"])"), "", "w8a8",
       "plain"},
      // The least that an old file says.
      {"compressed-tensors",
       ct("\"g\":" + group("[\"Linear\"]", R"({"num_bits":8,"type":"float","group_size":32})"),
          R"(["lm_head"])", ""),
       "", "w8a16", "plain"},
      {"compressed-tensors", ct_linear(), "", "w8a16", "w8a16"},
      {"modelopt", inline_modelopt, "", "w8a8", "plain"},
      {"modelopt", "", side_modelopt, "w8a8", "plain"},
      {"modelopt", inline_modelopt, side_modelopt, "w8a8", "plain"},
      {"mxfp8", R"({"quant_method":"mxfp8","activation_scheme":"dynamic"})", "", "w8a8", "w8a8"},
      {"mxfp8",
       R"({"quant_method":"mxfp8","weight_block_size":[1,32],"scale_fmt":"ue8m0",)"
       R"("ignored_layers":["lm_head"]})",
       "", "w8a8", "plain"},
      {"mxfp8", R"({"quant_method":"mxfp8","modules_to_not_convert":["lm_head"]})", "", "w8a8",
       "plain"},
      {"mxfp8", R"({"quant_method":"fp8","weight_block_size":[1,32]})", "", "w8a8", "w8a8"},
      {"auto-round", auto_round + "}", "", "w8a16", "plain"},
      {"auto-round",
       auto_round + R"(,"act_bits":8,"act_data_type":"mx_fp","act_group_size":32,)"
                    R"("act_dynamic":true,"packing_format":"auto_round:llm_compressor"})",
       "", "w8a8", "plain"},
      {"auto-round", auto_round + R"(,"extra_config":{"lm_head":{"bits":8}}})", "", "w8a16",
       "w8a16"},
      {"auto-round", auto_round + R"(,"extra_config":{".*q_proj":{"bits":16},"lm_.*":{}}})", "",
       "plain", "w8a16"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.inlined + row.side);
    const auto plan = parse(row.inlined, row.side);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(plan->dialect(), row.dialect);
    EXPECT_EQ(scheme(*plan, layer(0, "self_attn.q_proj")), row.linear);
    EXPECT_EQ(scheme(*plan, "lm_head", ModuleKind::kLmHead), row.head);
    EXPECT_EQ(scheme(*plan, "model.embed_tokens", ModuleKind::kEmbedding), "plain");
    EXPECT_EQ(scheme(*plan, "model.norm", ModuleKind::kNorm), "plain");
  }
}

TEST(QuantConfig, CompressedTensorsMatching) {
  struct Row {
    std::string targets;
    std::string ignore;
    std::string module;
    const char* expected;
  };
  const std::string linear = R"(["Linear"])";
  const std::string gate = layer(0, "mlp.gate_proj"), up = layer(0, "mlp.up_proj");
  const std::string q = layer(0, "self_attn.q_proj"), down = layer(1, "mlp.down_proj");
  const Row rows[] = {
      {R"(["linear"])", "[]", q, "w8a16"},
      {R"(["RowParallelLinear"])", "[]", q, "plain"},
      {linear, R"(["re:.*mlp\\.(gate|up)_proj$","lm_head"])", gate, "plain"},
      {linear, R"(["re:.*mlp\\.(gate|up)_proj$","lm_head"])", up, "plain"},
      {linear, R"(["re:.*mlp\\.(gate|up)_proj$","lm_head"])", down, "w8a16"},
      // re.match is anchored at the start and not at the end.
      {linear, R"(["re:mlp"])", gate, "w8a16"},
      {linear, R"(["re:model.layers.0"])", gate, "plain"},
      {linear, R"(["re:.*mlp.gate$"])", gate, "w8a16"},
      {linear, R"(["re:.*mlp.gate$"])", layer(0, "mlp.gate"), "plain"},
      // Names are whole names.
      {linear, R"(["mlp.gate_proj"])", gate, "w8a16"},
      {linear, R"(["model.layers.0.mlp"])", gate, "w8a16"},
      {linear, "[\"" + q + ".linear\"]", q, "plain"},
      {linear, R"(["re:.*q_proj\\.linear$"])", q, "plain"},
      {linear, "[\"" + layer(0, "self_attn.qkv_proj") + "\"]", q, "plain"},
      {linear, "[\"" + layer(0, "self_attn.qkv") + "\"]", q, "plain"},
      {linear, "[\"" + layer(0, "mlp.gate_up_proj") + "\"]", up, "plain"},
      {linear, "[\"" + layer(0, "mlp.gate_up_proj") + "\"]", down, "w8a16"},
      {linear, "[\"" + layer(0, "mlp.experts") + "\"]", layer(0, "mlp.experts.7.up_proj"), "plain"},
      {linear, "[\"" + layer(0, "mlp.experts") + "\"]", layer(1, "mlp.experts.7.up_proj"), "w8a16"},
      {linear, R"(["re:.*experts.*"])", layer(0, "mlp.experts.7.up_proj"), "plain"},
      {linear, R"(["Linear"])", q, "plain"},
      {"[\"" + q + "\"]", "[]", q, "w8a16"},
      {"[\"" + q + "\"]", "[]", layer(0, "self_attn.k_proj"), "plain"},
      {R"(["re:.*self_attn\\..*"])", "[]", q, "w8a16"},
      {R"(["re:.*self_attn\\..*"])", "[]", gate, "plain"},
      {R"(["re:.*"])", "[]", gate, "w8a16"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.targets + " " + row.ignore + " " + row.module);
    const auto plan = parse(ct("\"g\":" + group(row.targets), row.ignore));
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(scheme(*plan, row.module), row.expected);
  }
}

TEST(QuantConfig, NamesGoBeforePatternsAndPatternsBeforeClasses) {
  const std::string q = layer(0, "self_attn.q_proj");
  const std::string w8a8 = ",\"b\":" + group("[\"" + q + "\"]", kMx, kMxDynamic);
  const auto exact = parse(ct("\"a\":" + group(R"(["re:.*q_proj"])") + w8a8));
  ASSERT_TRUE(exact.ok()) << exact.error().message;
  EXPECT_EQ(scheme(*exact, q), "w8a8");
  EXPECT_EQ(scheme(*exact, layer(1, "self_attn.q_proj")), "w8a16");
  const auto pattern = parse(ct("\"a\":" + group("[\"Linear\"]") +
                                ",\"b\":" + group(R"(["re:.*q_proj"])", kMx, kMxDynamic)));
  ASSERT_TRUE(pattern.ok()) << pattern.error().message;
  EXPECT_EQ(scheme(*pattern, q), "w8a8");
  EXPECT_EQ(scheme(*pattern, layer(0, "mlp.up_proj")), "w8a16");
}

TEST(QuantConfig, MixedPrecisionGroupsOfOneFormat) {
  const auto plan = parse(
      ct("\"attention\":" +
             group(R"(["re:.*self_attn.*"])", kMx, "null", R"(,"format":"mxfp8-quantized")") +
             ",\"mlp\":" + group(R"(["re:.*mlp.*"])", kMx, kMxDynamic, R"(,"format":null)"),
         "[]", R"(,"format":"mixed-precision","sparsity_config":{},"transform_config":null)"));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(scheme(*plan, layer(0, "self_attn.o_proj")), "w8a16");
  EXPECT_EQ(scheme(*plan, layer(0, "mlp.up_proj")), "w8a8");
}

TEST(QuantConfig, KvCacheSchemes) {
  const auto with_kv = [](const std::string& kv) {
    return parse(ct("\"g\":" + group("[\"Linear\"]"), "[]", ",\"kv_cache_scheme\":" + kv));
  };
  const std::string fp8 = R"({"num_bits":8,"type":"float","strategy":"tensor","symmetric":true,)"
                          R"("dynamic":false})";
  EXPECT_EQ(with_kv("null")->kv_cache(), KvCacheScheme::kNone);
  EXPECT_EQ(with_kv(fp8)->kv_cache(), KvCacheScheme::kFp8);
  EXPECT_EQ(with_kv(R"({"num_bits":8,"type":"float","strategy":"attn_head"})")->kv_cache(),
            KvCacheScheme::kFp8);
  for (const char* kv : {R"({"num_bits":8,"type":"int","strategy":"tensor"})",
                         R"({"num_bits":4,"type":"float","strategy":"tensor"})",
                         R"({"num_bits":8,"type":"float","strategy":"tensor","dynamic":true})",
                         R"({"num_bits":8,"type":"float","strategy":"channel"})"}) {
    expect_contains(error_of(with_kv(kv)), "kv_cache_scheme");
  }
  EXPECT_EQ(parse(R"({"quant_method":"modelopt","quant_algo":"MXFP8",
      "kv_cache_scheme":{"dynamic":false,"num_bits":8,"type":"float"}})")
                ->kv_cache(),
            KvCacheScheme::kFp8);
  EXPECT_EQ(parse("", R"({"quantization":{"quant_algo":"MXFP8","kv_cache_quant_algo":"FP8"}})")
                ->kv_cache(),
            KvCacheScheme::kFp8);
  expect_contains(
      error_of(
          parse("", R"({"quantization":{"quant_algo":"MXFP8","kv_cache_quant_algo":"NVFP4"}})")),
      "NVFP4 KV cache");
}

TEST(QuantConfig, ModelOptExclusions) {
  struct Row {
    std::string entry;
    std::string module;
    const char* expected;
  };
  const Row rows[] = {
      {"lm_head", "lm_head", "plain"},
      {"model.layers.0*", layer(0, "mlp.up_proj"), "plain"},
      {"model.layers.0*", layer(1, "mlp.up_proj"), "w8a8"},
      {"*mlp.gate.*", layer(0, "mlp.gate_proj"), "w8a8"},
      {"*.o_proj", layer(0, "self_attn.o_proj"), "plain"},
      {"*.[qk]_proj", layer(0, "self_attn.k_proj"), "plain"},
      {"*.[!qk]_proj", layer(0, "self_attn.k_proj"), "w8a8"},
      {"*.?_proj", layer(0, "self_attn.k_proj"), "plain"},
      {"mlp.gate", layer(0, "mlp.gate"), "plain"},
      {"mlp.gate", layer(0, "mlp.gate_proj"), "w8a8"},
      {"model.layers.1", layer(1, "mlp.up_proj"), "plain"},
      {"model.layers.1", layer(11, "mlp.up_proj"), "w8a8"},
      {layer(0, "self_attn.qkv_proj"), layer(0, "self_attn.v_proj"), "plain"},
      {layer(0, "mlp.experts"), layer(0, "mlp.experts.3.down_proj"), "plain"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.entry + " " + row.module);
    const auto plan =
        parse("", "{\"quantization\":{\"quant_algo\":\"MXFP8\",\"exclude_modules\":[\"" +
                      row.entry + "\"]}}");
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(scheme(*plan, row.module), row.expected);
  }
}

TEST(QuantConfig, ModelOptCarriersMustAgree) {
  const std::string side =
      R"({"quantization":{"quant_algo":"MXFP8","kv_cache_quant_algo":"FP8","group_size":32,)"
      R"("exclude_modules":["lm_head","model.embed_tokens"]}})";
  const auto inlined = [](const std::string& ignore, const std::string& kv,
                          const std::string& algo = "MXFP8") {
    return str_cat(R"({"quant_method":"modelopt","quant_algo":")", algo, "\",\"ignore\":", ignore,
                   ",\"kv_cache_scheme\":", kv, "}");
  };
  const std::string fp8 = R"({"dynamic":false,"num_bits":8,"type":"float"})";
  const std::string both = R"(["model.embed_tokens","lm_head"])";  // another order
  EXPECT_TRUE(parse(inlined(both, fp8), side).ok());
  const std::string ignore = error_of(parse(inlined("[]", fp8), side));
  for (const char* part : {kConfig, kSide, "exclude_modules", "quantization_config.ignore",
                           "\"lm_head\"", "[]", "differently"}) {
    expect_contains(ignore, part);
  }
  const std::string kv = error_of(parse(inlined(both, "null"), side));
  expect_contains(kv, "kv_cache_quant_algo FP8");
  expect_contains(kv, "kv_cache_scheme none");
  expect_contains(error_of(parse(inlined(both, fp8, "FP8"), side)), "quant_algo");
  expect_contains(error_of(parse(ct_linear(), side)), "compressed-tensors");
}

TEST(QuantConfig, MixedPrecisionIsDecidedByItsMap) {
  const auto mixed = [](const std::string& map) {
    return parse("{\"quant_method\":\"modelopt\",\"quant_algo\":\"MIXED_PRECISION\"" + map + "}");
  };
  const auto plan =
      mixed(R"(,"quantized_layers":{"model.layers.0.mlp.down_proj":{"quant_algo":"MXFP8",)"
            R"("group_size":32},"model.layers.0.mlp.experts":{"quant_algo":"MXFP8"}})");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(scheme(*plan, layer(0, "mlp.down_proj")), "w8a8");
  EXPECT_EQ(scheme(*plan, layer(1, "mlp.down_proj")), "plain");
  EXPECT_EQ(scheme(*plan, layer(0, "mlp.experts.5.up_proj")), "w8a8");
  EXPECT_EQ(scheme(*plan, layer(1, "mlp.experts.5.up_proj")), "plain");
  expect_contains(error_of(mixed("")), "\"quantization_config.quantized_layers\" is missing");
  expect_contains(error_of(mixed(R"(,"quantized_layers":{})")),
                  "\"quantization_config.quantized_layers\" is empty");
  const std::string nvfp4 = error_of(mixed(
      R"(,"quantized_layers":{"model.layers.0.mlp.experts":{"quant_algo":"NVFP4","group_size":16}})"));
  expect_contains(nvfp4, "model.layers.0.mlp.experts");
  expect_contains(nvfp4, "NVFP4");
  expect_contains(error_of(mixed(R"(,"quantized_layers":{"a":{"group_size":32}})")),
                  "quantized_layers.a.quant_algo");
}

TEST(QuantConfig, FormatsThatDoNotRunAreRefusedByName) {
  struct Row {
    std::string inlined;
    std::vector<std::string> named;
  };
  const auto weights = [](const std::string& args) {
    return ct("\"group_0\":" + group("[\"Linear\"]", args), "[]", "");
  };
  const auto method = [](const std::string& name, const std::string& more = "") {
    return "{\"quant_method\":\"" + name + "\"" + more + "}";
  };
  const std::vector<Row> rows = {
      {method("fp8", R"(,"weight_block_size":[128,128],"activation_scheme":"dynamic")"),
       {"FP8 in blocks of 128x128"}},
      {method("fp8", R"(,"weight_block_size":null)"), {"not MXFP8", "FP8 per tensor"}},
      {method("fp8", R"(,"weight_block_size":[32,32])"), {"FP8 in blocks of 32x32"}},
      {method("fbgemm_fp8"), {"FP8 per channel"}},
      {method("mxfp4"), {"MXFP4"}},
      {method("nvfp4"), {"NVFP4"}},
      {method("gptq", R"(,"bits":4)"), {"GPTQ"}},
      {method("awq", R"(,"bits":4)"), {"AWQ"}},
      {method("bitsandbytes", R"(,"load_in_4bit":true)"), {"bitsandbytes"}},
      {method("torchao"), {"torchao"}},
      {method("quark"), {"Quark"}},
      {method("invented"), {"\"quantization_config.quant_method\" is \"invented\"", "modelopt"}},
      {"{}", {"\"quantization_config.quant_method\" is missing"}},
      {"[]", {"\"quantization_config\" is []"}},
      {method("modelopt", R"(,"quant_algo":"NVFP4")"), {"NVFP4"}},
      {method("modelopt", R"(,"quant_algo":"FP8")"), {"FP8 per tensor"}},
      {method("modelopt", R"(,"quant_algo":"W4A16_AWQ")"), {"W4A16_AWQ"}},
      {method("modelopt", R"(,"quant_algo":"FP8_PB_WO")"), {"128x128"}},
      {method("modelopt"), {"quant_algo", "missing"}},
      {method("modelopt", R"(,"quant_algo":"MXFP8","group_size":16)"), {"group_size\" is 16"}},
      {method("mxfp8", R"(,"weight_block_size":[32,32])"), {"weight_block_size", "[32,32]"}},
      {method("mxfp8", R"(,"scale_fmt":"fp32")"), {"scale_fmt", "fp32"}},
      {method("mxfp8", R"(,"activation_scheme":"static")"), {"activation_scheme", "static"}},
      {method("mxfp8", R"(,"ignored_layers":"lm_head")"), {"ignored_layers", "a list"}},
      {method("auto-round", R"(,"bits":4,"data_type":"int","group_size":128)"), {"INT4"}},
      {method("auto-round", R"(,"bits":4,"data_type":"mx_fp","group_size":32)"), {"MXFP4"}},
      {method("auto-round", R"(,"bits":4,"data_type":"nv_fp","group_size":16)"), {"NVFP4"}},
      {method("auto-round", R"(,"bits":8,"data_type":"mx_fp","group_size":32,"act_bits":4,)"
                            R"("act_data_type":"mx_fp")"),
       {"act_data_type", "4 bits"}},
      {method("auto-round", R"(,"bits":8,"data_type":"mx_fp","group_size":32,)"
                            R"("extra_config":{"lm_head":{"bits":4,"data_type":"int"}})"),
       {"extra_config.lm_head", "INT4"}},
      {weights(R"({"num_bits":8,"type":"float","strategy":"tensor"})"), {"FP8 per tensor"}},
      {weights(R"({"num_bits":8,"type":"float","strategy":"channel"})"), {"FP8 per channel"}},
      {weights(R"({"num_bits":8,"type":"float","strategy":"block","block_structure":[128,128]})"),
       {"FP8 in blocks of 128x128"}},
      {weights(R"({"num_bits":8,"type":"float","strategy":"group","group_size":32,)"
               R"("scale_dtype":"torch.bfloat16"})"),
       {"group_0.weights", "FP8 in groups of 32 with bfloat16 scales"}},
      {weights(R"({"num_bits":8,"type":"float","group_size":64})"), {"FP8 in groups of 64"}},
      {weights(R"({"num_bits":4,"type":"float","strategy":"group","group_size":32})"), {"MXFP4"}},
      {weights(R"({"num_bits":4,"type":"float","strategy":"tensor_group","group_size":16})"),
       {"NVFP4"}},
      {weights(R"({"num_bits":4,"type":"int","strategy":"group","group_size":128})"), {"INT4"}},
      {weights(R"({"num_bits":8,"type":"int","strategy":"channel"})"), {"INT8"}},
      {weights(R"({"num_bits":8,"type":"float","group_size":32,"symmetric":false})"), {"FP8"}},
      {weights(R"({"num_bits":8,"type":"float","group_size":32,"colour":"red"})"),
       {"group_0.weights.colour"}},
      {weights(R"({"num_bits":8,"type":"float","group_size":32,"dynamic":true})"),
       {"group_0.weights.dynamic"}},
      {weights("null"), {"group_0.weights\" is missing"}},
      {ct("\"a\":" + group("[\"Linear\"]", kMx,
                           R"({"num_bits":8,"type":"float","strategy":"tensor","dynamic":false})")),
       {"a.input_activations", "static FP8 per tensor"}},
      {ct("\"a\":" + group("[\"Linear\"]", kMx, "null", ",\"output_activations\":" + kMx)),
       {"a.output_activations"}},
      {ct("\"a\":" + group("[]")), {"a.targets"}},
      {ct("\"a\":" + group(R"(["re:(unclosed"])")), {"a.targets", "re:(unclosed"}},
      {ct_linear(R"(["re:*bad"])"), {"ignore", "re:*bad"}},
      {ct_linear(R"([""])"), {"ignore", "empty"}},
      {ct(""), {"config_groups"}},
      {ct("\"a\":" + group("[\"Linear\"]") + ",\"experts\":" +
              group(R"(["re:.*experts.*"])", R"({"num_bits":4,"type":"float","group_size":32})"),
          "[]", R"(,"format":"mixed-precision")"),
       {"experts.weights", "MXFP4"}},
      {ct("\"a\":" + group("[\"Linear\"]"), "[]", R"(,"format":"float-quantized")"),
       {"float-quantized"}},
      {ct("\"a\":" + group("[\"Linear\"]"), "[]", R"(,"quantization_status":"frozen")"),
       {"quantization_status", "frozen"}},
      {ct("\"a\":" + group("[\"Linear\"]"), "[]",
          R"(,"sparsity_config":{"format":"sparse-24-bitmask","targets":["Linear"]})"),
       {"sparsity_config"}},
      {ct("\"a\":" + group("[\"Linear\"]"), "[]",
          R"(,"transform_config":{"config_groups":{"u":{"type":"hadamard"}}})"),
       {"transform_config"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.inlined);
    const std::string message = error_of(parse(row.inlined));
    expect_contains(message, kConfig);
    for (const std::string& part : row.named) expect_contains(message, part);
  }
  EXPECT_GE(rows.size(), 50u);
}

TEST(QuantConfig, PartsOfAFusedLayerMustAgree) {
  const std::vector<std::string> qkv = {layer(0, "self_attn.q_proj"), layer(0, "self_attn.k_proj"),
                                        layer(0, "self_attn.v_proj")};
  const auto all = parse(ct_linear("[\"" + join(qkv, "\",\"") + "\"]"));
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->fused(qkv)->scheme.is_plain());
  const auto one = parse(ct_linear("[\"" + qkv[2] + "\"]"));
  ASSERT_TRUE(one.ok());
  const auto fused = one->fused(qkv);
  ASSERT_FALSE(fused.ok());
  for (const std::string& part :
       {qkv[0], qkv[2], std::string("not quantised"), std::string("must agree")}) {
    expect_contains(fused.error().message, part);
  }
  const std::vector<std::string> experts = {layer(0, "mlp.experts.0.up_proj"),
                                            layer(0, "mlp.experts.1.up_proj")};
  const auto expert = parse(ct_linear("[\"" + experts[1] + "\"]"));
  EXPECT_FALSE(expert->fused(experts).ok());
  // 14 explicit names without a pattern.
  std::vector<std::string> names;
  for (int i = 0; i < 2; ++i) {
    for (const char* part : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                             "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      names.push_back(layer(i, part));
    }
  }
  const auto explicit_names = parse(ct("\"g\":" + group("[\"" + join(names, "\",\"") + "\"]")));
  ASSERT_TRUE(explicit_names.ok());
  EXPECT_TRUE(explicit_names->fused(qkv)->scheme.is_mxfp8());
  for (const std::string& name : names) EXPECT_EQ(scheme(*explicit_names, name), "w8a16");
  EXPECT_TRUE(explicit_names->unmatched().empty());
}

TEST(QuantConfig, EntriesThatMatchNothingAreReported) {
  const auto plan = parse(ct("\"g\":" + group(R"(["Linear","model.layers.9.mlp.up_proj"])"),
                             R"(["lm_head","re:.*nothing.*","re:.*q_proj"])"));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->unmatched().size(), 5u);
  EXPECT_EQ(scheme(*plan, layer(0, "self_attn.q_proj")), "plain");
  EXPECT_EQ(scheme(*plan, layer(0, "mlp.up_proj")), "w8a16");
  EXPECT_EQ(plan->unmatched(),
            (std::vector<std::string>{
                "ignore \"lm_head\"", "ignore \"re:.*nothing.*\"",
                "quantization_config.config_groups.g.targets \"model.layers.9.mlp.up_proj\""}));
}

TEST(QuantConfig, NamesMayCarryAPrefixThatTheConfigLacks) {
  auto plan =
      parse(R"({"quant_method":"modelopt","quant_algo":"MIXED_PRECISION","quantized_layers":)"
            R"({"model.layers.0.mlp.up_proj":{"quant_algo":"MXFP8"}}})");
  ASSERT_TRUE(plan.ok());
  const std::string name = "language_model.model.layers.0.mlp.up_proj";
  EXPECT_EQ(scheme(*plan, "other.layers.0.mlp.up_proj"), "plain");
  auto exact = parse(ct_linear(R"(["model.layers.0.mlp.up_proj"])"));
  EXPECT_EQ(scheme(*exact, name), "w8a16");
  exact->add_name_prefix({"language_model.model.", "model."});
  EXPECT_EQ(scheme(*exact, name), "plain");
  EXPECT_EQ(scheme(*exact, "language_model.model.layers.1.mlp.up_proj"), "w8a16");
  plan->add_name_prefix({"language_model.", ""});
  EXPECT_EQ(scheme(*plan, name), "w8a8");
  EXPECT_TRUE(plan->unmatched().empty());
}

TEST(QuantConfig, RunawayPatternsAreErrors) {
  const auto plan = parse(ct_linear(R"(["re:(a+)+(a+)+(a+)+$"])"));
  ASSERT_TRUE(plan.ok());
  const auto m = plan->module(std::string(60, 'a') + "b");
  ASSERT_FALSE(m.ok());
  expect_contains(m.error().message, "simplify");
}

TEST(QuantConfig, OnlineQuantisation) {
  OnlineQuant online;
  online.enabled = true;
  const auto plan = parse("", "", online);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->dialect(), "online mxfp8");
  const auto up = plan->module(layer(0, "mlp.up_proj"));
  EXPECT_TRUE(up->quantize_at_load);
  EXPECT_TRUE(up->scheme.is_mxfp8());
  EXPECT_EQ(scheme(*plan, layer(0, "mlp.gate"), ModuleKind::kRouter), "plain");
  EXPECT_EQ(scheme(*plan, "lm_head", ModuleKind::kLmHead), "plain");
  EXPECT_EQ(scheme(*plan, "model.embed_tokens", ModuleKind::kEmbedding), "plain");
  EXPECT_EQ(scheme(*plan, "model.norm", ModuleKind::kNorm), "plain");

  online.include = {"lm_head", "re:.*mlp\\.gate$"};
  online.ignore = {"mlp.down_proj", "re:.*layers\\.0\\.self_attn"};
  online.activations = ActivationScheme::kDynamicMxfp8;
  const auto lists = parse("", "", online);
  ASSERT_TRUE(lists.ok()) << lists.error().message;
  EXPECT_EQ(scheme(*lists, "lm_head", ModuleKind::kLmHead), "w8a8");
  EXPECT_EQ(scheme(*lists, layer(0, "mlp.gate"), ModuleKind::kRouter), "w8a8");
  EXPECT_EQ(scheme(*lists, layer(3, "mlp.down_proj")), "plain");
  EXPECT_EQ(scheme(*lists, layer(0, "self_attn.q_proj")), "plain");
  EXPECT_EQ(scheme(*lists, layer(1, "self_attn.q_proj")), "w8a8");
  EXPECT_EQ(scheme(*lists, "model.embed_tokens", ModuleKind::kEmbedding), "plain");

  expect_contains(error_of(parse(ct_linear(), "", online)),
                  "quantised already (compressed-tensors)");
  online.ignore = {"re:("};
  expect_contains(error_of(parse("", "", online)), "--quantization mxfp8: ignore");
}

}  // namespace
}  // namespace mx8
