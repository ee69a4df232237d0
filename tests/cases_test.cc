// What goes wrong with checkpoints in practice, through the program: each case loads and runs, or
// ends in one line that names the thing. The finer rows are in the tests of the layers.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "cli_support.h"
#include "model/raw_checkpoint.h"

namespace mx8 {
namespace {

namespace fs = std::filesystem;
using test::RawCheckpoint;
using test::RawTensor;

const std::string kData = MX8_SOURCE_DIR "/tests/data/";
const std::string kQuantised = kData + "checkpoints/ct_w8a16";
const std::string kBench = " --prompt 4 --generate 2 --reps 1 --threads 1";

// Address space for a process that is about to refuse something; the tiny models run in it too.
// The sanitizers reserve far more for themselves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
const std::string kSmall = kSanitized ? "" : "ulimit -v 300000;";

// Expects exit code 0 where `message` is empty, else 1 and one line with `message` in it.
void expect_outcome(const RunResult& r, const std::string& message, const std::string& what) {
  EXPECT_EQ(r.code, message.empty() ? 0 : 1) << what << "\n" << r.err;
  if (message.empty()) return;
  EXPECT_NE(error_line(r).find(message), std::string::npos) << what << "\n" << r.err;
  EXPECT_EQ(error_line(r) + "\n", r.err) << what;  // the line and nothing else
  EXPECT_EQ(r.out, "") << what;
}

TEST(Cases, Configs) {
  struct Row {
    const char* fixture;  // under tests/data
    std::vector<std::pair<const char*, const char*>> fields;
    std::string message;  // of a load; empty: it runs
  };
  const char* const ct = "checkpoints/ct_w8a16";
  const Row rows[] = {
      {ct, {{"num_attention_heads", "0"}}, "\"num_attention_heads\" is 0"},
      {ct,
       {{"num_attention_heads", "7"},
        {"num_key_value_heads", "7"},
        {"hidden_size", "576"},
        {"head_dim", ""}},
       "divisor of hidden_size, 576"},
      {ct, {{"num_attention_heads", "7"}, {"num_key_value_heads", "3"}}, "divisor of num_att"},
      {ct, {{"num_key_value_heads", "0"}}, "\"num_key_value_heads\" is 0"},
      {ct, {{"hidden_size", "100000000000"}}, "\"hidden_size\" is 100000000000"},
      {ct, {{"hidden_size", "-64"}}, "\"hidden_size\" is -64"},
      {ct, {{"hidden_size", "\"64\""}}, "\"hidden_size\" is \"64\""},
      {ct, {{"vocab_size", "100000000000"}}, "\"vocab_size\" is 100000000000"},
      {ct, {{"intermediate_size", "100000000000"}}, "\"intermediate_size\""},
      {ct, {{"num_hidden_layers", "1000000"}}, "\"num_hidden_layers\" is 1000000"},
      {ct, {{"num_hidden_layers", "0"}}, "\"num_hidden_layers\" is 0"},
      {ct, {{"max_position_embeddings", "1000000000000000000"}}, "\"max_position_embeddings\""},
      // A model that says it can take a billion tokens is not a reason to make tables for them.
      {ct, {{"max_position_embeddings", "1000000000"}}, ""},
      {ct, {{"head_dim", "1000000000"}}, "\"head_dim\" is 1000000000"},
      {ct, {{"head_dim", "15"}}, "head_dim is 15"},
      {ct, {{"architectures", "[\"FooForCausalLM\"]"}}, "\"FooForCausalLM\""},
      {ct, {{"architectures", ""}}, "\"architectures\" is missing"},
      {ct, {{"quantization_config", "{\"quant_method\": \"awq\", \"bits\": 4}"}}, "INT4 AWQ"},
      {ct, {{"quantization_config", "{\"quant_method\": \"mxfp4\"}"}}, "MXFP4"},
      {ct,
       {{"quantization_config", "{\"quant_method\": \"fp8\", \"weight_block_size\": null}"}},
       "FP8 per tensor, not MXFP8"},
      {ct,
       {{"quantization_config", "{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]}"}},
       "FP8 in blocks of 128x128"},
      {"tiny/qwen3_moe_mxfp8", {{"num_experts", "1000000"}}, "\"num_experts\" is 1000000"},
      {"tiny/qwen3_moe_mxfp8",
       {{"quantization_config",
         "{\"quant_method\": \"modelopt\", \"quant_algo\": \"MIXED_PRECISION\", "
         "\"quantized_layers\": {\"model.layers.0.mlp.experts\": {\"quant_algo\": \"NVFP4\"}}}"}},
       "\"model.layers.0.mlp.experts\": the weights are NVFP4"},
  };
  for (const Row& row : rows) {
    RawCheckpoint checkpoint = test::read_checkpoint(kData + row.fixture);
    std::string what;
    for (const auto& [field, value] : row.fields) {
      test::set_field(checkpoint, field, value);
      what += str_cat(field, " ", value, "; ");
    }
    const test::TempFolder folder;
    test::write_checkpoint(checkpoint, folder.path());
    expect_outcome(run_mx8("bench model " + folder.path() + kBench, kSmall), row.message, what);
    expect_outcome(
        run_mx8("bench model " + folder.path() + " --load-format dummy" + kBench, kSmall),
        row.message, "dummy: " + what);
  }
}

// What lies where a weight file should, by a change to a whole folder.
TEST(Cases, Files) {
  struct Row {
    const char* fixture;
    std::function<void(const std::string& folder)> change;
    std::vector<std::string> named;  // empty: it runs
  };
  const auto overwrite = [](const std::string& text) {
    return [text](const std::string& folder) {
      std::ofstream(folder + "/model.safetensors", std::ios::binary) << text;
    };
  };
  const std::string whole = slurp(kQuantised + "/model.safetensors");
  const Row rows[] = {
      {"ct_w8a16",
       overwrite("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"),
       {"Git LFS pointer"}},
      {"ct_w8a16", overwrite(""), {"model.safetensors is empty"}},
      {"ct_w8a16", overwrite("1234567"), {"only 7 bytes"}},
      {"ct_w8a16", overwrite(std::string(8, '\xFF') + whole.substr(8)), {"18446744073709551615"}},
      {"ct_w8a16", overwrite(whole.substr(0, whole.size() - 1024)), {"cut off"}},
      {"ct_w8a16", overwrite(whole + std::string(16, '\0')), {"16 bytes after the last tensor"}},
      {"ct_w8a16",
       [](const std::string& folder) {
         fs::remove(folder + "/model.safetensors");
         ASSERT_EQ(::mkfifo((folder + "/model.safetensors").c_str(), 0600), 0);
       },
       {"model.safetensors", "not a regular file"}},
      {"ct_w8a16",
       [](const std::string& folder) {
         fs::remove(folder + "/config.json");
         ASSERT_EQ(::mkfifo((folder + "/config.json").c_str(), 0600), 0);
       },
       {"config.json", "not a regular file"}},
      {"ct_w8a16",
       [](const std::string& folder) {
         fs::remove(folder + "/model.safetensors");
         fs::create_symlink("../blobs/gone", folder + "/model.safetensors");
       },
       {"model.safetensors", "a link to a file that is not there"}},
      {"ct_w8a16",
       [](const std::string& folder) {
         fs::rename(folder + "/model.safetensors", folder + "/blob");
         fs::create_symlink("blob", folder + "/model.safetensors");
       },
       {}},
      // Only what belongs to the checkpoint is opened.
      {"ct_w8a16",
       [](const std::string& folder) {
         std::ofstream(folder + "/consolidated.safetensors") << "rubbish";
       },
       {}},
      {"ct_sharded", overwrite("rubbish"), {}},
      {"ct_sharded",
       [](const std::string& folder) { fs::remove(folder + "/model-00003-of-00003.safetensors"); },
       {"names 1 of 3 files", "model-00003-of-00003.safetensors", "stale"}},
  };
  for (const Row& row : rows) {
    const TempFolder parent;
    const std::string folder = parent / "model";
    fs::copy(kData + "checkpoints/" + row.fixture, folder, fs::copy_options::recursive);
    row.change(folder);
    const RunResult r = run_mx8("bench model " + folder + kBench, kSmall);
    if (row.named.empty()) expect_outcome(r, "", row.fixture);
    for (const std::string& part : row.named) expect_outcome(r, part, row.fixture);
  }
}

TEST(Cases, Tensors) {
  struct Row {
    const char* what;
    std::function<void(RawCheckpoint&)> change;
    std::vector<std::string> named;
  };
  const std::string down = "model.layers.0.mlp.down_proj";
  const RawTensor scalar = {DType::kF32, {1}, std::vector<std::byte>(4)};
  const auto add = [&](const std::string& name) {
    return [name, scalar](RawCheckpoint& c) { c.tensors[name] = scalar; };
  };
  const Row rows[] = {
      {"a wrapper's prefix",
       [](RawCheckpoint& c) {
         std::map<std::string, RawTensor> renamed;
         for (auto& [name, tensor] : c.tensors) renamed["language_model." + name] = tensor;
         c.tensors = std::move(renamed);
       },
       {}},
      {"a wrapper's prefix, and what the wrapper held beside the text model",
       [scalar](RawCheckpoint& c) {
         std::map<std::string, RawTensor> renamed;
         for (auto& [name, tensor] : c.tensors) renamed["language_model." + name] = tensor;
         renamed["vision_tower.patch_embed.weight"] = scalar;
         c.tensors = std::move(renamed);
       },
       {"vision_tower.patch_embed.weight", "no place in this model"}},
      {"the prefix left away",
       [](RawCheckpoint& c) {
         std::map<std::string, RawTensor> renamed;
         for (auto& [name, tensor] : c.tensors) {
           renamed[name.starts_with("model.") ? name.substr(6) : name] = tensor;
         }
         c.tensors = std::move(renamed);
       },
       {"\"model.embed_tokens.weight\" is missing", "\"embed_tokens.weight\""}},
      {"one scale for the whole tensor",
       [&](RawCheckpoint& c) { c.tensors[down + ".weight_scale"] = scalar; },
       {down + ".weight_scale", "F32", "U8"}},
      {"a second scale", add(down + ".weight_scale_2"), {down + ".weight_scale_2"}},
      {"a scale of activations", add(down + ".input_scale"), {down + ".input_scale"}},
      {"a scale of the KV cache", add("model.layers.0.self_attn.k_proj.k_scale"), {"k_scale"}},
      {"a head that predicts more tokens",
       add("mtp.layers.0.eh_proj.weight"),
       {"mtp.layers.0.eh_proj.weight"}},
      {"scales gone",
       [&](RawCheckpoint& c) { c.tensors.erase(down + ".weight_scale"); },
       {down + ".weight_scale", "\"Linear\" says mxfp8"}},
      {"the description gone",
       [](RawCheckpoint& c) { test::set_field(c, "quantization_config", ""); },
       {"weight_scale", "not quantised"}},
  };
  for (const Row& row : rows) {
    RawCheckpoint checkpoint = test::read_checkpoint(kQuantised);
    row.change(checkpoint);
    const test::TempFolder folder;
    test::write_checkpoint(checkpoint, folder.path());
    const RunResult r = run_mx8("bench model " + folder.path() + kBench);
    if (row.named.empty()) expect_outcome(r, "", row.what);
    for (const std::string& part : row.named) expect_outcome(r, part, row.what);
  }
}

// What the config says of modules without the prefix that the files put before all names.
TEST(Cases, InspectFollowsEntriesBehindAPrefix) {
  const std::string down = "model.layers.0.mlp.down_proj";
  const RawCheckpoint plain = test::read_checkpoint(kData + "checkpoints/base");
  RawCheckpoint checkpoint = test::read_checkpoint(kQuantised);
  checkpoint.tensors[down + ".weight"] = plain.tensors.at(down + ".weight");
  checkpoint.tensors.erase(down + ".weight_scale");
  std::map<std::string, RawTensor> renamed;
  for (auto& [name, tensor] : checkpoint.tensors) renamed["language_model." + name] = tensor;
  checkpoint.tensors = std::move(renamed);
  for (const bool listed : {false, true}) {
    if (listed) {
      checkpoint.config.insert(checkpoint.config.find("\"lm_head\""), "\"" + down + "\", ");
    }
    const test::TempFolder folder;
    test::write_checkpoint(checkpoint, folder.path());
    const RunResult r = run_mx8("inspect " + folder.path() + " --check --json");
    const auto problems = nlohmann::json::parse(r.out)["problems"];
    EXPECT_EQ(problems.size(), listed ? 0u : 1u) << r.out;
  }
}

// tie_word_embeddings x a stored head x the head in the ignore list.
TEST(Cases, TiedHeads) {
  for (const bool tied : {false, true}) {
    for (const bool stored : {false, true}) {
      for (const bool ignored : {false, true}) {
        RawCheckpoint checkpoint = test::read_checkpoint(kQuantised);
        checkpoint.tensors["lm_head.weight"] = checkpoint.tensors.at("model.embed_tokens.weight");
        test::set_field(checkpoint, "tie_word_embeddings", tied ? "true" : "false");
        if (!stored) checkpoint.tensors.erase("lm_head.weight");
        if (!ignored) {
          const size_t place = checkpoint.config.find("\"lm_head\"");
          ASSERT_NE(place, std::string::npos);
          checkpoint.config.erase(place, std::string("\"lm_head\"").size());
        }
        const test::TempFolder folder;
        test::write_checkpoint(checkpoint, folder.path());
        const RunResult r = run_mx8("bench model " + folder.path() + kBench);
        const std::string what = str_cat("tied ", tied, ", stored ", stored, ", ignored ", ignored);
        expect_outcome(r, tied || stored ? "" : "lm_head.weight", what);
        if (r.code != 0) continue;
        EXPECT_NE(r.err.find("14 linears mxfp8"), std::string::npos) << what << r.err;
        EXPECT_NE(r.err.find("lm_head bf16"), std::string::npos) << what << r.err;
      }
    }
  }
}

TEST(Cases, DummyWeightsOfEveryFamily) {
  int run = 0;
  for (const auto& entry : fs::directory_iterator(kData + "tiny")) {
    const std::string folder = entry.path().string();
    if (folder.ends_with("llama_gelu")) continue;  // refused by its activation
    const RunResult r = run_mx8("bench model " + folder + " --load-format dummy" + kBench);
    expect_outcome(r, "", folder);
    EXPECT_NE(r.err.find("dummy weights"), std::string::npos) << r.err;
    ++run;
  }
  EXPECT_GE(run, 28);
}

class QuantizeCases : public testing::Test {
 protected:
  // BF16 matrices of 2 MiB and 4 MiB, 80 MiB in all.
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    RawCheckpoint config = test::read_checkpoint(kData + "checkpoints/base");
    for (const auto& [field, value] :
         std::map<std::string, std::string>{{"hidden_size", "1024"},
                                            {"intermediate_size", "2048"},
                                            {"num_hidden_layers", "4"},
                                            {"num_attention_heads", "16"},
                                            {"num_key_value_heads", "16"},
                                            {"head_dim", "64"}}) {
      test::set_field(config, field, value);
    }
    fs::create_directories(out("shape"));
    std::ofstream(out("shape") + "/config.json") << config.config;
    made_ = run_mx8("make-dummy " + out("shape") + " " + source()).code == 0;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  void SetUp() override { ASSERT_TRUE(made_); }

  static std::string source() { return *folder_ / "source"; }
  static std::string out(const std::string& name) { return *folder_ / name; }

 private:
  static inline TempFolder* folder_ = nullptr;
  static inline bool made_ = false;
};

uint64_t peak_of(const RunResult& r) {
  EXPECT_EQ(r.code, 0) << r.err;
  return nlohmann::json::parse(r.out)["peak_rss_bytes"].get<uint64_t>();
}

TEST_F(QuantizeCases, MemoryIsOneTensorAndAConstant) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers take memory of their own";
  const uint64_t limit = 24 << 20;
  EXPECT_LT(peak_of(run_mx8("quantize " + source() + " " + out("a") + " --json")), limit);
  EXPECT_LT(peak_of(run_mx8("quantize " + source() + " " + out("b") + " --verify --json")), limit);
}

// Weights are let go layer by layer, whether they are stored quantised or become it.
TEST_F(QuantizeCases, LoadingTakesTheResidentWeightsAndALayer) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers take memory of their own";
  ASSERT_EQ(run_mx8("quantize " + source() + " " + out("c")).code, 0);
  const uint64_t limit = fs::file_size(out("c") + "/model.safetensors") + (20 << 20);
  ASSERT_LT(limit, fs::file_size(source() + "/model.safetensors"));
  for (const char* load : {"mmap", "read"}) {
    const std::string flags = kBench + " --json --load " + load;
    EXPECT_LT(peak_of(run_mx8("bench model " + out("c") + flags)), limit) << load;
    EXPECT_LT(peak_of(run_mx8("bench model " + source() + flags + " --quantization mxfp8")), limit)
        << load;
  }
}

TEST_F(QuantizeCases, AFullDiskLeavesNothing) {
  // A limit of 20 MiB on files stands for the end of the disk.
  const RunResult r =
      run_mx8("quantize " + source() + " " + out("full"), "trap '' XFSZ; ulimit -f 40960;");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(error_line(r).find("model.safetensors"), std::string::npos) << r.err;
  EXPECT_NE(error_line(r).find("File too large"), std::string::npos) << r.err;
  EXPECT_FALSE(fs::exists(out("full")));
  EXPECT_FALSE(fs::exists(out("full.partial")));
}

}  // namespace
}  // namespace mx8
