// SM80, SM86, SM89: Y[M, N] = X[M, K] W^T on mma.sync, weights as A decoded in registers.
//
// Layouts: as sm90_mxfp8_gemm.cuh, the same packed records.
// Bytes, FLOPs, bound
//   N K 33/32 of weights a token tile, 2 M K of tokens a row tile (L2). 2 M N K FLOPs. Memory for
//   few tokens, mma.sync above.
// Design
//   CTA of 128 rows x 16, 64 or 128 tokens, 8 warps, 4 stages of 64 K by cp.async. `split` CTAs
//   share the K of a tile: partial sums go to a workspace and the CTA that takes the last ticket
//   adds them in the order of K, so results do not depend on timing. Tokens as n8 columns waste
//   nothing on small M; 128 tokens a tile halve the decoding per MMA against 64.
// Measured: run on SM90 for correctness only; compile-verified on SM80, SM86 and SM89.
#pragma once

#include "kernels/cuda/device/decode.cuh"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/output.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/sm80_mxfp8_gemm.h"
#include "pack/mma_fragment_map.h"

namespace mx8::cuda {

template <Act kAct_, int kTokens_>
struct Sm80Cfg {
  static constexpr Act kAct = kAct_;
  static constexpr int kTokens = kTokens_;
  static constexpr int kThreads = 256, kStages = 4, kRows = 128;
  static constexpr int kTokenWarps = kTokens >= 64 ? 2 : 1, kRowWarps = 8 / kTokenWarps;
  static constexpr int kFrags = 8 / kRowWarps;               // 16-row fragments of a warp
  static constexpr int kGroups = kTokens / 8 / kTokenWarps;  // 8-token groups of a warp
  static constexpr int kRecord = kAct == Act::kFp8 ? kFragmentCodeBytes : kFragmentRecordBytes;
  static constexpr int kXRow = kAct == Act::kFp8 ? 64 : 128;  // bytes of 64 K of a token
  static constexpr int kStage = 2 * kRecord + kTokens * kXRow;
  static constexpr int kSmem = kStages * kStage;
  static __device__ __forceinline__ int swizzle(int token, int chunk) {
    return kAct == Act::kFp8 ? chunk ^ ((token >> 1) & 3) : chunk ^ (token & 7);
  }
};

// Requests stage `k` (of 64 K); always commits a group.
template <class C>
__device__ __forceinline__ void request_stage(const GemmParams& p, uint32_t smem, int row_tile,
                                              int token0, int tokens, int k, int k_end) {
  if (k < k_end) {
    const uint32_t stage = smem + (k % C::kStages) * C::kStage;
    constexpr int kVectors = C::kRecord / 16;
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const int block = row_tile * 2 + b;
      const bool real = block < p.row_blocks;
      const uint8_t* from =
          p.w + (static_cast<size_t>(real ? block : 0) * p.k_records + k) * C::kRecord;
      for (int v = threadIdx.x; v < kVectors; v += C::kThreads)
        cp_async_16(stage + b * C::kRecord + v * 16, from + v * 16, real ? 16 : 0);
    }
    constexpr int kChunks = C::kXRow / 16, kElement = C::kAct == Act::kFp8 ? 1 : 2;
    for (int v = threadIdx.x; v < C::kTokens * kChunks; v += C::kThreads) {
      const int t = v / kChunks, chunk = v % kChunks, at = k * C::kXRow + chunk * 16;
      const bool real = token0 + t < tokens && at < p.k * kElement;
      cp_async_16(
          stage + 2 * C::kRecord + t * C::kXRow + C::swizzle(t, chunk) * 16,
          static_cast<const uint8_t*>(p.x) + (real ? (token0 + t) * p.ldx * kElement + at : 0),
          real ? 16 : 0);
    }
  }
  cp_async_commit();
}

template <class C>
__device__ __forceinline__ void multiply_tile(uint32_t stage, int warp_row, int warp_token,
                                              int lane, float (&acc)[C::kFrags][C::kGroups][4]) {
  const uint32_t tokens = stage + 2 * C::kRecord + warp_token * C::kGroups * 8 * C::kXRow;
  const int g = lane >> 2, row = lane & 7, matrix = lane >> 3;
#pragma unroll
  for (int kb = 0; kb < 2; ++kb) {
    uint32_t b[C::kGroups][4];
#pragma unroll
    for (int t = 0; t < C::kGroups; ++t) {
      const int chunk = C::kAct == Act::kFp8 ? matrix : kb * 4 + matrix;
      ldmatrix_x4(b[t], tokens + (t * 8 + row) * C::kXRow + C::swizzle(row, chunk) * 16);
    }
#pragma unroll
    for (int f = 0; f < C::kFrags; ++f) {
      const int frag = warp_row * C::kFrags + f;
      const uint32_t record = stage + (frag >> 2) * C::kRecord;
      uint32_t v[4];
      shared_load_words(record + kb * 2048 + (frag & 3) * 512 + lane * 16, v);
      if constexpr (C::kAct == Act::kFp8) {
#pragma unroll
        for (int t = 0; t < C::kGroups; ++t)
          mma_16x8<C::kAct>(acc[f][t], v, b[t][2 * kb], b[t][2 * kb + 1]);
      } else {
        uint32_t scales;
        asm volatile("ld.shared.u32 %0, [%1];"
                     : "=r"(scales)
                     : "r"(record + kFragmentCodeBytes + ((frag & 3) * 8 + g) * 4));
        uint32_t a[2][4];
        decode_operands<C::kAct>(v, scales, kb, a[0], a[1]);
#pragma unroll
        for (int t = 0; t < C::kGroups; ++t) {
          mma_16x8<C::kAct>(acc[f][t], a[0], b[t][0], b[t][1]);
          mma_16x8<C::kAct>(acc[f][t], a[1], b[t][2], b[t][3]);
        }
      }
    }
  }
}

// grid: x row tiles, y token tiles, z parts of K.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    sm80_gemm_kernel(const GemmParams p, float* partials, int* tickets) {
  extern __shared__ __align__(128) uint8_t smem_raw[];
  __shared__ int ticket;
  const uint32_t smem = smem_address(smem_raw);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int warp_row = warp % C::kRowWarps, warp_token = warp / C::kRowWarps;
  const int tokens = p.m_device ? min(*p.m_device, p.m) : p.m, token0 = blockIdx.y * C::kTokens;
  if (token0 >= tokens) return;
  const int split = gridDim.z, part = blockIdx.z;
  const int k0 = static_cast<int>(static_cast<int64_t>(p.k_records) * part / split);
  const int k1 = static_cast<int>(static_cast<int64_t>(p.k_records) * (part + 1) / split);
  float acc[C::kFrags][C::kGroups][4] = {};
#pragma unroll 1
  for (int k = k0; k < k0 + C::kStages - 1; ++k)
    request_stage<C>(p, smem, blockIdx.x, token0, tokens, k, k1);
#pragma unroll 1
  for (int k = k0; k < k1; ++k) {
    cp_async_wait<C::kStages - 2>();
    __syncthreads();
    request_stage<C>(p, smem, blockIdx.x, token0, tokens, k + C::kStages - 1, k1);
    multiply_tile<C>(smem + (k % C::kStages) * C::kStage, warp_row, warp_token, lane, acc);
  }
  // Value i of this thread's accumulators, 0 <= i < kValues, lies at i * kThreads + threadIdx.x of
  // a part.
  constexpr int kValues = C::kFrags * C::kGroups * 4;
  if (split > 1) {
    const int tile = blockIdx.y * gridDim.x + blockIdx.x;
    float* slot =
        partials + (static_cast<size_t>(tile) * split) * kValues * C::kThreads + threadIdx.x;
#pragma unroll
    for (int i = 0; i < kValues; ++i)
      __stcg(slot + (static_cast<size_t>(part) * kValues + i) * C::kThreads, (&acc[0][0][0])[i]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) ticket = atomicAdd(tickets + tile, 1);
    __syncthreads();
    if (ticket != split - 1) return;
    __threadfence();
    if (threadIdx.x == 0) tickets[tile] = 0;
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      float sum = 0;
      for (int s = 0; s < split; ++s)
        sum += __ldcg(slot + (static_cast<size_t>(s) * kValues + i) * C::kThreads);
      (&acc[0][0][0])[i] = sum;
    }
  }
#pragma unroll
  for (int f = 0; f < C::kFrags; ++f) {
    const int frag = warp_row * C::kFrags + f, block = blockIdx.x * 2 + (frag >> 2);
    if (block >= p.row_blocks) continue;
#pragma unroll
    for (int t = 0; t < C::kGroups; ++t)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int token = token0 + (warp_token * C::kGroups + t) * 8 + (lane & 3) * 2 + e;
        if (token < tokens)
          write_row_pair<C::kAct>(p, block, token, (frag & 3) * 16 + (lane >> 2), acc[f][t][e],
                                  acc[f][t][2 + e]);
      }
  }
}

template <class C>
cudaError_t launch_sm80(const GemmParams& p, int split, void* workspace, cudaStream_t stream) {
  auto kernel = sm80_gemm_kernel<C>;
  const cudaError_t e =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kSmem);
  if (e != cudaSuccess) return e;
  const dim3 grid((p.row_blocks + 1) / 2, (p.m + C::kTokens - 1) / C::kTokens, split);
  if (split > 1 && grid.x * grid.y * sizeof(int) > sm80_ticket_bytes())
    return cudaErrorInvalidConfiguration;
  kernel<<<grid, C::kThreads, C::kSmem, stream>>>(
      p, reinterpret_cast<float*>(static_cast<char*>(workspace) + sm80_ticket_bytes()),
      static_cast<int*>(workspace));
  return cudaGetLastError();
}

template <Act kAct>
cudaError_t launch_sm80_act(const GemmParams& p, const Sm80Config& config, void* workspace,
                            cudaStream_t stream) {
  if (config.tile_tokens == 16)
    return launch_sm80<Sm80Cfg<kAct, 16>>(p, config.split, workspace, stream);
  if (config.tile_tokens == 64)
    return launch_sm80<Sm80Cfg<kAct, 64>>(p, config.split, workspace, stream);
  if (config.tile_tokens == 128)
    return launch_sm80<Sm80Cfg<kAct, 128>>(p, config.split, workspace, stream);
  return cudaErrorInvalidValue;
}

// One unit each: BF16 and FP16 need SM80, E4M3 SM89.
cudaError_t launch_sm80_w8a16(Act act, const GemmParams& p, const Sm80Config& config,
                              void* workspace, cudaStream_t stream);
cudaError_t launch_sm89_fp8(const GemmParams& p, const Sm80Config& config, void* workspace,
                            cudaStream_t stream);

}  // namespace mx8::cuda
