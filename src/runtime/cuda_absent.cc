// A program built without CUDA.
#include "runtime/cuda_device.h"

namespace mx8 {
namespace {

Error absent() {
  return unsupported("this program was built without CUDA (configure with MX8_CUDA=ON)");
}

}  // namespace

Result<void> cuda_driver() { return absent(); }
Result<void*> cublaslt_library() { return absent(); }
Result<int> cuda_device_count() { return absent(); }
Result<DeviceCaps> detect_cuda_caps(int) { return absent(); }
Result<DeviceBuffer> DeviceBuffer::allocate(int, size_t) { return absent(); }
Result<DeviceBuffer> DeviceBuffer::zeroed(int, size_t) { return absent(); }
Result<void> DeviceBuffer::upload(size_t, const void*, size_t) { return absent(); }
DeviceBuffer::~DeviceBuffer() = default;

}  // namespace mx8
