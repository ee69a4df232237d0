#include <sys/mman.h>

#include "base/strings.h"
#include "model/registry.h"

namespace mx8 {

namespace {

// Notes what it is asked for. The bytes it answers with are one mapping of zeros that is never
// written, so it takes no memory however large the tensors are.
class RecordingSource final : public TensorSource {
 public:
  ~RecordingSource() override {
    for (const Mapping& m : mappings_) ::munmap(m.data, m.size);
  }

  bool has(std::string_view, bool expected) const override { return expected; }
  const TensorInfo* find(std::string_view) const override { return nullptr; }

  Result<TensorData> load(const TensorRequest& request) override {
    const auto bytes = tensor_bytes(request.dtypes.front(), request.shape);
    if (!bytes) return invalid_argument(str_cat(request.name, " would be larger than memory can be"));
    MX8_RETURN_IF_ERROR(grow(*bytes));
    requests_.push_back(request);
    return TensorData::view(request.dtypes.front(), request.shape,
                            {static_cast<const std::byte*>(zeros_), static_cast<size_t>(*bytes)});
  }

  void release(std::string_view) override {}
  void mark_used(std::string_view) override {}
  std::vector<std::string> unused() const override { return {}; }

  std::vector<TensorRequest> take() { return std::move(requests_); }

 private:
  // Earlier mappings stay: views of them may still be read.
  Result<void> grow(uint64_t bytes) {
    if (bytes <= size_) return {};
    void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
      return resource_exhausted(str_cat("cannot reserve ", format_bytes(bytes), " of address space"));
    }
    mappings_.push_back({map, bytes});
    zeros_ = map;
    size_ = bytes;
    return {};
  }

  struct Mapping {
    void* data;
    size_t size;
  };
  void* zeros_ = nullptr;
  size_t size_ = 0;
  std::vector<Mapping> mappings_;
  std::vector<TensorRequest> requests_;
};

}  // namespace

Result<std::vector<TensorRequest>> list_tensors(const HfConfig& config, const QuantPlan& plan) {
  RecordingSource source;
  LoadOptions options;
  options.caps = DeviceCaps{};
  options.list_only = true;
  MX8_TRY(const std::unique_ptr<Model> empty, load_model(source, config, plan, options));
  return source.take();
}

}  // namespace mx8
