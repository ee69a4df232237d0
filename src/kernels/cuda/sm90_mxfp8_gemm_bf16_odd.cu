// W8A16, BF16 activations: tile widths that fill the last wave
// (names: rows x tokens, l = several CTAs an SM, c = a cluster shares K; sm90_mxfp8_gemm.cuh).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {

constexpr GemmEntry kTable[] = {
    gemm_entry<Sm90GemmCfg<Act::kBf16, 96, 1, 128, 5>>("128x96"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 160, 1, 64, 6>>("128x160"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 176, 1, 64, 6>>("128x176"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 208, 1, 64, 5>>("128x208"),
};

}  // namespace

GemmEntries sm90_gemm_entries_bf16_odd() { return kTable; }

}  // namespace mx8::cuda
