// Safetensors files: an 8-byte little-endian header length, a JSON header, then the tensors' bytes.
//
// The reader is stricter than the format's own library where a lenient reading would hide damage:
// every byte after the header belongs to exactly one tensor (no holes, no overlaps, nothing after
// the last one), names are unique, and each tensor's bytes match its dtype and shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mmap_file.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace mx8 {

inline constexpr uint64_t kSafetensorsMaxHeader = 100'000'000;  // the limit of the format's library

// Where one tensor lies. `begin` and `end` are bytes from the start of the file.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // row-major; empty for a scalar
  uint64_t begin = 0;
  uint64_t end = 0;

  int64_t elements() const;
  uint64_t bytes() const { return end - begin; }
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;                            // in the order of their bytes
  std::vector<std::pair<std::string, std::string>> metadata;  // "__metadata__"
  uint64_t data_begin = 0;
};

// The length of the JSON header, from the first bytes of a file (`front` holds at least
// min(file_size, 8) of them; more of them make better messages). Refuses, by name, empty and cut
// files, Git LFS pointers and lengths that cannot be.
Result<uint64_t> safetensors_header_length(std::span<const std::byte> front, uint64_t file_size,
                                           const std::string& path);

// Parses the JSON header of a file of `file_size` bytes. Errors name `path` and the tensor.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t file_size,
                                                   const std::string& path);

// Both steps on an open file; reads nothing but the header.
Result<SafetensorsHeader> read_safetensors_header(const ReadFile& file);
Result<SafetensorsHeader> read_safetensors_header(const MmapFile& file);

// "[2, 3]"
std::string describe_shape(std::span<const int64_t> shape);

}  // namespace mx8
