// Native block-scaled MXFP8 GEMM, both operands MXFP8 with scales in the 128x4 order
// (pack/sm100_mx.h): cuBLASLt on SM100 and SM103, mma.sync on SM120 and SM121. Compile-verified
// only: no such GPU was at hand.
#pragma once

#include <cuda_runtime.h>

#include "base/result.h"
#include "kernels/cuda/cublas_api.h"
#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

struct BlockScaledParams {
  GemmParams p;  // w: codes [rows, k] row-major; x: codes [m, k] row-major, ldx = k
  const uint8_t* w_scales = nullptr;
  const uint8_t* x_scales = nullptr;
  int rows = 0;  // of w, padding included; gate/up rows interleaved 8/8 for SiLU-mul
};

// SM100, SM103: D = A B^T on cuBLASLt (VEC32_UE8M0), which writes Y where it can; else FP32 sums of
// some rows of W at a time, and an epilogue kernel after each. Every epilogue of gemm_params.h; no
// p.m_device. W has whole scale atoms of rows (zeros after the last).
//
// The workspace: cuBLASLt's, then the sums of a panel. Enough for every number of tokens up to
// b.p.m.
inline constexpr size_t kSm100LibraryBytes = size_t{32} << 20;
int sm100_panel_rows(const BlockScaledParams& b);
size_t sm100_workspace_bytes(const BlockScaledParams& b);
Result<void> sm100_mxfp8_gemm(const CublasLt& lt, const BlockScaledParams& b, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream);

// SM120, SM121: every epilogue of gemm_params.h. cudaErrorNoKernelImageForDevice in a program built
// for neither.
cudaError_t launch_sm120_mxfp8_gemm(const BlockScaledParams& b, cudaStream_t stream);

}  // namespace mx8::cuda
