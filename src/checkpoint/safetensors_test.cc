#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/strings.h"
#include "checkpoint/checkpoint_test_util.h"

// Every operator new of this program is counted: a broken file must not make the reader allocate
// more than the file's own size.
namespace {
std::atomic<size_t> live_bytes{0};
std::atomic<size_t> peak_bytes{0};

void* counted(size_t size) {
  void* p = std::malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  const size_t live = live_bytes.fetch_add(malloc_usable_size(p)) + malloc_usable_size(p);
  size_t peak = peak_bytes.load();
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live)) {
  }
  return p;
}
void uncounted(void* p) {
  if (p != nullptr) live_bytes.fetch_sub(malloc_usable_size(p));
  std::free(p);
}
}  // namespace

void* operator new(size_t size) { return counted(size); }
void* operator new[](size_t size) { return counted(size); }
void operator delete(void* p) noexcept { uncounted(p); }
void operator delete[](void* p) noexcept { uncounted(p); }
void operator delete(void* p, size_t) noexcept { uncounted(p); }
void operator delete[](void* p, size_t) noexcept { uncounted(p); }

namespace mx8 {
namespace {

using test::expect_contains;
using test::safetensors_file;

constexpr size_t kOverhead =
    32 << 10;  // buffers of fixed size: messages, names, the parser's state

const std::string kGood =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
    R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]},)"
    R"("s":{"dtype":"U8","shape":[],"data_offsets":[22,23]},)"
    R"("z":{"dtype":"F32","shape":[0,4],"data_offsets":[23,23]}})";

TEST(Safetensors, ReadsAGoodFile) {
  const test::TempFolder folder;
  const std::string path =
      folder.write("x.safetensors", safetensors_file(kGood, std::string(23, 1)));
  const auto check = [&](const Result<SafetensorsHeader>& header) {
    ASSERT_TRUE(header.ok()) << header.error().message;
    const uint64_t data = 8 + kGood.size();
    ASSERT_EQ(header->tensors.size(), 4u);
    EXPECT_EQ(header->tensors[0].name, "a");
    EXPECT_EQ(header->tensors[0].dtype, DType::kF32);
    EXPECT_EQ(header->tensors[0].shape, (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(header->tensors[0].begin, data);
    EXPECT_EQ(header->tensors[1].begin, data + 16);
    EXPECT_EQ(header->tensors[1].end, data + 22);
    EXPECT_EQ(header->tensors[2].elements(), 1);
    EXPECT_EQ(header->tensors[3].elements(), 0);
    ASSERT_EQ(header->metadata.size(), 1u);
    EXPECT_EQ(header->metadata[0].first, "format");
    EXPECT_EQ(header->metadata[0].second, "pt");
  };
  check(read_safetensors_header(*ReadFile::open(path)));
  check(read_safetensors_header(*MmapFile::open(path)));
}

TEST(Safetensors, AcceptsAnEmptyHeaderAndPadding) {
  const auto header = parse_safetensors_header("{}   ", 13, "x");
  ASSERT_TRUE(header.ok()) << header.error().message;
  EXPECT_TRUE(header->tensors.empty());
}

struct BrokenFile {
  const char* what;
  std::string bytes;
  std::vector<std::string> named;  // what the message must say
};

std::string one_tensor(const std::string& fields) { return "{\"t\":{" + fields + "}}"; }

std::string with_length(uint64_t length, std::string_view rest) {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>((length >> (8 * i)) & 0xFF));
  return file.append(rest);
}

std::vector<BrokenFile> broken_files() {
  const std::string t4 = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";
  const std::string two = R"({"p":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                          R"("q":{"dtype":"F32","shape":[1],"data_offsets":)";
  return {
      {"LFS pointer",
       "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb"
       "8f32b1258daaa5e2ca24d17e2393\nsize 12345\n",
       {"Git LFS pointer", "git lfs pull"}},
      {"short LFS pointer", "version https://git-lfs.github.com/spec/v1", {"Git LFS pointer"}},
      {"web page", "<!DOCTYPE html><html><body>404</body></html>", {"web page"}},
      {"GGUF", std::string("GGUF\x03\0\0\0\0\0\0\0", 12), {"GGUF"}},
      {"PyTorch", std::string("PK\x03\x04", 4) + std::string(40, 'x'), {"PyTorch"}},
      {"0 bytes", "", {"is empty"}},
      {"7 bytes", "1234567", {"only 7 bytes"}},
      {"header of 2^64-1",
       with_length(UINT64_MAX, std::string(100, ' ')),
       {"18446744073709551615", "108"}},
      {"header of 2^63", with_length(uint64_t{1} << 63, "{}"), {"9223372036854775808"}},
      {"header past the end", with_length(101, std::string(100, ' ')), {"101", "cut off"}},
      {"last KiB missing",
       safetensors_file(one_tensor(R"("dtype":"U8","shape":[4096],"data_offsets":[0,4096])"),
                        std::string(3072, 'x')),
       {"\"t\"", "1024 bytes after the file's end", "cut off"}},
      {"overlap", safetensors_file(two + "[2,6]}}", "123456"), {"\"p\" and \"q\" overlap"}},
      {"hole",
       safetensors_file(two + "[5,9]}}", "123456789"),
       {"1 bytes before tensor \"q\"", "no tensor"}},
      {"duplicate name",
       safetensors_file("{\"t\":{" + t4 + "},\"t\":{" + t4 + "}}", "1234"),
       {"\"t\" is in the header twice"}},
      {"duplicate metadata",
       safetensors_file(R"({"__metadata__":{},"__metadata__":{}})", ""),
       {"__metadata__", "twice"}},
      {"trailing bytes",
       safetensors_file(one_tensor(t4), "1234" + std::string(16, '!')),
       {"16 bytes after the last tensor"}},
      {"wrong size for the shape",
       safetensors_file(one_tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "1234"),
       {"\"t\" has 4 bytes", "F32 [2] takes 8"}},
      {"shape that overflows",
       safetensors_file(
           one_tensor(R"("dtype":"U8","shape":[4294967296,4294967297],"data_offsets":[0,4])"),
           "1234"),
       {"\"t\"", "more than 2^64"}},
      {"shape above int64",
       safetensors_file(
           one_tensor(R"("dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4])"),
           "1234"),
       {"\"t\"", "shape"}},
      {"negative extent",
       safetensors_file(one_tensor(R"("dtype":"U8","shape":[-4],"data_offsets":[0,4])"), "1234"),
       {"\"t\" has -4 in its shape"}},
      {"offsets reversed",
       safetensors_file(one_tensor(R"("dtype":"U8","shape":[4],"data_offsets":[4,0])"), "1234"),
       {"\"t\" begins at 4"}},
      {"one offset",
       safetensors_file(one_tensor(R"("dtype":"U8","shape":[4],"data_offsets":[4])"), "1234"),
       {"\"t\" needs two data_offsets"}},
      {"three offsets",
       safetensors_file(one_tensor(R"("dtype":"U8","shape":[4],"data_offsets":[0,4,4])"), "1234"),
       {"\"t\"", "data_offsets"}},
      {"unknown dtype",
       safetensors_file(one_tensor(R"("dtype":"F4","shape":[8],"data_offsets":[0,4])"), "1234"),
       {"\"t\"", "\"F4\""}},
      {"missing dtype",
       safetensors_file(one_tensor(R"("shape":[4],"data_offsets":[0,4])"), "1234"),
       {"\"t\" lacks"}},
      {"dtype twice",
       safetensors_file(one_tensor("\"dtype\":\"F32\"," + t4), "1234"),
       {"\"t\" has the field \"dtype\" twice"}},
      {"unknown field",
       safetensors_file(one_tensor(t4 + ",\"stride\":[1]"), "1234"),
       {"\"t\"", "\"stride\""}},
      {"dtype not a string",
       safetensors_file(one_tensor(R"("dtype":7,"shape":[1],"data_offsets":[0,4])"), "1234"),
       {"\"t\"", "7", "dtype"}},
      {"header is a list", safetensors_file("[]", ""), {"header"}},
      {"header is empty", safetensors_file("", ""), {"not valid JSON"}},
      {"header is cut", safetensors_file("{\"t\":{", "1234"), {"not valid JSON", "byte 7"}},
      {"deep nesting", safetensors_file(std::string(100000, '['), ""), {"header"}},
      {"invalid UTF-8",
       safetensors_file("{\"\xff\xfe\":{" + t4 + "}}", "1234"),
       {"not valid JSON"}},
      {"metadata not strings",
       safetensors_file(R"({"__metadata__":{"n":1}})", ""),
       {"__metadata__ \"n\""}},
  };
}

TEST(Safetensors, BrokenFilesAreNamedWithoutLargeAllocations) {
  const test::TempFolder folder;
  int row = 0;
  for (const BrokenFile& file : broken_files()) {
    SCOPED_TRACE(file.what);
    const std::string path = folder.write(str_cat("broken", row++, ".safetensors"), file.bytes);
    for (const bool mapped : {false, true}) {
      const size_t before = live_bytes.load();
      peak_bytes.store(before);
      const auto header = mapped ? read_safetensors_header(*MmapFile::open(path))
                                 : read_safetensors_header(*ReadFile::open(path));
      EXPECT_LE(peak_bytes.load() - before, file.bytes.size() + kOverhead);
      ASSERT_FALSE(header.ok());
      const std::string& message = header.error().message;
      expect_contains(message, path);
      for (const std::string& part : file.named) expect_contains(message, part);
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
  EXPECT_GE(row, 30);
}

TEST(Safetensors, TheCounterSeesLargeAllocations) {
  const size_t before = live_bytes.load();
  peak_bytes.store(before);
  { const std::string large(1 << 20, 'x'); }
  EXPECT_GE(peak_bytes.load() - before, size_t{1} << 20);
}

}  // namespace
}  // namespace mx8
