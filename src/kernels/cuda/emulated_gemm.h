// Emulation: weights decoded to 16 bits in panels, then cuBLASLt. Runs everything the packed
// layouts can hold, NaN codes and every scale byte included, and is the oracle of the other
// kernels. For many tokens it also competes with them: decoding costs 3 bytes a weight, once.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "base/result.h"
#include "kernels/cuda/cublas_api.h"
#include "kernels/cuda/gemm_params.h"
#include "pack/mma_fragment.h"

namespace mx8::cuda {

// Scratch: one decoded panel (at most 24 MB, so that cuBLASLt finds it in the L2 cache), FP32 sums
// of a panel where the epilogue needs them, and cuBLASLt's own.
size_t emulation_workspace_bytes(const FragmentShape& shape, const GemmParams& p);

// Asynchronous and capturable. act kBf16 takes kBf16 records, kFp16 kFp16 records. p.m_device must
// be null.
Result<void> emulated_gemm(const CublasLt& lt, Act act, const FragmentShape& shape,
                           const GemmParams& p, void* workspace, size_t workspace_bytes,
                           cudaStream_t stream);

}  // namespace mx8::cuda
