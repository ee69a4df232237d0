#include "checkpoint/quant_weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/strings.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_test_util.h"
#include "checkpoint/dummy_source.h"
#include "mx/bf16.h"

namespace mx8 {
namespace {

using test::expect_contains;

const std::string kFixtures = std::string(MX8_SOURCE_DIR) + "/tests/data/checkpoints/";

struct Module {
  std::string name;
  int64_t rows;
  int64_t cols;
  ModuleKind kind = ModuleKind::kLinear;
};

std::vector<Module> modules_of(const HfConfig& c) {
  std::vector<Module> modules = {
      {"lm_head", c.vocab_size, c.hidden_size, ModuleKind::kLmHead},
      {"model.embed_tokens", c.vocab_size, c.hidden_size, ModuleKind::kEmbedding}};
  const int64_t q = c.num_attention_heads * c.head_dim, kv = c.num_key_value_heads * c.head_dim;
  for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const std::string layer = str_cat("model.layers.", i, ".");
    modules.push_back({layer + "self_attn.q_proj", q, c.hidden_size});
    modules.push_back({layer + "self_attn.k_proj", kv, c.hidden_size});
    modules.push_back({layer + "self_attn.v_proj", kv, c.hidden_size});
    modules.push_back({layer + "self_attn.o_proj", c.hidden_size, q});
    modules.push_back({layer + "mlp.gate_proj", c.intermediate_size, c.hidden_size});
    modules.push_back({layer + "mlp.up_proj", c.intermediate_size, c.hidden_size});
    modules.push_back({layer + "mlp.down_proj", c.hidden_size, c.intermediate_size});
  }
  return modules;
}

std::vector<float> dequantise(const LoadedWeight& weight) {
  if (!weight.scheme.is_plain()) return mx_dequantize(weight.view().mx());
  std::vector<float> values;
  switch (weight.scheme.code_type) {
    case DType::kBF16:
      for (const uint16_t x : weight.codes.as<uint16_t>()) values.push_back(bf16_to_f32(x));
      break;
    case DType::kF16:
      for (const uint16_t x : weight.codes.as<uint16_t>()) values.push_back(f16_to_f32(x));
      break;
    default:
      for (const float x : weight.codes.as<float>()) values.push_back(x);
  }
  return values;
}

using Weights = std::map<std::string, std::vector<float>>;

// Loads every linear of a fixture; `quantised` counts those stored as MXFP8.
Weights load_all(const std::string& folder, LoadMode mode, int& quantised) {
  Weights weights;
  quantised = 0;
  const auto config = read_hf_config(folder, {});
  EXPECT_TRUE(config.ok()) << config.error().message;
  const auto plan = read_quant_plan(folder, *config);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  auto reader = CheckpointReader::open(folder, {mode});
  EXPECT_TRUE(reader.ok()) << reader.error().message;
  if (!plan.ok() || !reader.ok()) return weights;
  for (const Module& m : modules_of(*config)) {
    auto weight = load_quant_weight(**reader, *plan, m.name, m.kind, m.rows, m.cols);
    EXPECT_TRUE(weight.ok()) << weight.error().message;
    if (!weight.ok()) continue;
    quantised += weight->scheme.is_mxfp8();
    weights[m.name] = dequantise(*weight);
    release_quant_weight(**reader, *weight);
  }
  // Norms are all that is left.
  for (const std::string& name : (*reader)->unused()) {
    EXPECT_NE(name.find("norm"), std::string::npos) << name;
  }
  EXPECT_TRUE(plan->unmatched().empty()) << join(plan->unmatched(), ", ");
  return weights;
}

TEST(QuantWeight, EveryDialectsFixtureGivesTheSameWeights) {
  int base_quantised = 0, runnable = 0;
  const Weights base = load_all(kFixtures + "base", LoadMode::kMmap, base_quantised);
  EXPECT_EQ(base_quantised, 0);
  int ct_quantised = 0;
  const Weights ct = load_all(kFixtures + "ct_w8a16", LoadMode::kMmap, ct_quantised);
  EXPECT_EQ(ct_quantised, 14);
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || name.starts_with("base")) continue;
    SCOPED_TRACE(name);
    ++runnable;
    // ModelOpt quantises the base with its own scale rule.
    const bool same_bytes = !name.starts_with("modelopt");
    for (const LoadMode mode : {LoadMode::kMmap, LoadMode::kRead}) {
      int quantised = 0;
      const Weights weights = load_all(entry.path().string(), mode, quantised);
      EXPECT_EQ(quantised, 14);
      ASSERT_EQ(weights.size(), base.size());
      for (const auto& [module, values] : weights) {
        const std::vector<float>& expected = same_bytes ? ct.at(module) : base.at(module);
        ASSERT_EQ(values.size(), expected.size());
        for (size_t i = 0; i < values.size(); ++i) {
          // E4M3 keeps 3 mantissa bits of normal codes; small ones lose up to 2^-10 of a block.
          const float bound = same_bytes ? 0 : std::fabs(expected[i]) / 14 + 2e-4f;
          ASSERT_NEAR(values[i], expected[i], bound) << module << " " << i;
        }
      }
    }
  }
  EXPECT_GE(runnable, 10);
}

TEST(QuantWeight, PlainDtypesGiveTheirOwnScheme) {
  for (const auto& [name, dtype] :
       {std::pair{"base", DType::kBF16}, {"base_f16", DType::kF16}, {"base_f32", DType::kF32}}) {
    auto reader = CheckpointReader::open(kFixtures + name);
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    const auto weight =
        load_quant_weight(**reader, QuantPlan(), "lm_head", ModuleKind::kLmHead, 128, 64);
    ASSERT_TRUE(weight.ok()) << weight.error().message;
    EXPECT_EQ(weight->scheme, QuantScheme::plain(dtype));
    EXPECT_EQ(weight->view().scales, nullptr);
  }
}

TEST(QuantWeight, ShardsJoinToTheWhole) {
  const std::string folder = kFixtures + "ct_w8a16";
  const auto config = read_hf_config(folder, {});
  const auto plan = read_quant_plan(folder, *config);
  const std::string module = "model.layers.0.mlp.down_proj";  // 64 x 96
  for (const LoadMode mode : {LoadMode::kMmap, LoadMode::kRead}) {
    auto reader = CheckpointReader::open(folder, {mode});
    const auto load = [&](ShardSpec shard) {
      return load_quant_weight(**reader, *plan, module, ModuleKind::kLinear, 64, 96, shard);
    };
    const std::vector<float> whole = dequantise(*load({}));
    for (int rank = 0; rank < 3; ++rank) {
      const auto part = load({ShardSpec::Axis::kCols, rank, 3, 1});
      ASSERT_TRUE(part.ok()) << part.error().message;
      const std::vector<float> values = dequantise(*part);
      ASSERT_EQ(values.size(), 64u * 32);
      for (int r = 0; r < 64; ++r) {
        for (int c = 0; c < 32; ++c) {
          ASSERT_EQ(values[r * 32 + c], whole[r * 96 + rank * 32 + c]);
        }
      }
    }
    const auto rows = load({ShardSpec::Axis::kRows, 1, 2, 1});
    ASSERT_TRUE(rows.ok()) << rows.error().message;
    EXPECT_EQ(dequantise(*rows), std::vector<float>(whole.begin() + 32 * 96, whole.end()));
    const auto odd = load({ShardSpec::Axis::kCols, 0, 2, 1});  // 48 columns cut a block
    ASSERT_FALSE(odd.ok());
    expect_contains(odd.error().message, module);
  }
}

// One module in a file, and what a plan makes of it.
struct Stored {
  bool codes = false;        // F8_E4M3, else BF16
  std::string scale_suffix;  // "" for none
  std::string scale_shape = "[2,1]";
  std::string scale_dtype = "U8";
};

std::string file_of(const Stored& stored) {
  std::string header =
      stored.codes ? R"({"m.weight":{"dtype":"F8_E4M3","shape":[2,32],"data_offsets":[0,64]})"
                   : R"({"m.weight":{"dtype":"BF16","shape":[2,32],"data_offsets":[0,128]})";
  const int size = stored.codes ? 64 : 128;
  std::string data(size, '\0');
  if (!stored.scale_suffix.empty()) {
    const int scales = stored.scale_shape == "[]" ? 1 : 2;
    const int scale_bytes = stored.scale_dtype == "F32" ? 4 * scales : scales;
    header += str_cat(",\"m", stored.scale_suffix, "\":{\"dtype\":\"", stored.scale_dtype,
                      "\",\"shape\":", stored.scale_shape, ",\"data_offsets\":[", size, ",",
                      size + scale_bytes, "]}");
    data += std::string(scale_bytes, '\x7f');
  }
  return test::safetensors_file(header + "}", data);
}

std::string load_stored(const Stored& stored, const std::string& config, ModuleKind kind,
                        int64_t rows = 2) {
  const test::TempFolder folder;
  folder.write("model.safetensors", file_of(stored));
  const auto plan = parse_quant_plan(config, "config.json", "", "");
  auto reader = CheckpointReader::open(folder.path());
  if (!plan.ok()) return plan.error().message;
  if (!reader.ok()) return reader.error().message;
  const auto weight = load_quant_weight(**reader, *plan, "m", kind, rows, 32);
  return weight.ok() ? describe(weight->scheme) : weight.error().message;
}

TEST(QuantWeight, FilesAndPlanMustSayTheSame) {
  const std::string mxfp8 = R"({"quant_method":"mxfp8"})";
  const std::string ignored = R"({"quant_method":"mxfp8","ignored_layers":["m"]})";
  const std::string named = R"({"quant_method":"modelopt","quant_algo":"MIXED_PRECISION",)"
                            R"("quantized_layers":{"m":{"quant_algo":"MXFP8"}}})";
  const Stored plain, mx{true, ".weight_scale"}, inv{true, ".weight_scale_inv"};
  const auto linear = ModuleKind::kLinear, router = ModuleKind::kRouter;
  struct Row {
    Stored stored;
    std::string config;
    ModuleKind kind;
    std::vector<std::string> said;
  };
  const Row rows[] = {
      {mx, mxfp8, linear, {"mxfp8 (w8a8)"}},
      {inv, mxfp8, linear, {"mxfp8 (w8a8)"}},
      {{true, ".weight_scale", "[2,1]", "F8_E8M0"}, mxfp8, linear, {"mxfp8 (w8a8)"}},
      {plain, ignored, linear, {"bf16"}},
      {plain, "", linear, {"bf16"}},
      {plain, mxfp8, linear, {"m: ", "no m.weight_scale"}},
      {plain, mxfp8, router, {"bf16"}},
      {plain, mxfp8, ModuleKind::kLmHead, {"bf16"}},
      {plain, named, router, {"quantized_layers \"m\"", "no m.weight_scale"}},
      {mx, ignored, linear, {"m.weight_scale", "ignored_layers \"m\""}},
      {mx, "", linear, {"m.weight_scale", "not quantised"}},
      {{true, ""}, mxfp8, linear, {"no m.weight_scale"}},
      {{true, ""}, "", linear, {"\"m.weight\" is F8_E4M3", "BF16 or F16 or F32"}},
      {{false, ".weight_scale"}, mxfp8, linear, {"\"m.weight\" is BF16", "F8_E4M3"}},
      // One scale for the tensor, as plain FP8 has it, and one for each block of another format.
      {{true, ".weight_scale", "[]", "F32"}, mxfp8, linear, {"m.weight_scale", "F32", "U8"}},
      {{true, ".weight_scale", "[2]"}, mxfp8, linear, {"m.weight_scale", "[2]", "[2, 1]"}},
      {{true, ".weight_scale", "[2]", "F32"}, mxfp8, linear, {"m.weight_scale", "F32"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.config + " " + row.stored.scale_suffix + row.stored.scale_shape);
    const std::string said = load_stored(row.stored, row.config, row.kind);
    for (const std::string& part : row.said) expect_contains(said, part);
  }
  expect_contains(load_stored(mx, mxfp8, linear, 4), "\"m.weight\" is [2, 32]");
}

// A shard of K is whole blocks and takes their scales along; one that would cut a block is refused
// with the numbers. 192 in four parts: a block and a half each.
TEST(QuantWeight, ShardsOfKKeepBlocksWhole) {
  const auto plan = parse_quant_plan(R"({"quant_method":"mxfp8"})", "config.json", "", "");
  DummySource source(1);
  const auto load = [&](int64_t cols, int world) {
    return load_quant_weight(source, *plan, "m", ModuleKind::kLinear, 8, cols,
                             {ShardSpec::Axis::kCols, world - 1, world, 1});
  };
  for (const auto& [cols, world] : {std::pair<int64_t, int>{3072, 2}, {192, 2}, {192, 6}, {96, 3}}) {
    const auto part = load(cols, world);
    ASSERT_TRUE(part.ok()) << part.error().message;
    EXPECT_EQ(part->codes.shape(), (std::vector<int64_t>{8, cols / world}));
    EXPECT_EQ(part->scales.shape(), (std::vector<int64_t>{8, cols / world / 32}));
  }
  for (const auto& [cols, world] : {std::pair<int64_t, int>{192, 4}, {64, 4}, {32, 2}, {2880, 4}}) {
    const auto part = load(cols, world);
    ASSERT_FALSE(part.ok()) << cols << " " << world;
    for (const std::string& number : {str_cat(cols), str_cat(world), std::string("32")})
      expect_contains(part.error().message, number);
    expect_contains(part.error().message, "m.weight");
  }
}

TEST(QuantWeight, OnlineNeedsWholeBlocks) {
  OnlineQuant online;
  online.enabled = true;
  const auto plan = parse_quant_plan("", "config.json", "", "", online);
  DummySource source(1);
  const auto weight = load_quant_weight(source, *plan, "m", ModuleKind::kLinear, 4, 64);
  ASSERT_TRUE(weight.ok()) << weight.error().message;
  EXPECT_TRUE(weight->quantize_at_load);
  EXPECT_EQ(weight->scheme, QuantScheme::plain(DType::kBF16));
  EXPECT_TRUE(weight->target.is_mxfp8());
  const auto odd = load_quant_weight(source, *plan, "m", ModuleKind::kLinear, 4, 48);
  ASSERT_FALSE(odd.ok());
  expect_contains(odd.error().message, "m has 48 input features");
}

TEST(DummySource, WeightsAreSaneInEveryFormat) {
  DummySource source(7);
  const auto mx_plan = parse_quant_plan(R"({"quant_method":"mxfp8"})", "config.json", "", "");
  for (const QuantPlan& plan : {QuantPlan(), *mx_plan}) {
    const auto weight = load_quant_weight(source, plan, "m", ModuleKind::kLinear, 256, 512);
    ASSERT_TRUE(weight.ok()) << weight.error().message;
    EXPECT_EQ(weight->scheme.is_mxfp8(), plan.quantised());
    const std::vector<float> values = dequantise(*weight);
    double sum = 0, squares = 0;
    for (const float v : values) {
      ASSERT_TRUE(std::isfinite(v));
      sum += v;
      squares += double{v} * v;
    }
    const double n = static_cast<double>(values.size());
    EXPECT_NEAR(sum / n, 0, 5e-4);
    EXPECT_NEAR(std::sqrt(squares / n), 0.02, 1e-3);
  }
  const auto scales = source.load({"s", TensorKind::kScales, {DType::kF8E8M0}, {64, 64}, {}});
  for (const uint8_t s : scales->as<uint8_t>()) EXPECT_TRUE(s >= 118 && s <= 120) << int{s};
  const auto norm = source.load({"n", TensorKind::kNorm, {DType::kBF16}, {8}, {}});
  for (const uint16_t x : norm->as<uint16_t>()) EXPECT_EQ(bf16_to_f32(x), 1.0f);
  EXPECT_FALSE(source.load({"n", TensorKind::kNorm, {DType::kI32}, {8}, {}}).ok());
}

TEST(DummySource, DependsOnNameAndSeedAlone) {
  const auto bytes = [](uint64_t seed, const std::string& name, ShardSpec shard = {}) {
    DummySource source(seed);
    const auto data = source.load({name, TensorKind::kWeight, {DType::kBF16}, {8, 12}, shard});
    const auto span = data->as<uint16_t>();
    return std::vector<uint16_t>(span.begin(), span.end());
  };
  const auto whole = bytes(1, "a");
  EXPECT_EQ(whole, bytes(1, "a"));
  EXPECT_NE(whole, bytes(2, "a"));
  EXPECT_NE(whole, bytes(1, "b"));
  const auto cols = bytes(1, "a", {ShardSpec::Axis::kCols, 2, 3, 4});
  for (int r = 0; r < 8; ++r) {
    for (int c = 0; c < 4; ++c) EXPECT_EQ(cols[r * 4 + c], whole[r * 12 + 8 + c]);
  }
  const auto rows = bytes(1, "a", {ShardSpec::Axis::kRows, 1, 4, 1});
  EXPECT_EQ(rows, std::vector<uint16_t>(whole.begin() + 24, whole.begin() + 48));
}

}  // namespace
}  // namespace mx8
