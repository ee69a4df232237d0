// Makes a GPU current for the length of a scope. For code that includes CUDA headers anyway.
#pragma once

#include <cuda_runtime.h>

namespace mx8 {

class CudaScope {
 public:
  explicit CudaScope(int ordinal) {
    error_ = cudaGetDevice(&before_);
    device_ = ordinal;
    if (error_ == cudaSuccess && device_ != before_) error_ = cudaSetDevice(device_);
  }
  // The stream's device. A capturing stream cannot be asked for it: then it is the current one.
  explicit CudaScope(cudaStream_t stream) {
    error_ = cudaGetDevice(&before_);
    device_ = before_;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (error_ == cudaSuccess && stream != nullptr)
      error_ = cudaStreamIsCapturing(stream, &capture);
    if (error_ == cudaSuccess && stream != nullptr && capture == cudaStreamCaptureStatusNone)
      error_ = cudaStreamGetDevice(stream, &device_);
    if (error_ == cudaSuccess && device_ != before_) error_ = cudaSetDevice(device_);
  }
  ~CudaScope() {
    if (device_ != before_) cudaSetDevice(before_);
  }
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;
  cudaError_t error() const { return error_; }
  int device() const { return device_; }

 private:
  int before_ = 0, device_ = 0;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace mx8
