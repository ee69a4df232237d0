// For tests: checkpoints that are changed in memory and written anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace mx8::test {

struct RawTensor {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};
struct RawCheckpoint {
  std::string config;  // the text of config.json
  std::map<std::string, RawTensor> tensors;
};
RawCheckpoint read_checkpoint(const std::string& folder);
void write_checkpoint(const RawCheckpoint& checkpoint, const std::string& folder);
// Sets a field of config.json to a value given as JSON text; "" removes it.
void set_field(RawCheckpoint& checkpoint, const std::string& field, const std::string& value);

// A fresh folder, removed at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace mx8::test
