// FP8, folded weights: a cluster shares the K of a tile
// (names: rows x tokens, l = several CTAs an SM, c = a cluster shares K; sm90_mxfp8_gemm.cuh).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {
template <int kTokens, int kBlocks, int kK, int kStages, bool kCluster = false, int kLight = 0,
          int kWarpgroups = 2>
using Cfg = Sm90GemmCfg<Act::kFp8, kTokens, kBlocks, kK, kStages, kCluster, kLight, kWarpgroups>;

constexpr GemmEntry kTable[] = {
    gemm_entry<Cfg<64, 1, 128, 8, true>>("128x64c"),
    gemm_entry<Cfg<64, 2, 128, 5, true>>("256x64c"),
    gemm_entry<Cfg<128, 1, 128, 6, true>>("128x128c"),
};
}  // namespace

GemmEntries sm90_gemm_entries_fp8_cluster() { return kTable; }

}  // namespace mx8::cuda
