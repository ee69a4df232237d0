// The strictness of loading: every tensor is used, every parameter assigned, nothing is silent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/strings.h"
#include "checkpoint/dummy_source.h"
#include "checkpoint/quant_weight.h"
#include "model/raw_checkpoint.h"
#include "model/test_support.h"
#include "mx/bf16.h"
#include "mx/block.h"

namespace mx8::test {
namespace {

const char* const kLlama = "checkpoints/base";
const char* const kQuantised = "checkpoints/ct_w8a16";
const std::vector<int32_t> kIds = {3, 17, 99, 42, 5, 64, 127, 8};

RawCheckpoint fixture(const std::string& name) { return read_checkpoint(data_folder(name)); }

Result<std::unique_ptr<Model>> load_written(const RawCheckpoint& checkpoint, Machine& machine,
                                            const ModelOptions& options = {}) {
  const TempFolder folder;
  write_checkpoint(checkpoint, folder.path());
  return load_folder(folder.path(), machine, options);
}

std::string error_of(const RawCheckpoint& checkpoint, const ModelOptions& options = {}) {
  Machine machine;
  const auto model = load_written(checkpoint, machine, options);
  return model.ok() ? "" : model.error().message;
}

Result<std::vector<float>> logits_of(const RawCheckpoint& checkpoint,
                                     const ModelOptions& options = {}) {
  Machine machine;
  MX8_TRY(const auto model, load_written(checkpoint, machine, options));
  return Session(*model, machine, DType::kF32).feed(kIds, kIds.size());
}

void expect_contains(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in: " << message;
  }
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(Weights, MissingTensorsAreNamed) {
  for (const char* name :
       {"model.embed_tokens.weight", "model.norm.weight", "model.layers.1.self_attn.k_proj.weight",
        "model.layers.0.post_attention_layernorm.weight", "model.layers.1.mlp.down_proj.weight"}) {
    RawCheckpoint checkpoint = fixture(kLlama);
    ASSERT_EQ(checkpoint.tensors.erase(name), 1u);
    expect_contains(error_of(checkpoint), {name});
  }
}

// A folder without one of its tensors.
class WithoutTensor final : public TensorSource {
 public:
  WithoutTensor(TensorSource& inner, std::string name) : inner_(inner), hidden_(std::move(name)) {}
  bool has(std::string_view name, bool expected) const override {
    return name != hidden_ && inner_.has(name, expected);
  }
  const TensorInfo* find(std::string_view name) const override {
    return name == hidden_ ? nullptr : inner_.find(name);
  }
  Result<TensorData> load(const TensorRequest& request) override {
    if (request.name == hidden_) return not_found("no " + hidden_);
    return inner_.load(request);
  }
  void release(std::string_view name) override { inner_.release(name); }
  void mark_used(std::string_view name) override { inner_.mark_used(name); }
  std::vector<std::string> unused() const override { return {}; }

 private:
  TensorSource& inner_;
  std::string hidden_;
};

TEST(Weights, EveryMissingTensorOfEveryFamilyIsNamed) {
  for (const char* name : {"tiny/llama_bias_tied_mxfp8", "tiny/qwen2_moe_some_dense_mxfp8",
                           "tiny/mixtral_mxfp8", "tiny/qwen3_moe_mxfp8"}) {
    const std::string folder = data_folder(name);
    Machine machine;
    const auto config = read_hf_config(folder, supported_architectures());
    ASSERT_TRUE(config.ok()) << config.error().message;
    const auto plan = read_quant_plan(folder, config.value());
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const auto reader = CheckpointReader::open(folder);
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    for (const TensorInfo& info : reader.value()->tensors()) {
      WithoutTensor source(*reader.value(), info.name);
      const auto model = load_model(source, config.value(), plan.value(),
                                    {.caps = machine.caps, .pool = &machine.pool});
      ASSERT_FALSE(model.ok()) << info.name;
      expect_contains(model.error().message, {info.name.substr(0, info.name.rfind('.'))});
    }
  }
}

TEST(Weights, MisshapedTensorsAreNamed) {
  for (const char* name : {"model.embed_tokens.weight", "model.layers.0.self_attn.v_proj.weight",
                           "model.layers.1.mlp.gate_proj.weight"}) {
    RawCheckpoint checkpoint = fixture(kLlama);
    std::vector<int64_t>& shape = checkpoint.tensors.at(name).shape;
    std::swap(shape[0], shape[1]);
    expect_contains(error_of(checkpoint), {name});
  }
}

TEST(Weights, MisshapedScalesAreNamed) {
  for (const char* name : {"checkpoints/ct_w8a16", "tiny/mixtral_mxfp8"}) {
    const RawCheckpoint whole = fixture(name);
    bool tried = false;
    for (const auto& [tensor, scales] : whole.tensors) {
      if (!tensor.ends_with("down_proj.weight_scale") && !tensor.ends_with("w2.weight_scale")) {
        continue;
      }
      RawCheckpoint checkpoint = whole;
      std::vector<int64_t>& shape = checkpoint.tensors.at(tensor).shape;
      shape = {shape[1], shape[0]};
      expect_contains(error_of(checkpoint), {tensor});
      tried = true;
      break;
    }
    EXPECT_TRUE(tried) << name;
  }
}

TEST(Weights, ExtraTensorsAreNamed) {
  RawCheckpoint checkpoint = fixture(kLlama);
  const RawTensor norm = checkpoint.tensors.at("model.norm.weight");
  checkpoint.tensors["model.layers.0.self_attn.q_proj.bias"] = norm;
  checkpoint.tensors["model.layers.0.self_attn.q_norm.weight"] = norm;
  expect_contains(error_of(checkpoint), {"model.layers.0.self_attn.q_proj.bias",
                                         "model.layers.0.self_attn.q_norm.weight"});
}

TEST(Weights, ALayerBeyondTheConfigIsNamed) {
  RawCheckpoint checkpoint = fixture(kLlama);
  set_field(checkpoint, "num_hidden_layers", "1");
  expect_contains(error_of(checkpoint), {"model.layers.1."});
}

TEST(Weights, RotaryBuffersOfOldCheckpointsAreLetPass) {
  RawCheckpoint checkpoint = fixture(kLlama);
  checkpoint.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
      DType::kF32, {8}, std::vector<std::byte>(32)};
  EXPECT_EQ(error_of(checkpoint), "");
}

TEST(Weights, ScalesThatNothingReadsAreNamed) {
  RawCheckpoint checkpoint = fixture(kLlama);
  checkpoint.tensors["model.layers.0.mlp.up_proj.weight_scale"] = {
      DType::kU8, {96, 2}, std::vector<std::byte>(192)};
  expect_contains(error_of(checkpoint), {"model.layers.0.mlp.up_proj"});
}

TEST(Weights, FusedPartsMustBeStoredAlike) {
  const RawCheckpoint plain = fixture(kLlama);
  for (const auto& [part, layer] : std::map<std::string, std::string>{
           {"model.layers.1.self_attn.v_proj", "model.layers.1.self_attn"},
           {"model.layers.0.mlp.up_proj", "model.layers.0.mlp"}}) {
    RawCheckpoint checkpoint = fixture(kQuantised);
    checkpoint.tensors[part + ".weight"] = plain.tensors.at(part + ".weight");
    checkpoint.tensors.erase(part + ".weight_scale");
    const size_t place = checkpoint.config.find("\"lm_head\"");
    ASSERT_NE(place, std::string::npos);
    checkpoint.config.insert(place, str_cat("\"", part, "\", "));
    expect_contains(error_of(checkpoint), {part, layer});
  }
}

TEST(Weights, WholeFusedLayersMayStayPlain) {
  const RawCheckpoint plain = fixture(kLlama);
  RawCheckpoint checkpoint = fixture(kQuantised);
  std::string ignored;
  for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
    const std::string module = str_cat("model.layers.0.self_attn.", part);
    checkpoint.tensors[module + ".weight"] = plain.tensors.at(module + ".weight");
    checkpoint.tensors.erase(module + ".weight_scale");
    ignored += str_cat("\"", module, "\", ");
  }
  checkpoint.config.insert(checkpoint.config.find("\"lm_head\""), ignored);
  const auto logits = logits_of(checkpoint);
  ASSERT_TRUE(logits.ok()) << logits.error().message;
  EXPECT_NE(logits.value(), logits_of(fixture(kQuantised)).value());
  EXPECT_NE(logits.value(), logits_of(plain).value());
}

// The tensors of a text model taken out of a multimodal one keep a prefix. Entries of the config
// name modules with it or without it, and are followed either way.
TEST(Weights, OnePrefixBeforeAllNamesIsRead) {
  const RawCheckpoint plain = fixture(kLlama);
  for (const std::string prefix : {"language_model.", "model.", "a.b."}) {
    SCOPED_TRACE(prefix);
    RawCheckpoint quantised = fixture(kQuantised);
    const std::string down = "model.layers.0.mlp.down_proj";
    quantised.tensors[down + ".weight"] = plain.tensors.at(down + ".weight");
    quantised.tensors.erase(down + ".weight_scale");
    const auto rename = [&](const RawCheckpoint& from) {
      RawCheckpoint to = from;
      to.tensors.clear();
      for (const auto& [name, tensor] : from.tensors) to.tensors[prefix + name] = tensor;
      return to;
    };
    EXPECT_EQ(logits_of(rename(plain)).value(), logits_of(plain).value());
    std::vector<std::vector<float>> logits;
    for (const std::string& entry : {down, prefix + down}) {
      RawCheckpoint named = quantised;
      named.config.insert(named.config.find("\"lm_head\""), str_cat("\"", entry, "\", "));
      const auto got = logits_of(rename(named));
      ASSERT_TRUE(got.ok()) << entry << ": " << got.error().message;
      logits.push_back(got.value());
      if (entry == down) logits.push_back(logits_of(named).value());
    }
    EXPECT_EQ(logits[0], logits[1]);
    EXPECT_EQ(logits[0], logits[2]);
    // An override that names another module is not followed.
    expect_contains(error_of(rename(quantised)), {down, "weight_scale"});

    RawCheckpoint two = rename(plain);
    for (const auto& [name, tensor] : plain.tensors) two.tensors["draft." + name] = tensor;
    expect_contains(error_of(two), {"\"model.embed_tokens.weight\" is missing"});
    RawCheckpoint broken = rename(plain);
    ASSERT_EQ(broken.tensors.erase(prefix + down + ".weight"), 1u);
    expect_contains(error_of(broken), {prefix + down + ".weight"});
    RawCheckpoint more = rename(plain);
    more.tensors["vision_tower.weight"] = plain.tensors.at("model.norm.weight");
    expect_contains(error_of(more), {"vision_tower.weight", "no place"});
  }
}

TEST(Weights, ListEntriesThatMatchNothingAreListed) {
  RawCheckpoint checkpoint = fixture(kQuantised);
  checkpoint.config.insert(checkpoint.config.find("\"lm_head\""), "\"model.layer.0.typo\", ");
  Machine machine;
  const auto model = load_written(checkpoint, machine);
  ASSERT_TRUE(model.ok()) << model.error().message;
  expect_contains(join(model.value()->summary(), "; "), {"model.layer.0.typo"});
}

TEST(Weights, SummaryCountsLayers) {
  Machine machine;
  const auto quantised = load_folder(data_folder(kQuantised), machine);
  ASSERT_TRUE(quantised.ok()) << quantised.error().message;
  expect_contains(join(quantised.value()->summary(), "; "),
                  {"14 linears mxfp8", "lm_head bf16", "embeddings bf16"});
}

// A model that says it is quantised, but takes the memory of BF16, is not.
TEST(Weights, ResidentBytesAreThoseOfTheStoredForm) {
  RawCheckpoint checkpoint = fixture(kQuantised);
  for (const auto& [field, value] :
       std::map<std::string, std::string>{{"hidden_size", "576"},
                                          {"intermediate_size", "1536"},
                                          {"num_attention_heads", "9"},
                                          {"num_key_value_heads", "3"},
                                          {"head_dim", "64"},
                                          {"vocab_size", "1024"},
                                          {"num_hidden_layers", "1"}}) {
    set_field(checkpoint, field, value);
  }
  const auto config =
      parse_hf_config(checkpoint.config, "config.json", "", "", supported_architectures());
  ASSERT_TRUE(config.ok()) << config.error().message;
  const auto plan = parse_quant_plan(config.value().quantization_config, "config.json", "", "");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  Machine machine;
  DummySource source(/*seed=*/1);
  const auto model = load_model(source, config.value(), plan.value(),
                                {.caps = machine.caps, .pool = &machine.pool});
  ASSERT_TRUE(model.ok()) << model.error().message;
  const double linears = 576 * (2 * 576 + 2 * 192 + 3 * 1536);
  const double expected = linears * 33 / 32 + 2 * 2 * 1024 * 576 + 3 * 576 * 4;
  EXPECT_GE(static_cast<double>(model.value()->resident_bytes()), expected);
  EXPECT_LE(static_cast<double>(model.value()->resident_bytes()), expected * 1.03);
}

// A source that keeps account of what is loaded and let go.
class Accountant final : public TensorSource {
 public:
  explicit Accountant(TensorSource& inner) : inner_(inner) {}
  bool has(std::string_view name, bool expected) const override {
    return inner_.has(name, expected);
  }
  const TensorInfo* find(std::string_view name) const override { return inner_.find(name); }
  Result<TensorData> load(const TensorRequest& request) override {
    auto data = inner_.load(request);
    if (data.ok()) {
      held_[request.name] = data.value().bytes().size();
      size_t now = 0;
      for (const auto& [name, bytes] : held_) now += bytes;
      peak_ = std::max(peak_, now);
    }
    return data;
  }
  void release(std::string_view name) override {
    held_.erase(std::string(name));
    inner_.release(name);
  }
  void mark_used(std::string_view name) override { inner_.mark_used(name); }
  std::vector<std::string> unused() const override { return inner_.unused(); }

  const std::map<std::string, size_t>& held() const { return held_; }
  size_t peak() const { return peak_; }

 private:
  TensorSource& inner_;
  std::map<std::string, size_t> held_;
  size_t peak_ = 0;
};

TEST(Weights, SourcePagesAreLetGoLayerByLayer) {
  for (const char* name : {"tiny/qwen2_moe_some_dense", "tiny/qwen2_moe_some_dense_mxfp8",
                           "tiny/llama_bias_tied_mxfp8", "tiny/mixtral_mxfp8"}) {
    for (const bool online : {false, true}) {
      const std::string folder = data_folder(name);
      if (online && folder.ends_with("_mxfp8")) continue;
      Machine machine;
      const auto config = read_hf_config(folder, supported_architectures());
      ASSERT_TRUE(config.ok()) << config.error().message;
      const auto plan = read_quant_plan(folder, config.value(), {.enabled = online});
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      const auto reader = CheckpointReader::open(folder);
      ASSERT_TRUE(reader.ok()) << reader.error().message;
      Accountant accountant(*reader.value());
      const auto model = load_model(accountant, config.value(), plan.value(),
                                    {.caps = machine.caps, .pool = &machine.pool});
      ASSERT_TRUE(model.ok()) << model.error().message;
      EXPECT_TRUE(accountant.held().empty()) << accountant.held().begin()->first;
      // The largest of the layers is a small part of the model; a table may wait for its head.
      EXPECT_LT(accountant.peak(), reader.value()->total_bytes() / 2) << name;
    }
  }
}

TEST(Weights, BrokenScaleBytesAreNamed) {
  RawCheckpoint checkpoint = fixture(kQuantised);
  RawTensor& scales = checkpoint.tensors.at("model.layers.1.mlp.down_proj.weight_scale");
  scales.bytes[5] = std::byte{255};
  expect_contains(error_of(checkpoint), {"model.layers.1.mlp.down_proj"});
}

TEST(Weights, QuantisationAtLoadKeepsToItsLists) {
  const RawCheckpoint plain = fixture(kLlama);
  Machine machine;
  const auto summary = [&](const OnlineQuant& online) {
    const auto model = load_written(plain, machine, {.online = online});
    return model.ok() ? join(model.value()->summary(), "; ") : model.error().message;
  };
  expect_contains(summary({.enabled = true}), {"14 linears mxfp8", "lm_head bf16"});
  expect_contains(summary({.enabled = true, .ignore = {"mlp.down_proj"}}),
                  {"12 linears mxfp8", "2 linears bf16"});
  expect_contains(summary({.enabled = true, .include = {"lm_head"}}),
                  {"lm_head mxfp8", "embeddings bf16"});
  expect_contains(summary({.enabled = true, .ignore = {"q_proj"}}), {"q_proj", "qkv_proj"});
}

TEST(Weights, DummyWeightsFillEveryFamily) {
  for (const char* name : {"llama_mxfp8", "llama_bias_tied", "mistral_window", "qwen2_mxfp8",
                           "qwen3", "qwen2_moe_some_dense_mxfp8", "qwen3_moe_mxfp8", "mixtral"}) {
    const std::string folder = data_folder(str_cat("tiny/", name));
    Machine machine;
    const auto config = read_hf_config(folder, supported_architectures());
    ASSERT_TRUE(config.ok()) << config.error().message;
    const auto plan = read_quant_plan(folder, config.value());
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    std::vector<float> first;
    for (int run = 0; run < 2; ++run) {
      DummySource source(/*seed=*/7);
      const auto model = load_model(source, config.value(), plan.value(),
                                    {.caps = machine.caps, .pool = &machine.pool});
      ASSERT_TRUE(model.ok()) << model.error().message;
      const auto logits = Session(*model.value(), machine, DType::kBF16).feed(kIds, kIds.size());
      EXPECT_TRUE(std::all_of(logits.begin(), logits.end(), [](float v) {
        return std::isfinite(v);
      })) << name;
      if (run == 0) first = logits;
      EXPECT_EQ(logits, first) << name;
    }
  }
}

// Ignore lists must work by name, not because the stored dtype happens to tell.
TEST(Weights, DummyAndStoredWeightsHaveTheSameSchemes) {
  std::vector<std::string> folders;
  for (const std::string& name : folders_in(data_folder("checkpoints"))) {
    if (name.starts_with("base_")) continue;  // BF16 is what a dummy source makes
    folders.push_back(data_folder("checkpoints/" + name));
  }
  for (const std::string& name : folders_in(data_folder("tiny"))) {
    if (name != "llama_gelu") folders.push_back(data_folder("tiny/" + name));
  }
  for (const std::string& folder : folders) {
    Machine machine;
    const auto stored = load_folder(folder, machine);
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    const auto config = read_hf_config(folder, supported_architectures());
    ASSERT_TRUE(config.ok()) << config.error().message;
    const auto plan = read_quant_plan(folder, config.value());
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    DummySource source(/*seed=*/1);
    const auto dummy = load_model(source, config.value(), plan.value(),
                                  {.caps = machine.caps, .pool = &machine.pool});
    ASSERT_TRUE(dummy.ok()) << dummy.error().message;
    EXPECT_EQ(dummy.value()->summary(), stored.value()->summary()) << folder;
    EXPECT_EQ(dummy.value()->resident_bytes(), stored.value()->resident_bytes()) << folder;
  }
}

}  // namespace
}  // namespace mx8::test
