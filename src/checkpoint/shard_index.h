// model.safetensors.index.json: which file of a folder holds which tensor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace mx8 {

inline constexpr const char* kShardIndexName = "model.safetensors.index.json";
inline constexpr const char* kSingleFileName = "model.safetensors";

struct ShardIndex {
  std::vector<std::string> files;                         // sorted, plain names inside the folder
  std::vector<std::pair<std::string, uint32_t>> tensors;  // sorted by name; index into files
};

Result<ShardIndex> parse_shard_index(std::string_view text, const std::string& path);

}  // namespace mx8
