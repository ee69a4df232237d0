// Scales, bias, SiLU-mul and residual over FP32 sums in memory (order: gemm_params.h).
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

// sums [m, rows]: packed rows [row0, row0 + rows) of every token; row0 a multiple of 64.
cudaError_t launch_sums_epilogue(Act act, const GemmParams& p, const float* sums, int row0,
                                 int rows, cudaStream_t stream);

}  // namespace mx8::cuda
