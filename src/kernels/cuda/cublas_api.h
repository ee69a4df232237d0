// cuBLAS and cuBLASLt, opened when first needed: a program that never uses them starts without
// them.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

// The functions this library calls, by their C names.
struct CublasLtApi {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
};

// The library, or why it cannot be opened (for doctor). The same object every time.
Result<const CublasLtApi*> cublaslt_api();

// D[M, N] = A[M, K] * B[N, K]^T (row-major, TN) on cuBLASLt, FP32 accumulation.
struct LtGemm {
  int m = 0, n = 0, k = 0;
  const void* a = nullptr;  // [m, lda]
  int64_t lda = 0;
  const void* b = nullptr;  // [n, k]
  void* d = nullptr;        // [m, ldd]
  int64_t ldd = 0;
  const void* c = nullptr;  // added when set: [m, ldc], type of d
  int64_t ldc = 0;
  cudaDataType_t input = CUDA_R_16BF;
  cudaDataType_t output = CUDA_R_16BF;
  // E4M3 inputs: FP32 scale vectors, one a row of A and one a row of B.
  const float* a_scale = nullptr;
  const float* b_scale = nullptr;
  // SM100: E8M0 block scales in the 128x4 order instead (a_scale and b_scale null).
  const uint8_t* a_block_scale = nullptr;
  const uint8_t* b_block_scale = nullptr;
};

// A handle for one device and thread of use. Matmul is asynchronous on `stream`; the workspace
// (16-byte aligned) is used until the stream has passed it.
class CublasLt {
 public:
  static Result<CublasLt> create();
  CublasLt() = default;
  CublasLt(CublasLt&& other) noexcept;
  CublasLt& operator=(CublasLt&& other) noexcept;
  ~CublasLt();

  Result<void> matmul(const LtGemm& g, void* workspace, size_t workspace_bytes,
                      cudaStream_t stream) const;

 private:
  const CublasLtApi* api_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace mx8::cuda
