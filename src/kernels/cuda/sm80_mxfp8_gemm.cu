#include "kernels/cuda/sm80_mxfp8_gemm.cuh"

namespace mx8::cuda {

cudaError_t launch_sm80_w8a16(Act act, const GemmParams& p, const Sm80Config& config,
                              void* workspace, cudaStream_t stream) {
  return act == Act::kFp16 ? launch_sm80_act<Act::kFp16>(p, config, workspace, stream)
                           : launch_sm80_act<Act::kBf16>(p, config, workspace, stream);
}

}  // namespace mx8::cuda
