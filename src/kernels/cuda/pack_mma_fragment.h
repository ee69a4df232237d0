// MmaFragment packing on the GPU: the same bytes as pack/mma_fragment.h makes on the CPU, and the
// way back for the emulation backend.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/gemm_params.h"
#include "pack/mma_fragment.h"

namespace mx8::cuda {

// All pointers are device memory; asynchronous on `stream`. codes [n, k], scales [n, k / 32] as in
// checkpoint files; records has shape.bytes(), row_scales shape.row_scales() entries (unused for
// kBf16). The matrix must have passed the audit that its kind needs (pack_mma_fragment's errors).
cudaError_t pack_mma_fragment_device(const FragmentShape& shape, const uint8_t* codes,
                                     const uint8_t* scales, uint8_t* records, float* row_scales,
                                     cudaStream_t stream);

// Packed rows [row0, row0 + rows) as a row-major [rows, k] matrix of BF16 (kBf16, kFolded) or FP16
// (kFp16, and kFolded with act = kFp16) without row scales; exact for every code and every scale
// byte (NaN codes and scales give NaN). row0 is a multiple of 64.
cudaError_t decode_mma_fragment_device(const FragmentShape& shape, const uint8_t* records, Act act,
                                       int64_t row0, int64_t rows, void* out, cudaStream_t stream);

}  // namespace mx8::cuda
