#include "quantizer/quantizer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "base/strings.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/quant_config.h"
#include "checkpoint/safetensors_writer.h"
#include "mx/bf16.h"

namespace mx8 {
namespace {

namespace fs = std::filesystem;

class QuantizerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / str_cat("mx8_quantizer_", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string text(const std::string& file) const {
    std::ifstream in(file);
    std::stringstream out;
    out << in.rdbuf();
    return out.str();
  }
  nlohmann::json config(const std::string& folder) const {
    return nlohmann::json::parse(text(folder + "/config.json"));
  }

  // A one-layer Llama-like folder with the given matrices (BF16, Gaussian).
  std::string make_source(const std::vector<TensorDecl>& decls, bool tied = false) {
    const std::string out = path("source");
    fs::remove_all(out);
    fs::create_directories(out);
    auto writer = SafetensorsWriter::create(out, decls, uint64_t{1} << 30, {}).value();
    std::mt19937 rng(5);
    std::normal_distribution<float> gauss(0, 0.05f);
    for (const TensorDecl& d : decls) {
      std::vector<uint16_t> values(*tensor_bytes(DType::kBF16, d.shape) / 2);
      for (auto& v : values) v = f32_to_bf16(gauss(rng));
      EXPECT_TRUE(writer.write(d.name, std::as_bytes(std::span(values))).ok());
    }
    EXPECT_TRUE(writer.finish().ok());
    std::ofstream(out + "/config.json")
        << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
               "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
               "intermediate_size": 96, "vocab_size": 40, "max_position_embeddings": 64,
               "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": )"
        << (tied ? "true" : "false") << "}";
    std::ofstream(out + "/tokenizer.json") << "{}";
    std::ofstream(out + "/pytorch_model.bin") << "stray";
    return out;
  }

  static std::vector<TensorDecl> block() {
    const std::string l = "model.layers.0.";
    return {{"model.embed_tokens.weight", DType::kBF16, {40, 64}},
            {l + "self_attn.q_proj.weight", DType::kBF16, {64, 64}},
            {l + "self_attn.k_proj.weight", DType::kBF16, {64, 64}},
            {l + "self_attn.v_proj.weight", DType::kBF16, {64, 64}},
            {l + "self_attn.o_proj.weight", DType::kBF16, {64, 64}},
            {l + "mlp.gate_proj.weight", DType::kBF16, {96, 64}},
            {l + "mlp.up_proj.weight", DType::kBF16, {96, 64}},
            {l + "mlp.down_proj.weight", DType::kBF16, {64, 96}},
            {l + "input_layernorm.weight", DType::kBF16, {64}}};
  }

  Result<QuantizeReport> quantize(const std::string& in, const std::string& out,
                                  const QuantizeOptions& options = {}) {
    ThreadPool pool(2);
    return quantize_checkpoint(in, out, options, pool);
  }

  fs::path folder_;
};

const std::string kTiny = MX8_SOURCE_DIR "/tests/data/tiny/";

// The folders <name>_mxfp8 were made by an independent quantiser in numpy.
TEST_F(QuantizerTest, EqualsTheNumpyQuantiserOnEveryFamily) {
  for (const char* name : {"llama", "llama_odd", "llama_bias_tied", "mistral", "qwen2", "qwen3",
                           "qwen2_moe", "qwen3_moe", "mixtral"}) {
    SCOPED_TRACE(name);
    QuantizeOptions options;
    options.verify = true;
    const auto report = quantize(kTiny + name, path(name), options);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_GT(report->verified_blocks, 0);
    EXPECT_NEAR(report->relative_error, 0.026, 0.003);
    auto ours = CheckpointReader::open(path(name)).value();
    auto theirs = CheckpointReader::open(kTiny + name + "_mxfp8").value();
    ASSERT_EQ(ours->tensors().size(), theirs->tensors().size());
    for (const TensorInfo& t : theirs->tensors()) {
      const auto mine = ours->load_whole(t.name);
      ASSERT_TRUE(mine.ok()) << mine.error().message;
      EXPECT_EQ(mine->dtype(), t.dtype) << t.name;
      const TensorData want = theirs->load_whole(t.name).value();
      EXPECT_TRUE(std::ranges::equal(mine->bytes(), want.bytes())) << t.name;
    }
  }
}

TEST_F(QuantizerTest, BothFormatsReadBackAsTheSamePlan) {
  const std::string in = make_source(block());
  for (CheckpointFormat format : {CheckpointFormat::kCompressedTensors, CheckpointFormat::kModelOpt}) {
    for (ActivationScheme activations : {ActivationScheme::kNone, ActivationScheme::kDynamicMxfp8}) {
      QuantizeOptions options;
      options.format = format;
      options.activations = activations;
      options.exclude = {"self_attn"};
      options.overwrite = true;
      ASSERT_TRUE(quantize(in, path("out"), options).ok());
      const HfConfig hf = read_hf_config(path("out"), {}).value();
      const QuantPlan plan = read_quant_plan(path("out"), hf).value();
      EXPECT_EQ(fs::exists(path("out") + "/hf_quant_config.json"),
                format == CheckpointFormat::kModelOpt);
      EXPECT_TRUE(plan.module("model.layers.0.mlp.down_proj")->scheme.is_mxfp8());
      EXPECT_TRUE(plan.module("model.layers.0.self_attn.o_proj")->scheme.is_plain());
      EXPECT_TRUE(plan.module("lm_head", ModuleKind::kLmHead)->scheme.is_plain());
      for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
        EXPECT_TRUE(plan.module(str_cat("model.layers.0.self_attn.", name))->scheme.is_plain());
      }
      EXPECT_EQ(plan.unmatched(), std::vector<std::string>{});
      if (format == CheckpointFormat::kCompressedTensors) {
        EXPECT_EQ(plan.module("model.layers.0.mlp.down_proj")->scheme.activations, activations);
      }
    }
  }
}

TEST_F(QuantizerTest, TheIgnoreListIsExactlyWhatHasNoScale) {
  const std::string in = make_source(block(), true);
  QuantizeOptions options;
  options.exclude = {"self_attn"};
  ASSERT_TRUE(quantize(in, path("out"), options).ok());
  std::set<std::string> plain = {"lm_head"};  // listed though it is the embedding's matrix
  auto reader = CheckpointReader::open(path("out")).value();
  for (const TensorInfo& t : reader->tensors()) {
    const std::string module = t.name.substr(0, t.name.rfind('.'));
    if (t.shape.size() == 2 && t.name.ends_with(".weight") && module != "model.embed_tokens" &&
        reader->find(module + ".weight_scale") == nullptr) {
      plain.insert(module);
    }
  }
  const auto ignore = config(path("out"))["quantization_config"]["ignore"].get<std::set<std::string>>();
  EXPECT_EQ(ignore, plain);
  EXPECT_EQ(plain.size(), 5u);
}

TEST_F(QuantizerTest, ATiedHeadCanBeQuantisedIntoOneOfItsOwn) {
  const std::string in = make_source(block(), true);
  QuantizeOptions options;
  options.include = {"lm_head"};
  options.verify = true;
  ASSERT_TRUE(quantize(in, path("out"), options).ok());
  EXPECT_EQ(config(path("out"))["tie_word_embeddings"], false);
  auto reader = CheckpointReader::open(path("out")).value();
  EXPECT_EQ(reader->find("lm_head.weight")->dtype, DType::kF8E4M3);
  EXPECT_EQ(reader->find("lm_head.weight_scale")->shape, (std::vector<int64_t>{40, 2}));
  EXPECT_EQ(reader->find("model.embed_tokens.weight")->dtype, DType::kBF16);
  const HfConfig hf = read_hf_config(path("out"), {}).value();
  EXPECT_TRUE(read_quant_plan(path("out"), hf)->module("lm_head", ModuleKind::kLmHead)->scheme.is_mxfp8());
}

// The embedding is read twice where a tied head gets a matrix of its own.
TEST_F(QuantizerTest, ProgressEndsAtItsTotal) {
  const std::string in = make_source(block(), true);
  for (const bool head : {false, true}) {
    uint64_t last = 0, end = 0;
    QuantizeOptions options;
    options.overwrite = true;
    if (head) options.include = {"lm_head"};
    options.progress = [&](uint64_t done, uint64_t total, const std::string& tensor) {
      EXPECT_GT(done, last) << tensor;
      EXPECT_LE(done, total) << tensor;
      last = done;
      end = total;
    };
    ASSERT_TRUE(quantize(in, path("out"), options).ok());
    EXPECT_GT(end, 0u);
    EXPECT_EQ(last, end) << head;
  }
}

TEST_F(QuantizerTest, CopiesCompanionsAndNoStrayWeights) {
  const std::string in = make_source(block());
  ASSERT_TRUE(quantize(in, path("out")).ok());
  std::set<std::string> names;
  for (const auto& e : fs::directory_iterator(path("out"))) names.insert(e.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"config.json", "model.safetensors", "tokenizer.json"}));
}

TEST_F(QuantizerTest, TheScaleRuleIsRecorded) {
  const std::string in = make_source(block());
  std::set<std::string> files;
  for (ScaleRule rule : {ScaleRule::kRceil, ScaleRule::kFloor, ScaleRule::kCompressedTensors}) {
    const std::string name(scale_rule_name(rule));
    QuantizeOptions options;
    options.scale_rule = rule;
    ASSERT_TRUE(quantize(in, path(name), options).ok());
    const std::string file = text(path(name) + "/model.safetensors");
    EXPECT_NE(file.find("\"mx8_scale_rule\":\"" + name + "\""), std::string::npos);
    files.insert(file);
  }
  EXPECT_EQ(files.size(), 3u);
}

TEST_F(QuantizerTest, ShardsWithAnIndex) {
  const std::string in = make_source(block());
  QuantizeOptions options;
  options.max_shard_bytes = 10000;
  options.verify = true;
  const auto report = quantize(in, path("out"), options);
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->files.size(), 2u);
  EXPECT_TRUE(fs::exists(path("out") + "/model.safetensors.index.json"));
}

TEST_F(QuantizerTest, TheResultDoesNotDependOnThreads) {
  const std::string in = make_source(block());
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    ASSERT_TRUE(quantize_checkpoint(in, path(str_cat("out", threads)), {}, pool).ok());
  }
  EXPECT_EQ(text(path("out1") + "/model.safetensors"), text(path("out3") + "/model.safetensors"));
}

// Each row: what is wrong, and what the message must name.
TEST_F(QuantizerTest, RefusesWithOneLineAndLeavesNothing) {
  struct Row {
    std::function<std::string()> source;
    QuantizeOptions options;
    std::string message;
  };
  auto with = [](auto change) {
    QuantizeOptions o;
    change(o);
    return o;
  };
  auto odd = block();
  odd[7].shape = {64, 48};
  auto stacked = block();
  stacked.push_back({"model.layers.0.mlp.experts.down_proj.weight", DType::kBF16, {2, 64, 32}});
  const Row rows[] = {
      {[&] { return make_source(odd); }, {}, "48 input features, not a multiple of 32"},
      {[&] { return make_source(stacked); }, {}, "[2, 64, 32]"},
      {[&] { return make_source(block()); }, with([](auto& o) { o.exclude = {"q_proj"}; }),
       "q_proj would stay plain while"},
      {[&] { return make_source(block()); }, with([](auto& o) { o.exclude = {"gate_proj"}; }),
       "exclude both or neither"},
      {[&] { return make_source(block()); }, with([](auto& o) { o.exclude = {"no_such_layer"}; }),
       "no module matches 'no_such_layer'"},
      {[&] { return make_source(block()); }, with([](auto& o) { o.exclude = {"("}; }), "("},
      {[&] { return make_source(block()); }, with([](auto& o) { o.include = {"embed_tokens"}; }),
       "embedding"},
      {[&] { return make_source(block()); }, with([](auto& o) { o.exclude = {"_proj"}; }),
       "no linear layer to quantise"},
      {[&] { return std::string(MX8_SOURCE_DIR "/tests/data/checkpoints/ct_w8a8"); }, {},
       "already quantised"},
      {[&] { return path("nowhere"); }, {}, "nowhere"},
  };
  for (const Row& row : rows) {
    const auto report = quantize(row.source(), path("out"), row.options);
    ASSERT_FALSE(report.ok()) << row.message;
    EXPECT_NE(report.error().message.find(row.message), std::string::npos) << report.error().message;
    EXPECT_EQ(report.error().message.find('\n'), std::string::npos);
    EXPECT_FALSE(fs::exists(path("out")));
    EXPECT_FALSE(fs::exists(path("out.partial")));
  }
}

TEST_F(QuantizerTest, NanInTheSourceIsNamed) {
  const std::string in = make_source(block());
  std::fstream file(in + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  auto reader = CheckpointReader::open(in).value();
  const TensorInfo* t = reader->find("model.layers.0.mlp.up_proj.weight");
  file.seekp(static_cast<std::streamoff>(t->begin) + 10);
  file.write("\xC0\x7F", 2);
  file.close();
  const auto report = quantize(in, path("out"));
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("up_proj.weight holds NaN"), std::string::npos);
}

TEST_F(QuantizerTest, OverwritesOnlyWhenAsked) {
  const std::string in = make_source(block());
  ASSERT_TRUE(quantize(in, path("out")).ok());
  EXPECT_NE(quantize(in, path("out")).error().message.find("--overwrite"), std::string::npos);
  QuantizeOptions options;
  options.overwrite = true;
  EXPECT_TRUE(quantize(in, path("out"), options).ok());
  EXPECT_NE(quantize(in, in, options).error().message.find("cannot replace its source"), std::string::npos);
  EXPECT_TRUE(fs::exists(in + "/model.safetensors"));
}

// Each row: a name for the result, what lies there before, and the refusal (empty: it is written).
TEST_F(QuantizerTest, WhereTheResultMayGo) {
  const std::string in = make_source(block());
  ASSERT_TRUE(quantize(in, path("old")).ok());
  fs::create_directories(path("empty"));
  fs::create_directories(path("parent"));
  fs::copy(in, path("parent/source"));
  std::ofstream(path("parent/config.json")) << "{}";
  fs::create_directories(path("letters"));
  std::ofstream(path("letters/letter.txt")) << "precious";
  std::ofstream(path("file")) << "precious";
  fs::create_directory_symlink("old", path("link"));
  fs::create_directory_symlink("gone", path("loose"));
  struct Row {
    std::string in;
    std::string out;
    bool overwrite;
    std::string message;
    std::string result;  // the folder that then holds the model
  };
  const Row rows[] = {
      {in, path("slash/"), false, "", "slash"},
      {in, path("deep/er/one"), false, "", "deep/er/one"},
      {in, path("deep/../up"), false, "", "up"},
      {in, path("empty"), false, "", "empty"},
      {in, path("old"), true, "", "old"},
      {in, path("link"), true, "", "old"},
      {in, in + "/inside", false, "", "source/inside"},
      {in, path("link"), false, "--overwrite", ""},
      {in, path("old"), false, "--overwrite", ""},
      {in, path("loose"), true, "is not a folder", ""},
      {in, path("file"), true, "is not a folder", ""},
      {in, path("letters"), true, "holds files but no config.json", ""},
      {path("parent/source"), path("parent"), true, "cannot replace its source", ""},
      {in, "", false, "''", ""},
      {in, "/", true, "cannot replace its source", ""},
      {in, path("file/x"), false, "Not a directory", ""},
      {in, "/proc/x", false, "/proc/x.partial", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.out);
    QuantizeOptions options;
    options.overwrite = row.overwrite;
    const auto report = quantize(row.in, row.out, options);
    EXPECT_EQ(report.ok(), row.message.empty());
    if (!report.ok()) {
      EXPECT_NE(report.error().message.find(row.message), std::string::npos)
          << report.error().message;
    }
    if (!row.result.empty()) {
      EXPECT_EQ(config(path(row.result)).count("quantization_config"), 1u);
      EXPECT_FALSE(fs::exists(path(row.result) + ".partial"));
    }
  }
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(text(path("file")), "precious");
  EXPECT_EQ(text(path("letters/letter.txt")), "precious");
  EXPECT_TRUE(fs::exists(path("parent/source/model.safetensors")));
}

TEST_F(QuantizerTest, AKilledRunLeavesNoModelAndCanBeRepeated) {
  const std::string in = make_source(block());
  const pid_t child = ::fork();
  if (child == 0) {
    QuantizeOptions options;
    options.progress = [](uint64_t done, uint64_t total, const std::string&) {
      if (2 * done > total) ::raise(SIGKILL);
    };
    (void)quantize(in, path("out"), options);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(fs::exists(path("out")));
  ASSERT_TRUE(fs::exists(path("out.partial")));
  EXPECT_FALSE(fs::exists(path("out.partial/config.json")));
  EXPECT_FALSE(CheckpointReader::open(path("out.partial")).ok());
  EXPECT_TRUE(quantize(in, path("out")).ok());
  EXPECT_FALSE(fs::exists(path("out.partial")));
}

TEST(ModuleRole, Table) {
  EXPECT_EQ(module_role("model.layers.3.mlp.gate"), ModuleRole::kRouter);
  EXPECT_EQ(module_role("model.layers.3.mlp.gate_proj"), ModuleRole::kBlockLinear);
  EXPECT_EQ(module_role("model.layers.3.block_sparse_moe.gate"), ModuleRole::kRouter);
  EXPECT_EQ(module_role("model.layers.3.block_sparse_moe.experts.7.w2"), ModuleRole::kBlockLinear);
  EXPECT_EQ(module_role("model.layers.3.mlp.shared_expert_gate"), ModuleRole::kRouter);
  EXPECT_EQ(module_role("lm_head"), ModuleRole::kLmHead);
  EXPECT_EQ(module_role("model.embed_tokens"), ModuleRole::kEmbedding);
  EXPECT_EQ(module_role("model.norm"), ModuleRole::kOther);
}

}  // namespace
}  // namespace mx8
