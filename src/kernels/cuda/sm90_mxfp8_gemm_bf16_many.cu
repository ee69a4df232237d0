// W8A16, BF16 activations: tiles for many tokens
// (names: rows x tokens, l = several CTAs an SM, c = a cluster shares K; sm90_mxfp8_gemm.cuh).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {

constexpr GemmEntry kTable[] = {
    gemm_entry<Sm90GemmCfg<Act::kBf16, 128, 1, 128, 4>>("128x128"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 128, 2, 64, 5>>("256x128"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 256, 1, 64, 4>>("128x256"),
};

}  // namespace

GemmEntries sm90_gemm_entries_bf16_many() { return kTable; }

}  // namespace mx8::cuda
