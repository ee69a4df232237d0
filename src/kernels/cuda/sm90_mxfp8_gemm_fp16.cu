// W8A16, FP16 activations: weights become FP16 relative to their row's fold exponent (names: rows x
// tokens, l = light, c = cluster; sm90_mxfp8_gemm.cuh).
#include "kernels/cuda/sm90_gemm_tables.h"
#include "kernels/cuda/sm90_mxfp8_gemm.cuh"

namespace mx8::cuda {
namespace {

constexpr GemmEntry kTable[] = {
    gemm_entry<Sm90GemmCfg<Act::kFp16, 32, 2, 128, 5>>("256x32"),
    gemm_entry<Sm90GemmCfg<Act::kFp16, 64, 1, 128, 6>>("128x64"),
    gemm_entry<Sm90GemmCfg<Act::kFp16, 128, 1, 128, 4>>("128x128"),
    gemm_entry<Sm90GemmCfg<Act::kFp16, 256, 1, 64, 4>>("128x256"),
    gemm_entry<Sm90GemmCfg<Act::kFp16, 64, 1, 128, 4, true, 2, 1>>("64x64lc"),
};

}  // namespace

GemmEntries sm90_gemm_entries_fp16() { return kTable; }

}  // namespace mx8::cuda
