// Helpers for this layer's tests: temporary folders and checkpoint files made from text.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mx8::test {

// A folder that is removed with everything in it.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "mx8_test_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string write(const std::string& name, std::string_view bytes) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A safetensors file from a header's text and the data's bytes.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
  std::string file;
  for (int i = 0; i < 8; ++i) {
    file.push_back(static_cast<char>((static_cast<uint64_t>(header.size()) >> (8 * i)) & 0xFF));
  }
  return file.append(header).append(data);
}

// Bytes 0, 1, 2, ... from `first`.
inline std::string counting_bytes(size_t count, int first = 0) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(first + static_cast<int>(i));
  return bytes;
}

// Expects that `text` has `part` in it.
inline void expect_contains(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << "missing: " << part << "\nin: " << text;
}

}  // namespace mx8::test
