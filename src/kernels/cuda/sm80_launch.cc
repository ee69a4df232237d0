// The launch that picks the unit; a unit this program was built without is an error code.
#include "kernels/cuda/sm80_mxfp8_gemm.h"

namespace mx8::cuda {

cudaError_t launch_sm80_w8a16(Act act, const GemmParams& p, const Sm80Config& config,
                              void* workspace, cudaStream_t stream);
cudaError_t launch_sm89_fp8(const GemmParams& p, const Sm80Config& config, void* workspace,
                            cudaStream_t stream);

size_t sm80_ticket_bytes() { return size_t{1} << 16; }
size_t sm80_workspace_bytes(const GemmParams& p, const Sm80Config& config) {
  if (config.split <= 1) return 0;
  const size_t tiles = static_cast<size_t>((p.row_blocks + 1) / 2) *
                       ((p.m + config.tile_tokens - 1) / config.tile_tokens);
  return sm80_ticket_bytes() + tiles * config.split * 128 * config.tile_tokens * sizeof(float);
}

cudaError_t launch_sm80_mxfp8_gemm(Act act, const GemmParams& p, const Sm80Config& config,
                                   void* workspace, cudaStream_t stream) {
  if (config.split < 1 || config.split > 16 || config.split > p.k_records)
    return cudaErrorInvalidValue;
  if (p.m == 0 || p.n == 0) return cudaSuccess;
  if (act == Act::kFp8) {
#ifdef MX8_CUDA_SM89
    return launch_sm89_fp8(p, config, workspace, stream);
#else
    return cudaErrorNoKernelImageForDevice;
#endif
  }
#ifdef MX8_CUDA_SM80
  return launch_sm80_w8a16(act, p, config, workspace, stream);
#else
  return cudaErrorNoKernelImageForDevice;
#endif
}

}  // namespace mx8::cuda
