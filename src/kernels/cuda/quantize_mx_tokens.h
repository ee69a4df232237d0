// Activations to MXFP8 for block-scaled tensor cores: E4M3 codes row-major, one E8M0 scale per 32
// in the 128x4 order (pack/sm100_mx.h).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

struct QuantizeMxParams {
  const void* x = nullptr;  // [m, k] BF16 or FP16, rows 16-byte aligned
  int64_t ldx = 0;
  Act type = Act::kBf16;
  uint8_t* codes = nullptr;   // [m, k]
  uint8_t* scales = nullptr;  // sf128x4_bytes(m, k), written whole: padding too
  int m = 0;
  int k = 0;  // multiple of 32
};

// Scale rule: ceil(log2(amax / 448)), never saturates; a block of zeros gets scale byte 0 and codes
// 0, one with a NaN or an infinity scale byte 255.
cudaError_t quantize_mx_tokens(const QuantizeMxParams& p, cudaStream_t stream, bool pdl);

}  // namespace mx8::cuda
