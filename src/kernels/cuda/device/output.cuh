// The scalar epilogue: scales, bias, SiLU-mul, residual, rounding (order: gemm_params.h).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

__device__ __forceinline__ float silu(float v) { return v / (1.f + __expf(-v)); }

__device__ __forceinline__ uint32_t pack_pair(float a, float b, Out out) {
  if (out == Out::kFp16) {
    const __half2 v = __floats2half2_rn(a, b);
    return *reinterpret_cast<const uint32_t*>(&v);
  }
  const __nv_bfloat162 v = __floats2bfloat162_rn(a, b);
  return *reinterpret_cast<const uint32_t*>(&v);
}
__device__ __forceinline__ float2 unpack_pair(uint32_t v, Out out) {
  if (out == Out::kFp16) return __half22float2(*reinterpret_cast<const __half2*>(&v));
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&v));
}

// Whether outputs are the scaled sums alone, rounded to `out`.
__device__ __forceinline__ bool plain_outputs(const GemmParams& p, Out out) {
  return p.out == out && !p.bias && !p.silu_mul && !p.residual;
}

// One finished element of Y.
__device__ __forceinline__ void store_element(const GemmParams& p, int token, int feature,
                                              float v) {
  const int64_t at = token * p.ldy + feature;
  if (p.residual) {
    const int64_t r = token * p.ld_residual + feature;
    v += p.out == Out::kFp16 ? __half2float(static_cast<const __half*>(p.residual)[r])
                             : __bfloat162float(static_cast<const __nv_bfloat16*>(p.residual)[r]);
  }
  if (p.out == Out::kFp32)
    static_cast<float*>(p.y)[at] = v;
  else if (p.out == Out::kFp16)
    static_cast<__half*>(p.y)[at] = __float2half_rn(v);
  else
    static_cast<__nv_bfloat16*>(p.y)[at] = __float2bfloat16_rn(v);
}

// Four neighbouring elements, together where the row allows it.
__device__ __forceinline__ void store_four(const GemmParams& p, int token, int feature,
                                           const float* v) {
  const bool together = feature + 4 <= p.n && p.out != Out::kFp32 && !p.residual &&
                        (p.ldy & 3) == 0 && (reinterpret_cast<uintptr_t>(p.y) & 7) == 0;
  if (together) {
    const uint2 packed = make_uint2(pack_pair(v[0], v[1], p.out), pack_pair(v[2], v[3], p.out));
    *reinterpret_cast<uint2*>(static_cast<uint16_t*>(p.y) + token * p.ldy + feature) = packed;
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (feature + i < p.n) store_element(p, token, feature + i, v[i]);
}

// Scales and bias of packed row `row` (all blocks counted).
template <Act kAct>
__device__ __forceinline__ float scale_and_bias(const GemmParams& p, int row, int token, float v) {
  if constexpr (kAct != Act::kBf16) v *= p.row_scale[row];
  if constexpr (kAct == Act::kFp8) v *= p.token_scale[token];
  if (p.bias) v += p.bias[row];
  return v;
}

// The FP32 sums of rows `row` and `row + 8` of a 64-row block for one token.
template <Act kAct>
__device__ __forceinline__ void write_row_pair(const GemmParams& p, int row_block, int token,
                                               int row, float a, float b) {
  const int packed = row_block * 64 + row;
  a = scale_and_bias<kAct>(p, packed, token, a);
  b = scale_and_bias<kAct>(p, packed + 8, token, b);
  if (p.silu_mul) {
    const int feature = (packed >> 4) * 8 + (packed & 7);
    if (feature < p.n) store_element(p, token, feature, silu(a) * b);
    return;
  }
  if (packed < p.n) store_element(p, token, packed, a);
  if (packed + 8 < p.n) store_element(p, token, packed + 8, b);
}

// The FP32 sums of packed rows r..r+3 (v[0..3]) and r+8..r+11 (v[4..7]) for one token.
template <Act kAct>
__device__ __forceinline__ void write_row_quads(const GemmParams& p, int packed, int token,
                                                float (&v)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
    v[i] = scale_and_bias<kAct>(p, packed + (i & 3) + 8 * (i >> 2), token, v[i]);
  if (p.silu_mul) {
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = silu(v[i]) * v[4 + i];
    store_four(p, token, (packed >> 4) * 8 + (packed & 7), v);
    return;
  }
  store_four(p, token, packed, v);
  store_four(p, token, packed + 8, v + 4);
}

}  // namespace mx8::cuda
