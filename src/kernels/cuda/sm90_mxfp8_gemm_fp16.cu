// W8A16, FP16 activations: weights become FP16 relative to their row's fold exponent (names: rows x
// tokens, l = light, c = cluster; sm90_mxfp8_gemm.cuh).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {
template <int kTokens, int kBlocks, int kK, int kStages, bool kCluster = false, int kLight = 0,
          int kWarpgroups = 2>
using Cfg = Sm90GemmCfg<Act::kFp16, kTokens, kBlocks, kK, kStages, kCluster, kLight, kWarpgroups>;

constexpr GemmEntry kTable[] = {
    gemm_entry<Cfg<32, 2, 128, 5>>("256x32"),
    gemm_entry<Cfg<64, 1, 128, 6>>("128x64"),
    gemm_entry<Cfg<128, 1, 128, 4>>("128x128"),
    gemm_entry<Cfg<256, 1, 64, 5>>("128x256"),
    gemm_entry<Cfg<64, 1, 128, 4, true, 2, 1>>("64x64lc"),
};
}  // namespace

GemmEntries sm90_gemm_entries_fp16() { return kTable; }

}  // namespace mx8::cuda
