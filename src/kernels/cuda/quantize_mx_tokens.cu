// BF16 / FP16 -> MXFP8 with scales in the 128x4 order.
//
// Bytes: 2 M K in, M K 33/32 out. Bound: memory. Four lanes share a block: 16 bytes (8 values)
// each, two shuffles for the largest magnitude. Rows that pad M to 128 and columns that pad K to
// 128 get scale byte 0, so that whole atoms may be read.
#include <cuda_fp8.h>

#include "kernels/cuda/device/output.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/quantize_mx_tokens.h"
#include "pack/sm100_mx.h"

namespace mx8::cuda {
namespace {

__global__ void quantize_mx_kernel(const __grid_constant__ QuantizeMxParams p) {
  pdl_launch_dependents();
  pdl_wait();
  const int64_t padded_blocks = scale_atoms_k(p.k) * kScaleAtomCols;
  const int64_t i =
      (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) >> 2;  // block of 32
  const int part = threadIdx.x & 3;
  const int64_t row = i / padded_blocks, b = i - row * padded_blocks;
  if (row >= scale_atoms_rows(p.m) * kScaleAtomRows) return;
  const bool real = row < p.m && b * kMxBlock < p.k;
  float v[8] = {};
  if (real) {
    const uint4 in = *reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(p.x) +
                                                     row * p.ldx + b * kMxBlock + part * 8);
    const uint32_t w[4] = {in.x, in.y, in.z, in.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 two = unpack_pair(w[j], p.type == Act::kFp16 ? Out::kFp16 : Out::kBf16);
      v[2 * j] = two.x;
      v[2 * j + 1] = two.y;
    }
  }
  // Magnitudes as integers order like floats and keep NaN above infinity.
  uint32_t most = 0;
#pragma unroll
  for (int j = 0; j < 8; ++j) most = max(most, __float_as_uint(v[j]) & 0x7FFFFFFFu);
  most = max(most, __shfl_xor_sync(~0u, most, 1));
  most = max(most, __shfl_xor_sync(~0u, most, 2));
  const bool finite = most < 0x7F800000u;
  // ceil(log2(amax / 448)) + 127 without a logarithm: 448 = 1.75 * 2^8.
  int e = static_cast<int>((most + 0x1FFFFFu) >> 23) - 8;
  e = e < 0 ? 0 : e;
  if (part == 0) p.scales[sf128x4_offset(row, b, p.k)] = static_cast<uint8_t>(finite ? e : 255);
  if (!real) return;
  const float inverse = finite ? ldexpf(1.f, 127 - e) : 1.f;
  uint32_t w[2] = {};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    float a = v[2 * j] * inverse, c = v[2 * j + 1] * inverse;
    if (!finite) {  // the NaNs and infinities stay visible, the rest is zero
      a = isfinite(v[2 * j]) ? 0.f : __int_as_float(0x7FC00000);
      c = isfinite(v[2 * j + 1]) ? 0.f : __int_as_float(0x7FC00000);
    }
    const uint32_t two = __nv_cvt_float2_to_fp8x2(make_float2(a, c), __NV_SATFINITE, __NV_E4M3);
    w[j >> 1] |= two << (16 * (j & 1));
  }
  *reinterpret_cast<uint2*>(p.codes + row * p.k + b * kMxBlock + part * 8) = make_uint2(w[0], w[1]);
}

}  // namespace

cudaError_t quantize_mx_tokens(const QuantizeMxParams& p, cudaStream_t stream, bool pdl) {
  if (p.k % kMxBlock != 0) return cudaErrorInvalidValue;
  if (p.m == 0 || p.k == 0) return cudaSuccess;
  const int64_t threads =
      scale_atoms_rows(p.m) * kScaleAtomRows * scale_atoms_k(p.k) * kScaleAtomCols * 4;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>((threads + 255) / 256));
  config.blockDim = dim3(256);
  config.stream = stream;
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = pdl ? 1 : 0;
  return cudaLaunchKernelEx(&config, quantize_mx_kernel, p);
}

}  // namespace mx8::cuda
