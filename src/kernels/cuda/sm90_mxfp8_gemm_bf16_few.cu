// W8A16, BF16 activations: tiles for up to 64 tokens
// (names: rows x tokens, l = several CTAs an SM, c = a cluster shares K; sm90_mxfp8_gemm.cuh).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {

constexpr GemmEntry kTable[] = {
    gemm_entry<Sm90GemmCfg<Act::kBf16, 16, 2, 128, 5>>("256x16"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 32, 2, 128, 5>>("256x32"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 64, 1, 128, 6>>("128x64"),
    gemm_entry<Sm90GemmCfg<Act::kBf16, 64, 2, 128, 4>>("256x64"),
};

}  // namespace

GemmEntries sm90_gemm_entries_bf16_few() { return kTable; }

}  // namespace mx8::cuda
