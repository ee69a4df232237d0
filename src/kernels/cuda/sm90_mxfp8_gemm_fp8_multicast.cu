// FP8, folded weights: row CTAs share their tokens (names: rows x tokens, l = several CTAs an SM, c
// = cluster, m = token multicast).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {
template <int kTokens, int kBlocks, int kK, int kStages, bool kCluster = false, int kLight = 0,
          int kWarpgroups = 2, int kRowCtas = 1>
using Cfg =
    Sm90GemmCfg<Act::kFp8, kTokens, kBlocks, kK, kStages, kCluster, kLight, kWarpgroups, kRowCtas>;

constexpr GemmEntry kTable[] = {
    gemm_entry<Cfg<64, 1, 128, 6, true, 2, 1, 2>>("64x64lcm2"),
    gemm_entry<Cfg<128, 1, 128, 4, true, 2, 1, 2>>("64x128lcm2"),
    gemm_entry<Cfg<128, 1, 128, 4, true, 2, 1, 4>>("64x128lcm4"),
    gemm_entry<Cfg<256, 1, 128, 2, true, 2, 1, 2>>("64x256lcm2"),
    gemm_entry<Cfg<128, 1, 128, 6, true, 0, 2, 2>>("128x128cm2"),
    gemm_entry<Cfg<256, 1, 128, 4, true, 0, 2, 2>>("128x256cm2"),
};
}  // namespace

GemmEntries sm90_gemm_entries_fp8_multicast() { return kTable; }

}  // namespace mx8::cuda
