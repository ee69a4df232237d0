// W8A16, BF16 activations: a cluster shares K
// (names: rows x tokens, l = several CTAs an SM, c = a cluster shares K; sm90_mxfp8_gemm.cuh).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {

constexpr GemmEntry kTable[] = {
    gemm_entry<Sm90GemmCfg<Act::kBf16, 32, 1, 128, 8, true>>("128x32c"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 64, 1, 128, 6, true>>("128x64c"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 128, 1, 128, 4, true>>("128x128c"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 64, 2, 128, 4, true>>("256x64c"),
};

}  // namespace

GemmEntries sm90_gemm_entries_bf16_cluster() { return kTable; }

}  // namespace mx8::cuda
