#include "runtime/cuda_device.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <string>

#include "base/strings.h"
#include "runtime/cuda_scope.h"

namespace mx8 {
namespace {

Result<void*> open_library(const std::string& name, const char* advice) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* why = dlerror();
  return not_found(
      str_cat(name, " cannot be opened (", why ? why : "no reason given", "): ", advice));
}

Error failed(const char* what, int ordinal, cudaError_t e) {
  return internal_error(str_cat("GPU ", ordinal, ": ", what, ": ", cudaGetErrorString(e)));
}

}  // namespace

Result<void> cuda_driver() {
  static const Result<void*> driver =
      open_library("libcuda.so.1", "install NVIDIA's driver, or run where there is a GPU");
  if (!driver.ok()) return driver.error();
  return {};
}

Result<void*> cublaslt_library() {
  static const Result<void*> library =
      open_library(str_cat("libcublasLt.so.", CUBLAS_VER_MAJOR),
                   "install the CUDA toolkit's cuBLAS or set LD_LIBRARY_PATH");
  return library;
}

Result<int> cuda_device_count() {
  MX8_RETURN_IF_ERROR(cuda_driver());
  int count = 0;
  const cudaError_t e = cudaGetDeviceCount(&count);
  if (e != cudaSuccess) return unsupported(str_cat("no GPU can be used: ", cudaGetErrorString(e)));
  if (count == 0) return not_found("the driver finds no GPU");
  return count;
}

Result<DeviceCaps> detect_cuda_caps(int ordinal) {
  MX8_TRY(const int count, cuda_device_count());
  if (ordinal < 0 || ordinal >= count) {
    return invalid_argument(
        str_cat("there is no GPU ", ordinal, "; this machine has ", count, ", counted from 0"));
  }
  cudaDeviceProp prop;
  const cudaError_t e = cudaGetDeviceProperties(&prop, ordinal);
  if (e != cudaSuccess) return failed("properties", ordinal, e);
  DeviceCaps caps;
  caps.kind = DeviceKind::kCuda;
  caps.name = prop.name;
  caps.ordinal = ordinal;
  caps.sm = 10 * prop.major + prop.minor;
  caps.multiprocessors = prop.multiProcessorCount;
  caps.shared_memory_per_block = static_cast<int>(prop.sharedMemPerBlockOptin);
  caps.memory_bytes = prop.totalGlobalMem;
  const auto library = cublaslt_library();
  if (!library.ok()) caps.cublaslt_missing = library.error().message;
  return caps;
}

Result<DeviceBuffer> DeviceBuffer::allocate(int ordinal, size_t size) {
  const CudaScope scope(ordinal);
  DeviceBuffer out;
  out.ordinal_ = ordinal;
  void* data = nullptr;
  cudaError_t e = scope.error();
  if (e == cudaSuccess && size > 0) e = cudaMalloc(&data, size);
  if (e == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it stays behind, and would be taken for the next launch's
    size_t free_bytes = 0, total = 0;
    cudaMemGetInfo(&free_bytes, &total);
    return resource_exhausted(str_cat("GPU ", ordinal, ": ", format_bytes(size), " wanted, ",
                                      format_bytes(free_bytes), " of ", format_bytes(total),
                                      " free"));
  }
  if (e != cudaSuccess) return failed("allocation", ordinal, e);
  out.data_ = static_cast<std::byte*>(data);
  out.size_ = size;
  return out;
}

Result<DeviceBuffer> DeviceBuffer::zeroed(int ordinal, size_t size) {
  MX8_TRY(DeviceBuffer out, allocate(ordinal, size));
  const CudaScope scope(ordinal);
  cudaError_t e = scope.error();
  if (e == cudaSuccess && size > 0) e = cudaMemset(out.data_, 0, size);
  // A memset may return before it is done, and streams that do not wait for it exist.
  if (e == cudaSuccess) e = cudaDeviceSynchronize();
  if (e != cudaSuccess) return failed("memset", ordinal, e);
  return out;
}

Result<void> DeviceBuffer::upload(size_t offset, const void* from, size_t size) {
  MX8_CHECK(offset + size <= size_, offset, size, size_);
  if (size == 0) return {};
  const CudaScope scope(ordinal_);
  cudaError_t e = scope.error();
  if (e == cudaSuccess) e = cudaMemcpy(data_ + offset, from, size, cudaMemcpyHostToDevice);
  // A copy from pageable memory may return before the last bytes are there.
  if (e == cudaSuccess) e = cudaDeviceSynchronize();
  if (e != cudaSuccess) return failed("upload", ordinal_, e);
  return {};
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ == nullptr) return;
  const CudaScope scope(ordinal_);
  cudaFree(data_);
}

}  // namespace mx8
