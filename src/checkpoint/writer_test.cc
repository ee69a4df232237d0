#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "base/strings.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_test_util.h"
#include "checkpoint/companions.h"
#include "checkpoint/config_writer.h"
#include "checkpoint/quant_config.h"
#include "checkpoint/safetensors_writer.h"

namespace mx8 {
namespace {

using test::expect_contains;
using test::TempFolder;

std::vector<TensorDecl> some_tensors() {
  return {{"b.weight", DType::kF8E4M3, {3, 5}},
          {"b.weight_scale", DType::kU8, {3}},
          {"a \"quoted\" \xC3\xA9", DType::kBF16, {7}},
          {"empty", DType::kF32, {0, 4}},
          {"scalar", DType::kF32, {}},
          {"c", DType::kF16, {2, 2}}};
}

std::string bytes_for(const TensorDecl& tensor) {
  size_t count = static_cast<size_t>(dtype_size(tensor.dtype));
  for (const int64_t extent : tensor.shape) count *= static_cast<size_t>(extent);
  return test::counting_bytes(count, static_cast<int>(tensor.name.size()));
}

Result<void> write_text(SafetensorsWriter& writer, const std::string& name, std::string_view text) {
  return writer.write(name, std::as_bytes(std::span(text)));
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

void expect_round_trip(const std::string& folder, const std::vector<TensorDecl>& tensors) {
  auto reader = CheckpointReader::open(folder, {LoadMode::kMmap});
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  ASSERT_EQ((*reader)->tensors().size(), tensors.size());
  for (const TensorDecl& tensor : tensors) {
    SCOPED_TRACE(tensor.name);
    const auto data = (*reader)->load_whole(tensor.name);
    ASSERT_TRUE(data.ok()) << data.error().message;
    EXPECT_EQ(data->dtype(), tensor.dtype);
    EXPECT_EQ(data->shape(), tensor.shape);
    EXPECT_FALSE(data->owned()) << "not aligned in the file";
    const auto bytes = data->bytes();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              bytes_for(tensor));
  }
}

TEST(SafetensorsWriter, OneFile) {
  const TempFolder folder;
  const auto tensors = some_tensors();
  auto writer = SafetensorsWriter::create(folder.path(), tensors, 1 << 20, {{"format", "pt"}});
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"model.safetensors.partial"});
  // Backwards and in pieces.
  for (auto it = tensors.rbegin(); it != tensors.rend(); ++it) {
    const std::string bytes = bytes_for(*it);
    const size_t half = bytes.size() / 2;
    ASSERT_TRUE(write_text(*writer, it->name, std::string_view(bytes).substr(0, half)).ok());
    ASSERT_TRUE(write_text(*writer, it->name, std::string_view(bytes).substr(half)).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"model.safetensors"});
  EXPECT_EQ(writer->files(), std::vector<std::string>{"model.safetensors"});
  expect_round_trip(folder.path(), tensors);
  const auto header =
      read_safetensors_header(*ReadFile::open(folder.path() + "/model.safetensors"));
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->data_begin % 8, 0u);
  EXPECT_EQ(header->metadata[0].second, "pt");
}

TEST(SafetensorsWriter, Shards) {
  const TempFolder folder;
  const auto tensors = some_tensors();
  auto writer = SafetensorsWriter::create(folder.path(), tensors, 16, {});
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  EXPECT_EQ(writer->total_bytes(), 15u + 3 + 14 + 0 + 4 + 8);
  ASSERT_EQ(writer->files().size(), 4u);
  EXPECT_EQ(writer->files()[1], "model-00002-of-00004.safetensors");
  for (const TensorDecl& tensor : tensors) {
    ASSERT_TRUE(write_text(*writer, tensor.name, bytes_for(tensor)).ok());
  }
  EXPECT_FALSE(names_in(folder.path()).contains("model.safetensors.index.json"));
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_EQ(names_in(folder.path()).size(), 5u);
  expect_round_trip(folder.path(), tensors);
}

TEST(SafetensorsWriter, AnAbandonedWriterLeavesNothing) {
  const TempFolder folder;
  {
    auto writer = SafetensorsWriter::create(folder.path(), some_tensors(), 16, {});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(write_text(*writer, "scalar", "1234").ok());
    EXPECT_EQ(names_in(folder.path()).size(), 4u);
  }
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(SafetensorsWriter, MisuseDies) {
  const TempFolder folder;
  auto writer = SafetensorsWriter::create(folder.path(), some_tensors(), 1 << 20, {});
  ASSERT_TRUE(writer.ok());
  EXPECT_DEATH(static_cast<void>(writer->finish()), "");
  EXPECT_DEATH(static_cast<void>(write_text(*writer, "scalar", "12345")), "scalar");
  EXPECT_DEATH(static_cast<void>(write_text(*writer, "other", "1")), "other");
}

TEST(SafetensorsWriter, ErrorsAreNamed) {
  const auto nowhere = SafetensorsWriter::create("/nowhere/at/all", some_tensors(), 1, {});
  ASSERT_FALSE(nowhere.ok());
  expect_contains(nowhere.error().message, "/nowhere/at/all/model-00001-of-");
  const TempFolder folder;
  const TensorDecl twice{"t", DType::kU8, {1}};
  const auto duplicate = SafetensorsWriter::create(folder.path(), {twice, twice}, 1 << 20, {});
  ASSERT_FALSE(duplicate.ok());
  expect_contains(duplicate.error().message, "\"t\"");
  const Result<void> full = write_file_atomic("/nowhere/at/all.json", "x");
  ASSERT_FALSE(full.ok());
  expect_contains(full.error().message, "/nowhere/at/all.json");
}

// Bytes of mapped files that count as this process's memory.
int64_t resident_file_bytes() {
  std::istringstream status(test::read_file("/proc/self/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssFile:")) return std::stoll(line.substr(8)) * 1024;
  }
  return -1;
}

TEST(CheckpointReader, ReleasedTensorsStopCountingAsMemory) {
  constexpr int64_t kTensor = 2 << 20, kCount = 24;
  const TempFolder folder;
  std::vector<TensorDecl> tensors;
  for (int i = 0; i < kCount; ++i) tensors.push_back({str_cat("t", i), DType::kU8, {kTensor}});
  auto writer = SafetensorsWriter::create(folder.path(), tensors, uint64_t{1} << 40, {});
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  const std::string bytes(kTensor, 'x');
  for (const TensorDecl& tensor : tensors) {
    ASSERT_TRUE(write_text(*writer, tensor.name, bytes).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  if (resident_file_bytes() < 0) GTEST_SKIP() << "the system does not tell RssFile";
  auto reader = CheckpointReader::open(folder.path(), {LoadMode::kMmap});
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  const int64_t before = resident_file_bytes();
  const auto peak = [&](bool release) {
    int64_t most = 0, sum = 0;
    for (const TensorDecl& tensor : tensors) {
      const auto data = (*reader)->load_whole(tensor.name);
      for (const uint8_t byte : data->as<uint8_t>()) sum += byte;
      most = std::max(most, resident_file_bytes() - before);
      if (release) (*reader)->release(tensor.name);
    }
    EXPECT_EQ(sum, kCount * kTensor * 'x');
    return most;
  };
  EXPECT_LT(peak(true), 3 * kTensor);
  EXPECT_GT(peak(false), kCount * kTensor * 9 / 10);  // what it would be without release()
}

TEST(ConfigWriter, KeepsKeysAndTheirOrder) {
  const std::string text =
      R"({"z": 1e-05, "quantization_config": {"old": 1}, "a": "\u00e9", "n": 12345678901})";
  const auto config = with_quantization_config(text, "config.json", R"({"quant_method":"x"})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(*config,
            "{\n  \"z\": 1e-05,\n  \"quantization_config\": {\n    \"quant_method\": \"x\"\n  },\n"
            "  \"a\": \"\xC3\xA9\",\n  \"n\": 12345678901\n}\n");
  const auto removed = with_quantization_config(text, "config.json", "");
  EXPECT_EQ(*removed, "{\n  \"z\": 1e-05,\n  \"a\": \"\xC3\xA9\",\n  \"n\": 12345678901\n}\n");
  EXPECT_FALSE(with_quantization_config("[]", "config.json", "").ok());
  EXPECT_FALSE(with_quantization_config("{", "config.json", "").ok());
}

TEST(ConfigWriter, OurReadersTakeWhatItWrites) {
  for (const auto scheme : {ActivationScheme::kNone, ActivationScheme::kDynamicMxfp8}) {
    QuantDescription d;
    d.activations = scheme;
    d.ignore = {"lm_head", "model.layers.0.mlp.gate"};
    d.producer_version = "0.1";
    const auto check = [&](const Result<QuantPlan>& plan, ActivationScheme expected) {
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      EXPECT_EQ(plan->module("model.layers.0.mlp.up_proj")->scheme, QuantScheme::mxfp8(expected));
      EXPECT_TRUE(plan->module("lm_head", ModuleKind::kLmHead)->scheme.is_plain());
      EXPECT_TRUE(plan->module("model.layers.0.mlp.gate")->scheme.is_plain());
      EXPECT_TRUE(plan->unmatched().empty());
    };
    check(parse_quant_plan(compressed_tensors_config(d), "c", "", ""), scheme);
    check(parse_quant_plan(modelopt_config(d), "c", modelopt_side_file(d), "s"),
          ActivationScheme::kDynamicMxfp8);
    check(parse_quant_plan("", "c", modelopt_side_file(d), "s"), ActivationScheme::kDynamicMxfp8);
  }
}

TEST(Companions, ReplaceFilesAndPassOverWhatIsNone) {
  namespace fs = std::filesystem;
  for (const Companions which : {Companions::kAll, Companions::kNamed}) {
    const TempFolder from, to;
    from.write("tokenizer.json", "new");
    from.write("notes.txt", "new");
    from.write("config.json", "new");
    from.write("chat_template.jinja.target", "linked");
    fs::create_symlink("chat_template.jinja.target", from.path() + "/chat_template.jinja");
    fs::create_symlink("gone", from.path() + "/tokenizer_config.json");
    fs::create_symlink("tokenizer_loop.json", from.path() + "/tokenizer_loop.json");
    fs::create_directory(from.path() + "/tokenizer_folder.json");
    to.write("tokenizer.json", "an older and longer one");
    to.write("config.json", "old");
    to.write("mine", "old");
    const auto copied = copy_companions(from.path(), to.path(), which);
    ASSERT_TRUE(copied.ok()) << copied.error().message;
    std::set<std::string> names = {"tokenizer.json", "chat_template.jinja", "config.json", "mine"};
    if (which == Companions::kAll) names.insert({"notes.txt", "chat_template.jinja.target"});
    EXPECT_EQ(names_in(to.path()), names);
    EXPECT_EQ(test::read_file(to.path() + "/tokenizer.json"), "new");
    EXPECT_FALSE(fs::is_symlink(to.path() + "/chat_template.jinja"));
    EXPECT_EQ(test::read_file(to.path() + "/chat_template.jinja"), "linked");
    EXPECT_EQ(test::read_file(to.path() + "/config.json"), "old");
    EXPECT_EQ(test::read_file(to.path() + "/mine"), "old");
  }
  const TempFolder from;
  from.write("tokenizer.json", "new");
  expect_contains(copy_companions(from.path(), from.path() + "/nowhere").error().message,
                  "tokenizer.json");
  expect_contains(copy_companions(from.path() + "/nowhere", from.path()).error().message,
                  "cannot list");
}

}  // namespace
}  // namespace mx8
