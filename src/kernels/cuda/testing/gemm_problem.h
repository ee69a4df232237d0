// A synthetic MXFP8 GEMM in device memory with its FP64 reference: what the GPU tests and the GEMM
// benchmark share.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/gemm_params.h"
#include "pack/mma_fragment.h"

// Test and benchmark programs end at the first CUDA error.
#define MX8_CUDA_OK(expr)                                                \
  do {                                                                   \
    const cudaError_t mx8_error = (expr);                                \
    if (mx8_error != cudaSuccess) {                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #expr, \
                   cudaGetErrorString(mx8_error));                       \
      std::exit(1);                                                      \
    }                                                                    \
  } while (false)

namespace mx8::cuda::testing {

// Device memory that frees itself.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(size_t count) : count_(count) {
    T* p = nullptr;
    MX8_CUDA_OK(cudaMalloc(&p, count * sizeof(T) + 256));
    data_.reset(p);
  }
  T* get() const { return data_.get(); }
  size_t size() const { return count_; }
  void fill(int byte) { MX8_CUDA_OK(cudaMemset(data_.get(), byte, count_ * sizeof(T))); }
  void upload(const std::vector<T>& host) {
    MX8_CUDA_OK(
        cudaMemcpy(data_.get(), host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> download() const {
    std::vector<T> host(count_);
    MX8_CUDA_OK(cudaMemcpy(host.data(), data_.get(), count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  struct Free {
    void operator()(T* p) const { cudaFree(p); }
  };
  std::unique_ptr<T, Free> data_;
  size_t count_ = 0;
};

// N(0, sd) weights quantised with ceil(log2(amax / 448)) scales: codes [n, k], scales [n, k / 32].
void generate_weights(uint8_t* codes, uint8_t* scales, int64_t n, int64_t k, uint64_t seed,
                      float sd);
// N(0, 1) values, `count` of them, as BF16 or FP16 (type kBf16 or kFp16) or FP32 (kFp8).
void generate_values(void* out, int64_t count, uint64_t seed, Act type, float sd = 1.f);

// Adds the number of bytes in which two arrays differ to *differing; all on the device, the arrays
// aligned to 16 bytes.
void count_differences(const void* a, const void* b, size_t bytes, unsigned long long* differing);

struct Position {
  int n, m;
};
// All of them when n * m <= cap, else `cap` random ones.
std::vector<Position> choose_positions(int n, int m, int cap);

// What to compute in FP64 on the decoded operands.
struct ReferenceInput {
  const uint8_t* codes = nullptr;    // [rows, k] as in files
  const uint8_t* scales = nullptr;   // [rows, k / 32]
  const float* row_scale = nullptr;  // packed order; set: weights are folded to it first (FP8)
  const void* x = nullptr;           // BF16 / FP16 tokens
  const uint8_t* x_codes = nullptr;  // FP8 tokens, fragment order
  const float* token_scale = nullptr;
  Act act = Act::kBf16;
  int64_t ldx = 0;
  int64_t rows = 0;  // of W
  int k = 0;
  RowOrder order = RowOrder::kPlain;
  const float* bias = nullptr;  // packed order
  bool silu_mul = false;
  const void* residual = nullptr;
  int64_t ld_residual = 0;
  Out out = Out::kBf16;
};
struct Expected {
  double value;
  double magnitude;  // sum |w x| and the other terms: what rounding errors are relative to
};
std::vector<Expected> reference(const ReferenceInput& in, const std::vector<Position>& positions);

}  // namespace mx8::cuda::testing
