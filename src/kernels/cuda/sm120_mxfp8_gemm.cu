// SM120, SM121: Y[M, N] = X[M, K] W^T, both operands MXFP8, mma.sync m16n8k32 with block scales:
// one MX block an instruction, its scales in a register of each lane.
//
// Layouts
//   W and X: E4M3 row-major; scales in the 128x4 order, whose four bytes a row are the four K
//   blocks of a 128-K stage, so one 4-byte load serves a stage and the instruction's byte
//   selector picks.
// Bytes, FLOPs, bound
//   N K 33/32 + M K 33/32 + 2 M N. 2 M N K FLOPs. Memory below about 120 tokens, tensor cores
//   above.
// Design: CTA of 128 rows x 64 tokens, 8 warps (4 x 2), 3 stages of 128 K by cp.async (77 of 99
// KB).
// Measured: never, no such GPU was at hand. Compile-verified; layouts are tested on the CPU.
#include "kernels/cuda/block_scaled_gemm.h"
#include "kernels/cuda/device/output.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "pack/sm100_mx.h"

namespace mx8::cuda {
namespace {

constexpr int kRows = 128, kTokens = 64, kStageK = 128, kStages = 3, kThreads = 256;
constexpr int kWBytes = kRows * kStageK, kXBytes = kTokens * kStageK;
constexpr int kStageBytes = kWBytes + kXBytes + 2 * kScaleAtomBytes;
constexpr int kSmem = kStages * kStageBytes;

// Lane l gives A's scale of row l / 4 + 8 (l & 1) and B's of column l / 4 (thread selectors 0).
template <int kByte>
__device__ __forceinline__ void mma_block_scaled(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                                 uint32_t b1, uint32_t scale_a, uint32_t scale_b) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3."
      "f32.ue8m0 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, %10, {%12, %13}, %11, {%12, %13};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(scale_a), "r"(scale_b),
        "n"(kByte), "n"(0));
}

__device__ __forceinline__ uint32_t load_word(uint32_t address) {
  uint32_t v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address));
  return v;
}

// Rows of 128 bytes, 16-byte chunks XOR-swizzled; zero outside.
__device__ __forceinline__ void request_rows(uint32_t to, const uint8_t* from, int64_t ld, int row0,
                                             int rows, int valid_rows, int k0, int k) {
  for (int v = threadIdx.x; v < rows * 8; v += kThreads) {
    const int r = v >> 3, chunk = v & 7, at = k0 + chunk * 16;
    const bool real = row0 + r < valid_rows && at < k;
    cp_async_16(to + r * 128 + ((chunk ^ (r & 7)) * 16), from + (real ? (row0 + r) * ld + at : 0),
                real ? 16 : 0);
  }
}

struct Tile {
  uint32_t smem;
  int row0, token0;
};

__device__ __forceinline__ void request_stage(const BlockScaledParams& b, const Tile& tile,
                                              int step, int steps) {
  if (step < steps) {
    const uint32_t stage = tile.smem + (step % kStages) * kStageBytes;
    request_rows(stage, b.p.w, b.p.k, tile.row0, kRows, b.rows, step * kStageK, b.p.k);
    request_rows(stage + kWBytes, static_cast<const uint8_t*>(b.p.x), b.p.ldx, tile.token0, kTokens,
                 b.p.m, step * kStageK, b.p.k);
    const int v = threadIdx.x & 31;  // 32 x 16 bytes: one atom
    const int64_t atoms = scale_atoms_k(b.p.k);
    if (threadIdx.x < 32)
      cp_async_16(
          stage + kWBytes + kXBytes + v * 16,
          b.w_scales + (tile.row0 / kScaleAtomRows * atoms + step) * kScaleAtomBytes + v * 16, 16);
    else if (threadIdx.x < 64)
      cp_async_16(
          stage + kWBytes + kXBytes + kScaleAtomBytes + v * 16,
          b.x_scales + (tile.token0 / kScaleAtomRows * atoms + step) * kScaleAtomBytes + v * 16,
          16);
  }
  cp_async_commit();
}

template <int kBlock>
__device__ __forceinline__ void multiply_block(uint32_t stage, int warp_row, int warp_token,
                                               int lane, const uint32_t (&scale_a)[2],
                                               const uint32_t (&scale_b)[4],
                                               float (&acc)[2][4][4]) {
  const int row = lane & 7, matrix = lane >> 3;
  uint32_t b[2][4];
#pragma unroll
  for (int j = 0; j < 2; ++j) {  // two groups of 8 tokens: low and high half of the 32 K each
    const int token = warp_token * 32 + j * 16 + (matrix >> 1) * 8 + row,
              chunk = 2 * kBlock + (matrix & 1);
    ldmatrix_x4(b[j], stage + kWBytes + token * 128 + ((chunk ^ (token & 7)) * 16));
  }
#pragma unroll
  for (int f = 0; f < 2; ++f) {
    const int r = warp_row * 32 + f * 16 + (matrix & 1) * 8 + row,
              chunk = 2 * kBlock + (matrix >> 1);
    uint32_t a[4];
    ldmatrix_x4(a, stage + r * 128 + ((chunk ^ (r & 7)) * 16));
#pragma unroll
    for (int t = 0; t < 4; ++t)
      mma_block_scaled<kBlock>(acc[f][t], a, b[t >> 1][2 * (t & 1)], b[t >> 1][2 * (t & 1) + 1],
                               scale_a[f], scale_b[t]);
  }
}

__global__ void __launch_bounds__(kThreads)
    sm120_gemm_kernel(const __grid_constant__ BlockScaledParams b) {
  extern __shared__ __align__(128) uint8_t smem_raw[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warp_row = warp & 3,
            warp_token = warp >> 2;
  const int tokens = b.p.m_device ? min(*b.p.m_device, b.p.m) : b.p.m;
  const Tile tile{smem_address(smem_raw), static_cast<int>(blockIdx.x) * kRows,
                  static_cast<int>(blockIdx.y) * kTokens};
  if (tile.token0 >= tokens) return;
  const int steps = static_cast<int>(scale_atoms_k(b.p.k));
  float acc[2][4][4] = {};
  for (int s = 0; s < kStages - 1; ++s) request_stage(b, tile, s, steps);
#pragma unroll 1
  for (int s = 0; s < steps; ++s) {
    cp_async_wait<kStages - 2>();
    __syncthreads();
    request_stage(b, tile, s + kStages - 1, steps);
    const uint32_t stage = tile.smem + (s % kStages) * kStageBytes,
                   scales = stage + kWBytes + kXBytes;
    uint32_t scale_a[2], scale_b[4];
#pragma unroll
    for (int f = 0; f < 2; ++f) {
      const int r = warp_row * 32 + f * 16 + (lane >> 2) + 8 * (lane & 1);
      scale_a[f] = load_word(scales + static_cast<uint32_t>(sf128x4_offset(r, 0, 128)));
    }
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      const int r = tile.token0 % kScaleAtomRows + warp_token * 32 + t * 8 + (lane >> 2);
      scale_b[t] =
          load_word(scales + kScaleAtomBytes + static_cast<uint32_t>(sf128x4_offset(r, 0, 128)));
    }
    multiply_block<0>(stage, warp_row, warp_token, lane, scale_a, scale_b, acc);
    multiply_block<1>(stage, warp_row, warp_token, lane, scale_a, scale_b, acc);
    multiply_block<2>(stage, warp_row, warp_token, lane, scale_a, scale_b, acc);
    multiply_block<3>(stage, warp_row, warp_token, lane, scale_a, scale_b, acc);
  }
#pragma unroll
  for (int f = 0; f < 2; ++f)
#pragma unroll
    for (int t = 0; t < 4; ++t)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int token = tile.token0 + warp_token * 32 + t * 8 + (lane & 3) * 2 + e;
        const int row = tile.row0 + warp_row * 32 + f * 16 + (lane >> 2);
        if (token < tokens && row < b.p.row_blocks * 64)
          write_row_pair<Act::kBf16>(b.p, row / 64, token, row % 64, acc[f][t][e],
                                     acc[f][t][2 + e]);
      }
}

}  // namespace

cudaError_t launch_sm120_kernel(const BlockScaledParams& b, cudaStream_t stream) {
  const cudaError_t e =
      cudaFuncSetAttribute(sm120_gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem);
  if (e != cudaSuccess) return e;
  const dim3 grid((b.rows + kRows - 1) / kRows, (b.p.m + kTokens - 1) / kTokens);
  sm120_gemm_kernel<<<grid, kThreads, kSmem, stream>>>(b);
  return cudaGetLastError();
}

}  // namespace mx8::cuda
