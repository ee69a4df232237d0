// FP8, folded weights: tile widths that fill the last wave
// (names: rows x tokens, l = several CTAs an SM, c = a cluster shares K; sm90_mxfp8_gemm.cuh).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {

constexpr GemmEntry kTable[] = {
    gemm_entry<Sm90GemmCfg<Act::kFp8, 96, 1, 128, 7>>("128x96"),
    gemm_entry<Sm90GemmCfg<Act::kFp8, 160, 1, 128, 5>>("128x160"),
    gemm_entry<Sm90GemmCfg<Act::kFp8, 176, 1, 128, 5>>("128x176"),
    gemm_entry<Sm90GemmCfg<Act::kFp8, 208, 1, 128, 4>>("128x208"),
};

}  // namespace

GemmEntries sm90_gemm_entries_fp8_odd() { return kTable; }

}  // namespace mx8::cuda
