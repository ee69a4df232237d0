// (x [+ residual, RMSNorm | SiLU-mul]) -> E4M3 codes, one FP32 scale a token, K permuted inside 16.
//
// Bytes: 2 M K in, M K out (residual: 2 M K more in and out). Bound: memory, above ~16 tokens.
// One CTA a token with as many threads as the row needs at 16 values each: the row stays in
// registers between the reductions and the conversion, so every byte is read once. Real scale: q =
// x * (448 / amax), one correctly rounded division a token. Measured docs/performance.md, section
// GPU. Lost: 256 threads for every K (half the bandwidth at K = 4096).
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "kernels/cuda/device/output.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/quantize_tokens.h"

namespace mx8::cuda {
namespace {

__device__ __forceinline__ void to_floats(const uint4& v, Act type, float (&f)[8]) {
  const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 two = unpack_pair(w[i], type == Act::kFp16 ? Out::kFp16 : Out::kBf16);
    f[2 * i] = two.x;
    f[2 * i + 1] = two.y;
  }
}
__device__ __forceinline__ uint4 from_floats(const float* f, Act type) {
  const Out out = type == Act::kFp16 ? Out::kFp16 : Out::kBf16;
  return make_uint4(pack_pair(f[0], f[1], out), pack_pair(f[2], f[3], out),
                    pack_pair(f[4], f[5], out), pack_pair(f[6], f[7], out));
}
__device__ __forceinline__ float rounded(float v, Act type) {
  return type == Act::kFp16 ? __half2float(__float2half_rn(v))
                            : __bfloat162float(__float2bfloat16_rn(v));
}

// Over the CTA; every thread gets the result. `scratch` has one float a warp.
template <bool kMax>
__device__ __forceinline__ float reduce(float v, float* scratch) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    const float other = __shfl_xor_sync(~0u, v, o);
    v = kMax ? fmaxf(v, other) : v + other;
  }
  const int warps = blockDim.x >> 5;
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = v;
  __syncthreads();
  v = scratch[0];
  for (int w = 1; w < warps; ++w) v = kMax ? fmaxf(v, scratch[w]) : v + scratch[w];
  return v;
}

// 2^ceil(log2(amax / 448)), never below 2^-127.
__device__ __forceinline__ float power_of_two_scale(float amax) {
  const int e = static_cast<int>((__float_as_uint(amax) + 0x1FFFFFu) >> 23) - 8;
  return e > 0 ? __uint_as_float(static_cast<uint32_t>(e) << 23) : __uint_as_float(0x00400000u);
}

// kChunks: 16-value chunks a thread holds.
template <int kChunks>
__global__ void __launch_bounds__(1024) quantize_kernel(const __grid_constant__ QuantizeParams p) {
  __shared__ float scratch[32];
  pdl_launch_dependents();
  pdl_wait();
  const int token = blockIdx.x;
  if (p.m_device && token >= *p.m_device) return;
  const int chunks = p.k / 16;
  float f[kChunks][16];
  const auto* x = static_cast<const uint16_t*>(p.x) + token * p.ldx;
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const int at = (i * blockDim.x + threadIdx.x) * 16;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float(&half)[8] = *reinterpret_cast<float(*)[8]>(&f[i][8 * h]);
      if (at / 16 >= chunks) {
#pragma unroll
        for (int e = 0; e < 8; ++e) half[e] = 0.f;
        continue;
      }
      to_floats(*reinterpret_cast<const uint4*>(x + at + 8 * h), p.type, half);
      if (p.silu_mul) {
        float up[8];
        to_floats(*reinterpret_cast<const uint4*>(x + p.k + at + 8 * h), p.type, up);
#pragma unroll
        for (int e = 0; e < 8; ++e) half[e] = rounded(silu(half[e]) * up[e], p.type);
      }
      if (p.residual) {
        float r[8];
        to_floats(*reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(p.residual) +
                                                  token * p.ld_residual + at + 8 * h),
                  p.type, r);
#pragma unroll
        for (int e = 0; e < 8; ++e) half[e] = rounded(half[e] + r[e], p.type);
        *reinterpret_cast<uint4*>(static_cast<uint16_t*>(p.residual_out) + token * p.ld_residual +
                                  at + 8 * h) = from_floats(half, p.type);
      }
    }
  }
  if (p.norm_weight) {
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kChunks; ++i)
#pragma unroll
      for (int e = 0; e < 16; ++e) squares += f[i][e] * f[i][e];
    const float inverse =
        rsqrtf(reduce<false>(squares, scratch) / static_cast<float>(p.k) + p.epsilon);
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const int at = (i * blockDim.x + threadIdx.x) * 16;
      if (at / 16 >= chunks) continue;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float weight[8];
        to_floats(*reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(p.norm_weight) + at +
                                                  8 * h),
                  p.type, weight);
#pragma unroll
        for (int e = 0; e < 8; ++e)
          f[i][8 * h + e] = rounded(rounded(f[i][8 * h + e] * inverse, p.type) * weight[e], p.type);
      }
    }
  }
  float amax = 0;
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const int at = (i * blockDim.x + threadIdx.x) * 16;
#pragma unroll
    for (int e = 0; e < 16; ++e) amax = fmaxf(amax, fabsf(f[i][e]));
    if (p.normed_out && at / 16 < chunks)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        *reinterpret_cast<uint4*>(static_cast<uint16_t*>(p.normed_out) + token * p.ld_normed + at +
                                  8 * h) = from_floats(&f[i][8 * h], p.type);
  }
  if (!p.codes) return;
  amax = reduce<true>(amax, scratch);
  float scale = 1.f, inverse = 1.f;
  if (amax > 0.f) {
    // A real scale below the smallest normal would make its inverse infinite.
    scale = p.rule == TokenScale::kReal ? fmaxf(amax / 448.f, 0x1p-126f) : power_of_two_scale(amax);
    inverse = p.rule == TokenScale::kReal ? fminf(448.f / amax, 0x1p126f) : 1.f / scale;
  }
  if (threadIdx.x == 0) p.scales[token] = scale;
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const int at = (i * blockDim.x + threadIdx.x) * 16;
    if (at / 16 >= chunks) continue;
    uint32_t w[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {  // slots 4c..4c+3 hold k = 2c, 2c + 8, 2c + 1, 2c + 9
      const uint32_t lo = __nv_cvt_float2_to_fp8x2(
          make_float2(f[i][2 * c] * inverse, f[i][2 * c + 8] * inverse), __NV_SATFINITE, __NV_E4M3);
      const uint32_t hi = __nv_cvt_float2_to_fp8x2(
          make_float2(f[i][2 * c + 1] * inverse, f[i][2 * c + 9] * inverse), __NV_SATFINITE,
          __NV_E4M3);
      w[c] = lo | hi << 16;
    }
    *reinterpret_cast<uint4*>(p.codes + token * p.ld_codes + at) =
        make_uint4(w[0], w[1], w[2], w[3]);
  }
}

template <int kChunks>
cudaError_t launch(const QuantizeParams& p, int threads, cudaStream_t stream, bool pdl) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(p.m));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = pdl ? 1 : 0;
  return cudaLaunchKernelEx(&config, quantize_kernel<kChunks>, p);
}

}  // namespace

cudaError_t quantize_tokens(const QuantizeParams& p, cudaStream_t stream, bool pdl) {
  if (p.k % 32 != 0 || p.k > 32768) return cudaErrorInvalidValue;
  if (p.m == 0 || p.k == 0) return cudaSuccess;
  const int chunks = p.k / 16;
  const auto threads = [&](int per_thread) {
    return ((chunks + per_thread - 1) / per_thread + 31) / 32 * 32;
  };
  if (chunks <= 1024) return launch<1>(p, threads(1), stream, pdl);
  return launch<2>(p, threads(2), stream, pdl);
}

}  // namespace mx8::cuda
