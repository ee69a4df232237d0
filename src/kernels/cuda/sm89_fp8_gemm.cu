// The E4M3 instances of sm80_mxfp8_gemm.cuh: folded weights on FP8 mma.sync.
#include "kernels/cuda/sm80_mxfp8_gemm.cuh"

namespace mx8::cuda {

cudaError_t launch_sm89_fp8(const GemmParams& p, const Sm80Config& config, void* workspace,
                            cudaStream_t stream) {
  return launch_sm80_act<Act::kFp8>(p, config, workspace, stream);
}

}  // namespace mx8::cuda
