// W8A16, BF16 activations: row CTAs share their tokens, wide tiles (names: rows x tokens, l =
// several CTAs an SM, c = cluster, m = token multicast).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {
template <int kTokens, int kBlocks, int kK, int kStages, bool kCluster = false, int kLight = 0,
          int kWarpgroups = 2, int kRowCtas = 1>
using Cfg =
    Sm90GemmCfg<Act::kBf16, kTokens, kBlocks, kK, kStages, kCluster, kLight, kWarpgroups, kRowCtas>;

constexpr GemmEntry kTable[] = {
    gemm_entry<Cfg<128, 1, 64, 3, true, 3, 1, 2>>("64x128lc3m2"),
    gemm_entry<Cfg<192, 1, 64, 3, true, 2, 1, 2>>("64x192lcm2"),
    gemm_entry<Cfg<128, 1, 64, 8, true, 0, 2, 2>>("128x128cm2"),
    gemm_entry<Cfg<256, 1, 64, 5, true, 0, 2, 2>>("128x256cm2"),
};
}  // namespace

GemmEntries sm90_gemm_entries_bf16_wide() { return kTable; }

}  // namespace mx8::cuda
