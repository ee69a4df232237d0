#include "kernels/cuda/emulated_gemm.h"

#include <algorithm>

#include "base/strings.h"
#include "kernels/cuda/emulation_epilogue.h"
#include "kernels/cuda/pack_mma_fragment.h"

namespace mx8::cuda {
namespace {

constexpr size_t kPanelBytes = size_t{24} << 20;
constexpr int64_t kLeastRows = 1024;
constexpr size_t kLibraryBytes = size_t{32} << 20;
constexpr size_t kAlign = 256;

size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// As many rows as fit, but no fewer than fill the GPU with tiles.
int64_t panel_rows(const FragmentShape& shape) {
  const int64_t fit =
      static_cast<int64_t>(kPanelBytes / 2) / shape.k / kFragmentRows * kFragmentRows;
  return std::min(std::max<int64_t>(fit, kLeastRows), shape.row_blocks() * kFragmentRows);
}

// cuBLASLt can write Y by itself: no scale, bias or activation, and an element type it shares.
bool direct(Act act, const GemmParams& p) {
  const bool type = act == Act::kBf16 && (p.out == Out::kBf16 || p.out == Out::kFp32);
  return type && !p.bias && !p.silu_mul && p.n % 8 == 0 && p.ldy % 8 == 0 && p.ld_residual % 8 == 0;
}

Result<void> checked(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return {};
  return internal_error(str_cat("emulated GEMM: ", what, ": ", cudaGetErrorString(e)));
}

}  // namespace

size_t emulation_workspace_bytes(const FragmentShape& shape, const GemmParams& p) {
  const int64_t rows = panel_rows(shape);
  return kLibraryBytes + aligned(static_cast<size_t>(rows) * shape.k * 2) +
         aligned(static_cast<size_t>(rows) * std::max(p.m, 1) * sizeof(float));
}

Result<void> emulated_gemm(const CublasLt& lt, Act act, const FragmentShape& shape,
                           const GemmParams& p, void* workspace, size_t workspace_bytes,
                           cudaStream_t stream) {
  if (p.m_device != nullptr)
    return unsupported("emulated GEMM: the number of tokens must be known on the CPU");
  if (act == Act::kFp8 || (act == Act::kFp16) != (shape.kind == FragmentKind::kFp16))
    return unsupported(
        "emulated GEMM: BF16 activations need BF16 records, FP16 activations FP16 records");
  if (workspace_bytes < emulation_workspace_bytes(shape, p))
    return resource_exhausted(str_cat("emulated GEMM: a workspace of ", workspace_bytes,
                                      " bytes, needs ", emulation_workspace_bytes(shape, p)));
  if (p.m == 0 || p.n == 0) return {};
  const int64_t rows = panel_rows(shape);
  char* library = static_cast<char*>(workspace);
  void* panel = library + kLibraryBytes;
  auto* sums = reinterpret_cast<float*>(static_cast<char*>(panel) +
                                        aligned(static_cast<size_t>(rows) * shape.k * 2));
  const bool straight = direct(act, p);
  const int64_t all = straight ? p.n : shape.row_blocks() * kFragmentRows;
  for (int64_t row0 = 0; row0 < all; row0 += rows) {
    const int count = static_cast<int>(std::min(rows, all - row0));
    MX8_RETURN_IF_ERROR(
        checked(decode_mma_fragment_device(shape, p.w, act, row0, count, panel, stream), "decode"));
    LtGemm g;
    g.m = p.m, g.n = count, g.k = static_cast<int>(shape.k);
    g.a = p.x, g.lda = p.ldx, g.b = panel;
    g.input = act == Act::kFp16 ? CUDA_R_16F : CUDA_R_16BF;
    if (straight) {
      const int64_t size = p.out == Out::kFp32 ? 4 : 2;
      g.d = static_cast<char*>(p.y) + row0 * size, g.ldd = p.ldy;
      g.output = p.out == Out::kFp32 ? CUDA_R_32F : CUDA_R_16BF;
      if (p.residual)
        g.c = static_cast<const char*>(p.residual) + row0 * size, g.ldc = p.ld_residual;
    } else {
      g.d = sums, g.ldd = count, g.output = CUDA_R_32F;
    }
    MX8_RETURN_IF_ERROR(lt.matmul(g, library, kLibraryBytes, stream));
    if (!straight)
      MX8_RETURN_IF_ERROR(checked(
          launch_sums_epilogue(act, p, sums, static_cast<int>(row0), count, stream), "epilogue"));
  }
  return {};
}

}  // namespace mx8::cuda
