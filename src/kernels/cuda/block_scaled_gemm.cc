#include "kernels/cuda/block_scaled_gemm.h"

#include <algorithm>

#include "base/strings.h"
#include "kernels/cuda/emulation_epilogue.h"
#include "pack/sm100_mx.h"

namespace mx8::cuda {
namespace {

constexpr size_t kSumBytes = size_t{64} << 20;  // FP32 sums at a time, if one atom of rows fits

// cuBLASLt can write Y by itself.
bool direct(const GemmParams& p) {
  return !p.bias && !p.silu_mul && p.out != Out::kFp16 && p.n % 16 == 0 && p.ldy % 8 == 0 &&
         p.ld_residual % 8 == 0;
}

}  // namespace

cudaError_t launch_sm120_kernel(const BlockScaledParams& b, cudaStream_t stream);

int sm100_panel_rows(const BlockScaledParams& b) {
  const auto fit = static_cast<int64_t>(kSumBytes / sizeof(float) / std::max(b.p.m, 1));
  const int64_t atoms = std::max<int64_t>(fit / kScaleAtomRows, 1);
  return static_cast<int>(std::min<int64_t>(atoms * kScaleAtomRows, b.rows));
}

size_t sm100_workspace_bytes(const BlockScaledParams& b) {
  // Panels are whole atoms, so those of fewer tokens may hold more sums: not their size but its
  // bound, which grows with M.
  const size_t row = sizeof(float) * std::max(b.p.m, 1);
  return kSm100LibraryBytes +
         std::min(static_cast<size_t>(b.rows) * row, std::max(kSumBytes, kScaleAtomRows * row));
}

Result<void> sm100_mxfp8_gemm(const CublasLt& lt, const BlockScaledParams& b, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  const GemmParams& p = b.p;
  if (p.m_device)
    return unsupported("sm100_mxfp8_gemm: the number of tokens must be known on the CPU");
  if (b.rows % kScaleAtomRows != 0)
    return invalid_argument(
        str_cat("sm100_mxfp8_gemm: ", b.rows, " rows of W, needs whole atoms of ", kScaleAtomRows));
  if (workspace_bytes < sm100_workspace_bytes(b))
    return resource_exhausted(str_cat("sm100_mxfp8_gemm: a workspace of ", workspace_bytes,
                                      " bytes, needs ", sm100_workspace_bytes(b)));
  if (p.m == 0 || p.n == 0) return {};
  LtGemm g;
  g.m = p.m, g.k = p.k;
  g.a = p.x, g.lda = p.ldx;
  g.input = CUDA_R_8F_E4M3;
  g.a_block_scale = b.x_scales;
  if (direct(p)) {
    g.n = p.n, g.b = p.w, g.b_block_scale = b.w_scales;
    g.d = p.y, g.ldd = p.ldy;
    if (p.residual) g.c = p.residual, g.ldc = p.ld_residual;
    g.output = p.out == Out::kFp32 ? CUDA_R_32F : CUDA_R_16BF;
    return lt.matmul(g, workspace, kSm100LibraryBytes, stream);
  }
  auto* sums = reinterpret_cast<float*>(static_cast<char*>(workspace) + kSm100LibraryBytes);
  const int rows = sm100_panel_rows(b);
  for (int row0 = 0; row0 < b.rows; row0 += rows) {
    const int count = std::min(rows, b.rows - row0);
    g.n = count, g.b = p.w + static_cast<int64_t>(row0) * p.k;
    g.b_block_scale = b.w_scales + sf128x4_bytes(row0, p.k);
    g.d = sums, g.ldd = count, g.output = CUDA_R_32F;
    MX8_RETURN_IF_ERROR(lt.matmul(g, workspace, kSm100LibraryBytes, stream));
    const cudaError_t e = launch_sums_epilogue(Act::kBf16, p, sums, row0, count, stream);
    if (e != cudaSuccess)
      return internal_error(str_cat("sm100_mxfp8_gemm: epilogue: ", cudaGetErrorString(e)));
  }
  return {};
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
