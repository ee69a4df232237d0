#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>

#include "base/mmap_file.h"
#include "base/result.h"
#include "base/strings.h"

namespace mx8 {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return invalid_argument(str_cat(x, " is odd"));
  return x / 2;
}

Result<int> quarter(int x) {
  MX8_TRY(const int h, half(x));
  return half(h);
}

TEST(Result, CarriesValueOrError) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message, "3 is odd");
  EXPECT_EQ(quarter(7).error().code, ErrorCode::kInvalidArgument);
  EXPECT_DEATH(static_cast<void>(quarter(6).value()), "3 is odd");
}

TEST(Result, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> r = std::make_unique<int>(3);
  std::unique_ptr<int> p = std::move(r).value();
  EXPECT_EQ(*p, 3);
}

TEST(Check, PrintsValues) { EXPECT_DEATH(MX8_CHECK(1 == 2, "n", 48), "1 == 2 \\(n, 48\\)"); }

TEST(Strings, Nearest) {
  const std::vector<std::string> flags = {"--prompt", "--max-tokens", "--threads"};
  EXPECT_EQ(nearest("--promt", flags), "--prompt");
  EXPECT_EQ(nearest("--max-token", flags), "--max-tokens");
  EXPECT_EQ(nearest("--zzzzzzzzzzz", flags), "");
}

TEST(Strings, SplitJoinBytes) {
  EXPECT_EQ(split("a,,b", ',').size(), 3u);
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
}

TEST(Files, MapAndReadAgree) {
  const std::string path = testing::TempDir() + "/mx8_base_test.bin";
  std::string content(100000, 'x');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7);
  std::ofstream(path, std::ios::binary) << content;
  auto map = MmapFile::open(path);
  ASSERT_TRUE(map.ok());
  auto file = ReadFile::open(path);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->size(), content.size());
  std::vector<std::byte> bytes(5000);
  ASSERT_TRUE(file->read(4000, bytes).ok());
  EXPECT_EQ(std::memcmp(bytes.data(), map->bytes().data() + 4000, bytes.size()), 0);
  map->release(0, content.size());
  EXPECT_EQ(std::memcmp(map->bytes().data(), content.data(), content.size()), 0);
  EXPECT_EQ(file->read(content.size() - 10, bytes).error().code, ErrorCode::kCorrupt);
  std::remove(path.c_str());
  EXPECT_EQ(MmapFile::open(path).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(MmapFile::open(testing::TempDir()).ok());
}

TEST(Files, PipesAndLooseLinksAreNamedAndNotWaitedFor) {
  const std::string path = testing::TempDir() + "mx8_base_test_entry";
  std::remove(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto pipe = ReadFile::open(path);
  ASSERT_FALSE(pipe.ok());
  EXPECT_NE(pipe.error().message.find("not a regular file"), std::string::npos);
  std::remove(path.c_str());
  // Something is there: it must not pass for a file that a checkpoint may lack.
  ASSERT_EQ(::symlink("/nowhere/at/all", path.c_str()), 0);
  const auto link = ReadFile::open(path);
  std::remove(path.c_str());
  ASSERT_FALSE(link.ok());
  EXPECT_EQ(link.error().code, ErrorCode::kIo);
  EXPECT_NE(link.error().message.find("link"), std::string::npos);
}

}  // namespace
}  // namespace mx8
