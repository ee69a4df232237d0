#include "checkpoint/checkpoint_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/strings.h"
#include "checkpoint/checkpoint_test_util.h"
#include "checkpoint/filesystem_kind.h"

namespace mx8 {
namespace {

using test::counting_bytes;
using test::expect_contains;
using test::safetensors_file;
using test::TempFolder;

constexpr LoadMode kModes[] = {LoadMode::kMmap, LoadMode::kRead};

std::string u8_file(const std::string& name, const std::string& shape, size_t bytes,
                    int first = 0) {
  return safetensors_file(str_cat("{\"", name, "\":{\"dtype\":\"U8\",\"shape\":", shape,
                                  ",\"data_offsets\":[0,", bytes, "]}}"),
                          counting_bytes(bytes, first));
}

std::string index_of(const std::vector<std::pair<std::string, std::string>>& map) {
  std::string text = "{\"metadata\":{\"total_size\":1},\"weight_map\":{";
  for (size_t i = 0; i < map.size(); ++i) {
    text += str_cat(i > 0 ? "," : "", '"', map[i].first, "\":\"", map[i].second, '"');
  }
  return text + "}}";
}

std::unique_ptr<CheckpointReader> open_ok(const std::string& folder, LoadMode mode) {
  auto reader = CheckpointReader::open(folder, {mode});
  EXPECT_TRUE(reader.ok()) << reader.error().message;
  return reader.ok() ? std::move(reader).value() : nullptr;
}

std::string open_error(const std::string& folder) {
  std::string message;
  for (const LoadMode mode : kModes) {
    const auto reader = CheckpointReader::open(folder, {mode});
    EXPECT_FALSE(reader.ok());
    if (reader.ok()) return "";
    message = reader.error().message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  return message;
}

std::vector<int> bytes_of(const TensorData& data) {
  std::vector<int> out;
  for (const std::byte b : data.bytes()) out.push_back(std::to_integer<int>(b));
  return out;
}

TEST(CheckpointReader, ReadsASingleFile) {
  const TempFolder folder;
  folder.write("model.safetensors", u8_file("w", "[2,3]", 6, 10));
  for (const LoadMode mode : kModes) {
    SCOPED_TRACE(load_mode_name(mode));
    const auto reader = open_ok(folder.path(), mode);
    ASSERT_TRUE(reader);
    EXPECT_EQ(reader->mode(), mode);
    EXPECT_EQ(reader->total_bytes(), 6u);
    ASSERT_NE(reader->find("w"), nullptr);
    EXPECT_EQ(reader->find("w")->shape, (std::vector<int64_t>{2, 3}));
    EXPECT_TRUE(reader->has("w", false));
    EXPECT_FALSE(reader->has("v", true));
    const auto data = reader->load_whole("w");
    ASSERT_TRUE(data.ok()) << data.error().message;
    EXPECT_EQ(bytes_of(*data), (std::vector<int>{10, 11, 12, 13, 14, 15}));
    EXPECT_EQ(data->owned(), mode == LoadMode::kRead);
    reader->release("w");
    EXPECT_EQ(bytes_of(*data)[0], 10);  // a view is read again after its pages went
  }
}

TEST(CheckpointReader, CutsShards) {
  const TempFolder folder;
  folder.write("model.safetensors", u8_file("w", "[2,4,6]", 48));
  const auto expected = [](int o_count, int r0, int r1, int c0, int c1) {
    std::vector<int> out;
    for (int o = 0; o < o_count; ++o) {
      for (int r = r0; r < r1; ++r) {
        for (int c = c0; c < c1; ++c) out.push_back(o * 24 + r * 6 + c);
      }
    }
    return out;
  };
  for (const LoadMode mode : kModes) {
    SCOPED_TRACE(load_mode_name(mode));
    const auto reader = open_ok(folder.path(), mode);
    ASSERT_TRUE(reader);
    TensorRequest request{"w", TensorKind::kWeight, {DType::kU8}, {2, 4, 6}, {}};
    request.shard = {ShardSpec::Axis::kRows, 1, 2, 2};
    auto rows = reader->load(request);
    ASSERT_TRUE(rows.ok()) << rows.error().message;
    EXPECT_EQ(rows->shape(), (std::vector<int64_t>{2, 2, 6}));
    EXPECT_EQ(bytes_of(*rows), expected(2, 2, 4, 0, 6));
    request.shard = {ShardSpec::Axis::kCols, 2, 3, 2};
    auto cols = reader->load(request);
    ASSERT_TRUE(cols.ok()) << cols.error().message;
    EXPECT_EQ(cols->shape(), (std::vector<int64_t>{2, 4, 2}));
    EXPECT_EQ(bytes_of(*cols), expected(2, 0, 4, 4, 6));
    request.shard = {ShardSpec::Axis::kCols, 0, 3, 32};
    const auto odd = reader->load(request);
    ASSERT_FALSE(odd.ok());
    expect_contains(odd.error().message, "\"w\": 6 cannot be cut into 3");
  }
}

TEST(CheckpointReader, RowShardOfAMatrixIsAView) {
  const TempFolder folder;
  folder.write("model.safetensors", u8_file("w", "[4,2]", 8));
  const auto reader = open_ok(folder.path(), LoadMode::kMmap);
  TensorRequest request{"w", TensorKind::kWeight, {DType::kU8}, {4, 2}, {}};
  request.shard = {ShardSpec::Axis::kRows, 1, 2, 1};
  const auto data = reader->load(request);
  ASSERT_TRUE(data.ok());
  EXPECT_FALSE(data->owned());
  EXPECT_EQ(bytes_of(*data), (std::vector<int>{4, 5, 6, 7}));
}

TEST(CheckpointReader, CopiesTensorsThatStartBetweenElements) {
  // A header of odd length: F32 data at an odd address.
  std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  if (header.size() % 2 == 0) header += ' ';
  const TempFolder folder;
  const float values[2] = {1.5f, -2.0f};
  std::string data(8, '\0');
  std::memcpy(data.data(), values, 8);
  folder.write("model.safetensors", safetensors_file(header, data));
  const auto reader = open_ok(folder.path(), LoadMode::kMmap);
  const auto tensor = reader->load_whole("w");
  ASSERT_TRUE(tensor.ok());
  EXPECT_TRUE(tensor->owned());
  EXPECT_EQ(tensor->as<float>()[1], -2.0f);
}

TEST(CheckpointReader, LoadChecksDtypeAndShape) {
  const TempFolder folder;
  folder.write("model.safetensors", u8_file("w", "[2,3]", 6));
  const auto reader = open_ok(folder.path(), LoadMode::kMmap);
  const auto shape = reader->load({"w", TensorKind::kWeight, {DType::kU8}, {3, 2}, {}});
  ASSERT_FALSE(shape.ok());
  expect_contains(shape.error().message, "\"w\" is [2, 3]; config.json asks for [3, 2]");
  const auto dtype =
      reader->load({"w", TensorKind::kWeight, {DType::kBF16, DType::kF32}, {2, 3}, {}});
  ASSERT_FALSE(dtype.ok());
  expect_contains(dtype.error().message, "\"w\" is U8");
  expect_contains(dtype.error().message, "BF16 or F32");
  const auto missing = reader->load({"v", TensorKind::kWeight, {DType::kU8}, {1}, {}});
  ASSERT_FALSE(missing.ok());
  expect_contains(missing.error().message, "\"v\" is missing");
  EXPECT_EQ(reader->unused(), std::vector<std::string>{"w"});  // failed loads use nothing
}

TEST(CheckpointReader, ListsWhatNothingUsed) {
  const TempFolder folder;
  folder.write("model.safetensors",
               safetensors_file(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                                R"("c":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                                "abc"));
  const auto reader = open_ok(folder.path(), LoadMode::kMmap);
  EXPECT_EQ(reader->unused(), (std::vector<std::string>{"a", "b", "c"}));
  ASSERT_TRUE(reader->load_whole("b").ok());
  reader->mark_used("c");
  EXPECT_EQ(reader->unused(), std::vector<std::string>{"a"});
}

TEST(CheckpointReader, OpensOnlyTheFilesOfTheIndex) {
  const TempFolder folder;
  folder.write("model-1.safetensors", u8_file("a", "[2]", 2));
  folder.write("model-2.safetensors", u8_file("b", "[3]", 3));
  folder.write("model.safetensors", u8_file("a", "[9]", 9));  // stray, other shapes
  folder.write("consolidated.safetensors", "not even a safetensors file");
  folder.write("model.safetensors.index.json",
               index_of({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}}));
  for (const LoadMode mode : kModes) {
    const auto reader = open_ok(folder.path(), mode);
    ASSERT_TRUE(reader);
    EXPECT_EQ(reader->files().size(), 2u);
    EXPECT_EQ(reader->find("a")->shape, std::vector<int64_t>{2});
    expect_contains(reader->file_of("b"), "model-2.safetensors");
    ASSERT_TRUE(reader->load_whole("b").ok());
  }
}

struct BrokenFolder {
  const char* what;
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<std::string> named;
};

TEST(CheckpointReader, BrokenFoldersAreNamed) {
  const std::string index = "model.safetensors.index.json";
  const std::string a = u8_file("a", "[2]", 2);
  const std::vector<BrokenFolder> rows = {
      {"no weights", {{"pytorch_model.bin", "x"}}, {"no model.safetensors", "pytorch_model.bin"}},
      {"missing shard",
       {{"m1.safetensors", a},
        {index, index_of({{"a", "m1.safetensors"}, {"b", "m2.safetensors"}})}},
       {"names 1 of 2 files", "m2.safetensors", "present: m1.safetensors", "stale"}},
      {"shards without the index",
       {{"model-00001-of-00002.safetensors", a}},
       {"model-00001-of-00002.safetensors"}},
      {"tensor listed but absent",
       {{"m1.safetensors", a},
        {index, index_of({{"a", "m1.safetensors"}, {"b", "m1.safetensors"}})}},
       {"m1.safetensors", "\"b\" is not in this file"}},
      {"tensor not listed",
       {{"m1.safetensors", a},
        {"m2.safetensors", u8_file("b", "[1]", 1)},
        {"m3.safetensors", u8_file("c", "[1]", 1)},
        {index, index_of({{"a", "m1.safetensors"}, {"x", "m2.safetensors"}})}},
       {"m2.safetensors", "\"b\" is not listed"}},
      {"tensor listed elsewhere",
       {{"m1.safetensors", a},
        {"m2.safetensors", u8_file("b", "[1]", 1)},
        {index, index_of({{"a", "m2.safetensors"}, {"b", "m1.safetensors"}})}},
       {"m1.safetensors", "\"a\" is listed as part of m2.safetensors"}},
      {"index leaves the folder",
       {{index, index_of({{"a", "../m1.safetensors"}})}},
       {"\"a\"", "../m1.safetensors"}},
      {"index is not JSON", {{index, "{\"weight_map\":"}}, {index, "not valid JSON"}},
      {"index without a map", {{index, "{}"}}, {"weight_map"}},
      {"index with a number", {{index, R"({"weight_map":{"a":3}})"}}, {"\"a\" is mapped to 3"}},
      {"tensor twice in the index",
       {{index, R"({"weight_map":{"a":"m1.safetensors","a":"m1.safetensors"}})"}},
       {"\"a\" appears twice"}},
      {"LFS pointer as the index",
       {{index, "version https://git-lfs.github.com/spec/v1\noid x\nsize 3\n"}},
       {index, "not valid JSON"}},
      {"LFS pointer as a shard",
       {{"m1.safetensors", "version https://git-lfs.github.com/spec/v1\noid x\nsize 3\n"},
        {index, index_of({{"a", "m1.safetensors"}})}},
       {"m1.safetensors", "Git LFS pointer"}},
  };
  for (const BrokenFolder& row : rows) {
    SCOPED_TRACE(row.what);
    const TempFolder folder;
    for (const auto& [name, text] : row.files) folder.write(name, text);
    const std::string message = open_error(folder.path());
    for (const std::string& part : row.named) expect_contains(message, part);
  }
  expect_contains(open_error("/nowhere/at/all"), "does not exist");
}

TEST(CheckpointReader, AFileCutWhileItIsReadIsAnError) {
  const TempFolder folder;
  const std::string path = folder.write("model.safetensors", u8_file("w", "[200]", 200));
  const auto reader = open_ok(folder.path(), LoadMode::kRead);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
  const auto data = reader->load_whole("w");
  ASSERT_FALSE(data.ok());
  expect_contains(data.error().message, path);
}

TEST(FilesystemKind, NetworkMagics) {
  EXPECT_TRUE(is_network_filesystem(0x6969));       // NFS
  EXPECT_TRUE(is_network_filesystem(0x65735546));   // FUSE
  EXPECT_TRUE(is_network_filesystem(0x0BD00BD0));   // Lustre
  EXPECT_FALSE(is_network_filesystem(0xEF53));      // ext4
  EXPECT_FALSE(is_network_filesystem(0x58465342));  // XFS
  EXPECT_FALSE(is_network_filesystem(0x794C7630));  // overlayfs
  EXPECT_FALSE(lies_on_network_filesystem("/nowhere/at/all"));
}

TEST(LoadMode, NamesRoundTrip) {
  for (const LoadMode mode : {LoadMode::kAuto, LoadMode::kMmap, LoadMode::kRead}) {
    EXPECT_EQ(parse_load_mode(load_mode_name(mode)), mode);
  }
  EXPECT_EQ(parse_load_mode("slow"), std::nullopt);
}

}  // namespace
}  // namespace mx8
