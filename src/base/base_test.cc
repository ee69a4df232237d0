#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>

#include "base/mmap_file.h"
#include "base/result.h"
#include "base/strings.h"
#include "base/text_file.h"

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

TEST(TextFile, ReadsWholeFilesUpToALimit) {
  const std::string path = testing::TempDir() + "mx8_base_test_text";
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, size_t{200001}}) {
    std::string content(size, 'x');
    for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 31);
    std::ofstream(path, std::ios::binary) << content;
    for (const FileKind kind : {FileKind::kRegular, FileKind::kAny}) {
      EXPECT_EQ(read_text_file(path, size, kind).value(), content);
      if (size == 0) continue;
      const auto refused = read_text_file(path, size - 1, kind);
      ASSERT_FALSE(refused.ok());
      EXPECT_NE(refused.error().message.find(path), std::string::npos);
      EXPECT_NE(refused.error().message.find("at most " + format_bytes(size - 1)),
                std::string::npos)
          << refused.error().message;
      EXPECT_NE(refused.error().message.find(str_cat(path, " has ", size, " bytes")),
                std::string::npos)
          << refused.error().message;
    }
  }
  EXPECT_NE(read_text_file(path, 10).error().message.find(" has 200001 bytes; at most"),
            std::string::npos);
  // A stream is read no further than needed.
  EXPECT_NE(read_text_file(path, 10, FileKind::kAny)
                .error()
                .message.find(" has 65536 bytes or more; at most"),
            std::string::npos);
  std::remove(path.c_str());
  for (const FileKind kind : {FileKind::kRegular, FileKind::kAny}) {
    EXPECT_NE(read_text_file(path, 1, kind).error().message.find(path), std::string::npos);
    EXPECT_FALSE(read_text_file(testing::TempDir(), 1 << 20, kind).ok()) << "a folder";
  }
}

TEST(TextFile, PipesAreForCommandLines) {
  const std::string path = testing::TempDir() + "mx8_base_test_pipe";
  std::remove(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(file_exists(path));
  EXPECT_FALSE(read_text_file(path, 100).ok());
  std::thread writer([&] { std::ofstream(path) << "through a pipe"; });
  const auto text = read_text_file(path, 100, FileKind::kAny);
  writer.join();
  std::remove(path.c_str());
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, "through a pipe");
  EXPECT_FALSE(file_exists(path));
}

}  // namespace
}  // namespace mx8
