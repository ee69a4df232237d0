// FP8, folded weights: tiles for many tokens
// (names: rows x tokens, l = several CTAs an SM, c = a cluster shares K; sm90_mxfp8_gemm.cuh).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {

constexpr GemmEntry kTable[] = {
    gemm_entry<Sm90GemmCfg<Act::kFp8, 128, 1, 128, 6>>("128x128"),
    gemm_entry<Sm90GemmCfg<Act::kFp8, 128, 2, 128, 4>>("256x128"),
    gemm_entry<Sm90GemmCfg<Act::kFp8, 160, 2, 128, 3>>("256x160"),
    gemm_entry<Sm90GemmCfg<Act::kFp8, 176, 2, 128, 3>>("256x176"),
    gemm_entry<Sm90GemmCfg<Act::kFp8, 256, 1, 128, 4>>("128x256"),
};

}  // namespace

GemmEntries sm90_gemm_entries_fp8_many() { return kTable; }

}  // namespace mx8::cuda
