// W8A16, BF16 activations: several CTAs an SM, a cluster shares K
// (names: rows x tokens, l = several CTAs an SM, c = a cluster shares K; sm90_mxfp8_gemm.cuh).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {

constexpr GemmEntry kTable[] = {
    gemm_entry<Sm90GemmCfg<Act::kBf16, 16, 1, 128, 4, true, 4, 1>>("64x16lc4"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 16, 1, 128, 8, true, 2, 1>>("64x16lc"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 32, 1, 128, 3, true, 4, 1>>("64x32lc4"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 32, 1, 128, 6, true, 2, 1>>("64x32lc"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 64, 1, 128, 4, true, 2, 1>>("64x64lc"),
};

}  // namespace

GemmEntries sm90_gemm_entries_bf16_light() { return kTable; }

}  // namespace mx8::cuda
