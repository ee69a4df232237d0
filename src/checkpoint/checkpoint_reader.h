// CheckpointReader: the tensors of a Hugging Face checkpoint folder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_source.h"

namespace mx8 {

enum class LoadMode {
  kAuto,  // map files on local file systems, read them on network ones
  kMmap,  // views into the mapped file, no copies
  kRead,  // owned buffers, filled by large sequential reads
};
std::string_view load_mode_name(LoadMode mode);  // "auto", "mmap", "read"
std::optional<LoadMode> parse_load_mode(std::string_view name);

struct CheckpointOptions {
  LoadMode mode = LoadMode::kAuto;
  // release() also drops the bytes from the page cache: for machines whose GPU shares the host's
  // memory and counts the cache as used. Makes the next start slower.
  bool drop_page_cache = false;
};

// Reads `model.safetensors.index.json` with the files that it names, or else `model.safetensors`;
// no other file is opened. Index and files must agree on every tensor.
// TensorData views point into this object: it must outlive them.
class CheckpointReader final : public TensorSource {
 public:
  static Result<std::unique_ptr<CheckpointReader>> open(const std::string& folder,
                                                        const CheckpointOptions& options = {});
  ~CheckpointReader() override;

  const std::string& folder() const;
  LoadMode mode() const;  // kMmap or kRead, as decided
  // All tensors, sorted by name.
  const std::vector<TensorInfo>& tensors() const;
  // The path of the file that holds a tensor; it must exist.
  const std::string& file_of(std::string_view name) const;
  std::vector<std::string> files() const;
  uint64_t total_bytes() const;  // of all tensors

  // The tensor as it is in the file.
  Result<TensorData> load_whole(std::string_view name);

  bool has(std::string_view name, bool expected) const override;
  const TensorInfo* find(std::string_view name) const override;
  Result<TensorData> load(const TensorRequest& request) override;
  void release(std::string_view name) override;
  void mark_used(std::string_view name) override;
  std::vector<std::string> unused() const override;

 private:
  struct State;
  explicit CheckpointReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mx8
