// FP8, folded weights: a cluster shares the K of a tile
// (names: rows x tokens, l = several CTAs an SM, c = a cluster shares K; sm90_mxfp8_gemm.cuh).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {

constexpr GemmEntry kTable[] = {
    gemm_entry<Sm90GemmCfg<Act::kFp8, 64, 1, 128, 8, true>>("128x64c"),
    gemm_entry<Sm90GemmCfg<Act::kFp8, 64, 2, 128, 5, true>>("256x64c"),
    gemm_entry<Sm90GemmCfg<Act::kFp8, 128, 1, 128, 6, true>>("128x128c"),
};

}  // namespace

GemmEntries sm90_gemm_entries_fp8_cluster() { return kTable; }

}  // namespace mx8::cuda
