#include "kernels/cuda/block_scaled_gemm.h"

namespace mx8::cuda {

cudaError_t launch_sm120_kernel(const BlockScaledParams& b, cudaStream_t stream);

Result<void> sm100_mxfp8_gemm(const CublasLt& lt, const BlockScaledParams& b, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  const GemmParams& p = b.p;
  if (p.bias || p.silu_mul || p.m_device || p.out == Out::kFp16)
    return unsupported(
        "sm100_mxfp8_gemm: bias, SiLU-mul, FP16 output and a token count on the device are not "
        "offered");
  LtGemm g;
  g.m = p.m, g.n = p.n, g.k = p.k;
  g.a = p.x, g.lda = p.ldx, g.b = p.w, g.d = p.y, g.ldd = p.ldy;
  if (p.residual) g.c = p.residual, g.ldc = p.ld_residual;
  g.input = CUDA_R_8F_E4M3;
  g.output = p.out == Out::kFp32 ? CUDA_R_32F : CUDA_R_16BF;
  g.a_block_scale = b.x_scales, g.b_block_scale = b.w_scales;
  return lt.matmul(g, workspace, workspace_bytes, stream);
}

cudaError_t launch_sm120_mxfp8_gemm(const BlockScaledParams& b, cudaStream_t stream) {
  if (b.p.k % 32 != 0 || b.p.ldx % 16 != 0) return cudaErrorInvalidValue;
  if (b.p.m == 0 || b.p.n == 0) return cudaSuccess;
#ifdef MX8_CUDA_SM120
  return launch_sm120_kernel(b, stream);
#else
  return cudaErrorNoKernelImageForDevice;
#endif
}

}  // namespace mx8::cuda
