// Writes safetensors files, one or sharded with an index, with bounded memory.
//
// The tensors are declared first, so the header comes first and the bytes may then arrive in any
// order and in pieces. Files carry the suffix ".partial" until everything was written and synced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace mx8 {

struct TensorDecl {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
};

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

// One file, or shards of at most `max_shard_bytes` of data (a larger tensor gets a shard of its
// own) named model-00001-of-00003.safetensors, with model.safetensors.index.json. Within a file the
// tensors with the widest elements come first, so each one starts aligned.
// An object that is destroyed before finish() removes what it wrote. Not thread-safe.
class SafetensorsWriter {
 public:
  static Result<SafetensorsWriter> create(const std::string& folder,
                                          std::vector<TensorDecl> tensors, uint64_t max_shard_bytes,
                                          const SafetensorsMetadata& metadata);
  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) noexcept;
  ~SafetensorsWriter();

  // Appends bytes to a declared tensor.
  Result<void> write(std::string_view name, std::span<const std::byte> bytes);
  // Checks that every declared byte arrived, syncs, gives the files their names, and writes the
  // index last.
  Result<void> finish();

  const std::vector<std::string>& files() const;  // their final names, without the folder
  uint64_t total_bytes() const;                   // of all tensors

 private:
  struct State;
  explicit SafetensorsWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Writes a small file whole: to "<path>.partial", synced, then renamed.
Result<void> write_file_atomic(const std::string& path, std::string_view text);

}  // namespace mx8
