#include "checkpoint/tensor_source.h"

#include <cstdlib>

namespace mx8 {

namespace {
constexpr size_t kAlignment = 64;
}  // namespace

std::optional<uint64_t> tensor_bytes(DType dtype, std::span<const int64_t> shape) {
  uint64_t bytes = static_cast<uint64_t>(dtype_size(dtype));
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) return std::nullopt;
  }
  return bytes;
}

void TensorData::FreeAligned::operator()(std::byte* p) const { std::free(p); }

TensorData TensorData::view(DType dtype, std::vector<int64_t> shape,
                            std::span<const std::byte> bytes) {
  const std::optional<uint64_t> need = tensor_bytes(dtype, shape);
  MX8_CHECK(need && *need == bytes.size(), describe_shape(shape), bytes.size());
  TensorData data;
  data.dtype_ = dtype;
  data.shape_ = std::move(shape);
  data.bytes_ = bytes;
  return data;
}

TensorData TensorData::allocate(DType dtype, std::vector<int64_t> shape) {
  const std::optional<uint64_t> need = tensor_bytes(dtype, shape);
  MX8_CHECK(need.has_value(), describe_shape(shape));
  const size_t padded = (*need + kAlignment - 1) / kAlignment * kAlignment;
  TensorData data;
  data.buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, padded)));
  MX8_CHECK(data.buffer_ != nullptr || padded == 0, "out of memory", padded);
  data.dtype_ = dtype;
  data.shape_ = std::move(shape);
  data.bytes_ = {data.buffer_.get(), *need};
  return data;
}

int64_t TensorData::elements() const {
  return static_cast<int64_t>(bytes_.size()) / dtype_size(dtype_);
}

std::span<std::byte> TensorData::mutable_bytes() {
  MX8_CHECK(owned() || bytes_.empty(), "a view cannot be written");
  return {buffer_.get(), bytes_.size()};
}

}  // namespace mx8
