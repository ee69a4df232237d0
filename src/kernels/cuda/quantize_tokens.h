// Activations to FP8: E4M3 codes with one scale a token, in fragment order of K, alone or fused
// with what comes before a linear layer.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

enum class TokenScale : uint8_t {
  kReal,        // amax / 448: the largest value falls on a code
  kPowerOfTwo,  // 2^ceil(log2(amax / 448)): a legal MXFP8 encoding with equal block exponents
};

struct QuantizeParams {
  const void* x = nullptr;  // [m, k] BF16 or FP16 (`type`), or [m, 2k] gate then up with silu_mul
  int64_t ldx = 0;
  Act type = Act::kBf16;
  uint8_t* codes = nullptr;  // [m, ld_codes]; every 16 K in the order of kFragmentK
  int64_t ld_codes = 0;      // multiple of 16
  float* scales = nullptr;   // [m]
  TokenScale rule = TokenScale::kReal;
  const int* m_device = nullptr;
  int m = 0;
  int k = 0;  // multiple of 32, at most 32768

  // Residual + RMSNorm before the quantiser: h = x + residual, residual_out = round(h),
  // value = round(h * rsqrt(mean(h^2) + epsilon)) * weight, as the unfused operators round.
  const void* residual = nullptr;  // [m, k]
  void* residual_out = nullptr;    // [m, k]; may be `residual`
  int64_t ld_residual = 0;
  const void* norm_weight = nullptr;  // [k]; null: no norm
  float epsilon = 1e-6f;
  void* normed_out = nullptr;  // [m, ld_normed]: the normed values unquantised too (optional)
  int64_t ld_normed = 0;

  // SiLU(gate) * up before the quantiser.
  bool silu_mul = false;
};

// Asynchronous. Rows of x, residual and codes must be 16-byte aligned. `codes` null: norm or
// SiLU-mul alone, into normed_out.
cudaError_t quantize_tokens(const QuantizeParams& p, cudaStream_t stream, bool pdl);

}  // namespace mx8::cuda
