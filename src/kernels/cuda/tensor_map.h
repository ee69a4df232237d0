// The TMA description of a token matrix. The driver's encoder is looked up at run time: the program
// must start without a driver.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

// X [m, k] with row stride ldx (elements): boxes of 128 bytes of K x `tile_tokens`, 128-byte
// swizzle, zeros outside. Rows must be 16-byte aligned.
cudaError_t make_token_map(CUtensorMap* map, const void* x, Act act, int k, int m, int64_t ldx,
                           int tile_tokens);

// Y [m, n] of 16-bit elements with row stride ldy (elements): boxes of 64 features x `box_tokens`,
// 128-byte swizzle. cudaErrorInvalidValue when rows are not 16-byte aligned.
cudaError_t make_output_map(CUtensorMap* map, void* y, int n, int m, int64_t ldy, int box_tokens);

}  // namespace mx8::cuda
