#include "kernels/cuda/tensor_map.h"

namespace mx8::cuda {
namespace {

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                            CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                            CUtensorMapFloatOOBfill);

Encode find_encoder() {
  void* f = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault,
                                       &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess)
    return nullptr;
  return reinterpret_cast<Encode>(f);
}

// A row-major [rows, cols] matrix in boxes of 128 bytes x `box_rows`.
cudaError_t make_map(CUtensorMap* map, void* data, CUtensorMapDataType type, int element, int cols,
                     int rows, int64_t ld, int box_rows) {
  static const Encode encode = find_encoder();
  if (encode == nullptr) return cudaErrorNotSupported;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(cols), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(ld) * element};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(128 / element),
                             static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult r = encode(map, type, 2, data, sizes, strides, box, steps,
                            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return r == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

cudaError_t make_token_map(CUtensorMap* map, const void* x, Act act, int k, int m, int64_t ldx,
                           int tile_tokens) {
  const CUtensorMapDataType type = act == Act::kFp8    ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                   : act == Act::kFp16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                       : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  return make_map(map, const_cast<void*>(x), type, act == Act::kFp8 ? 1 : 2, k, m, ldx,
                  tile_tokens);
}

cudaError_t make_output_map(CUtensorMap* map, void* y, int n, int m, int64_t ldy, int box_tokens) {
  if (ldy % 8 != 0 || reinterpret_cast<uintptr_t>(y) % 16 != 0) return cudaErrorInvalidValue;
  return make_map(map, y, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, n, m, ldy, box_tokens);
}

}  // namespace mx8::cuda
