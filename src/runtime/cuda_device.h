// The GPUs of this machine, their memory, and NVIDIA's libraries, each opened when first asked for:
// a machine without them is a reason in a Result, never a failed start. A program built without
// CUDA gives that as the reason. No CUDA header is needed to include this one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"
#include "runtime/device_caps.h"

namespace mx8 {

// The driver, libcuda.
Result<void> cuda_driver();
// cuBLASLt, of the major version this program was compiled against: its dlopen handle.
Result<void*> cublaslt_library();

// How many GPUs there are (at least 1), or why none can be used.
Result<int> cuda_device_count();
// GPU `ordinal` of this machine; or why it cannot be used.
Result<DeviceCaps> detect_cuda_caps(int ordinal);

// Owned bytes of one GPU's memory, 256-byte aligned. Movable.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // Not initialised. The error names the size and what the GPU has free.
  static Result<DeviceBuffer> allocate(int ordinal, size_t size);
  // The same with all bytes 0.
  static Result<DeviceBuffer> zeroed(int ordinal, size_t size);
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBuffer();

  // Copies `size` CPU bytes to `offset`; done when it returns.
  Result<void> upload(size_t offset, const void* from, size_t size);

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void swap(DeviceBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(ordinal_, other.ordinal_);
  }
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  int ordinal_ = 0;
};

}  // namespace mx8
