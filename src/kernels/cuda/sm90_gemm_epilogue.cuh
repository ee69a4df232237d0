// Epilogue of one consumer warpgroup: accumulators -> scales, bias, SiLU-mul, residual -> Y.
//
// The accumulator of wgmma is transposed for us (rows are features, columns tokens). Chunks of
// tokens, as large as shared memory allows, go through a staging buffer in the 128-byte swizzle of
// TMA: stmatrix.trans in, then tensor stores of 16 or 32 tokens x 64 features, which run while the
// next chunk and the next tile are worked on. What TMA cannot do (rows of Y not 16-byte aligned,
// SiLU-mul, a token count read on the device) leaves by 16-byte or 2-byte stores. Every chunk costs
// two barriers and a fence, 300 cycles: 128 tokens at once take 1300 cycles, in four chunks 2050.
// Lost: one 1-D bulk copy a token (128 bytes each: 20-25 % slower over all of M >= 1024); four
// small buffers instead of two (no effect).
#pragma once

#include "kernels/cuda/device/output.cuh"
#include "kernels/cuda/device/ptx.cuh"

namespace mx8::cuda {

// Staging of one warpgroup of kBlocks x 64 features: kBuffers chunks of tokens. Tensor stores take
// kBox tokens of a block.
template <int kBlocks, int kTokens, int kRoom>
struct EpilogueStage {
  static constexpr int kToken = kBlocks * 128;  // bytes
  static constexpr int kBox = kTokens % 32 == 0 && kRoom >= 64 * kToken ? 32 : 16;
  // All tokens at once if they fit, else two buffers of as many as do.
  static constexpr int kBuffers = kTokens * kToken <= kRoom ? 1 : 2;
  static constexpr int kChunk = kBuffers == 1 ? kTokens : kRoom / (2 * kToken) / kBox * kBox;
  static_assert(kChunk >= kBox);
  static constexpr int kBlock = kChunk * 128;
  static constexpr int kBuffer = kBlocks * kBlock;
  static constexpr int kBytes = kBuffers * kBuffer;
  // Shared address of 16-byte piece `piece` (0..7) of block `block` for a token of the chunk, in
  // the 128-byte swizzle of TMA.
  static __device__ __forceinline__ uint32_t at(uint32_t buffer, int block, int token, int piece) {
    return buffer + block * kBlock + token * 128 + ((piece ^ (token & 7)) * 16);
  }
};

// Scales of one warpgroup's tile in shared memory: of the tokens, then of the rows.
template <Act kAct, int kBlocks, int kTokens>
struct EpilogueScales {
  static constexpr int kOfTokens = kAct == Act::kFp8 ? kTokens : 0;
  static constexpr int kOfRows = kAct == Act::kBf16 ? 0 : kBlocks * 64;
  static constexpr int kBytes = (kOfTokens + kOfRows) * 4;
};

template <Act kAct, int kBlocks, int kTokens, class Stage>
struct Epilogue {
  static constexpr int kChunk = Stage::kChunk;
  static constexpr Out kPlainOut = kAct == Act::kFp16 ? Out::kFp16 : Out::kBf16;
  using Scales = EpilogueScales<kAct, kBlocks, kTokens>;
  const GemmParams& p;
  uint32_t stage, scales;  // shared addresses of this warpgroup's staging and scales
  int barrier;             // named barrier of this warpgroup
  int thread, lane, warp;  // 0..127, its lane and warp
  int buffer = 0;

  int tokens;                        // of the whole problem
  const CUtensorMap* y_map;          // null: no tensor stores
  bool y_vectors, residual_vectors;  // rows are 16-byte aligned

  __device__ __forceinline__ Epilogue(const GemmParams& params, const CUtensorMap* map,
                                      uint32_t stage_address, uint32_t scale_address,
                                      int barrier_id, int thread_in_group, int token_count)
      : p(params),
        stage(stage_address),
        scales(scale_address),
        barrier(barrier_id),
        thread(thread_in_group),
        lane(thread_in_group & 31),
        warp(thread_in_group >> 5),
        tokens(token_count),
        y_map(map) {
    y_vectors = (p.ldy & 7) == 0 && (reinterpret_cast<uintptr_t>(p.y) & 15) == 0;
    residual_vectors =
        (p.ld_residual & 7) == 0 && (reinterpret_cast<uintptr_t>(p.residual) & 15) == 0;
  }

  // Pieces of 8 features that a block of 64 rows gives: 8, or 4 with SiLU-mul.
  __device__ __forceinline__ int pieces() const { return p.silu_mul ? 4 : 8; }

  // Residual of a chunk into the staging buffer, in the place its outputs will take.
  __device__ __forceinline__ void load_residual(uint32_t buf, int token0, int count,
                                                int feature0) const {
    const auto* r = static_cast<const uint16_t*>(p.residual);
    const int per_token = kBlocks * pieces();
    for (int i = thread; i < count * per_token; i += 128) {
      const int t = i / per_token, piece = i - t * per_token, f = feature0 + piece * 8;
      const int64_t at = static_cast<int64_t>(token0 + t) * p.ld_residual + f;
      uint32_t w[4] = {0, 0, 0, 0};
      if (token0 + t < tokens) {
        if (residual_vectors && f + 8 <= p.n) {
          const uint4 v = *reinterpret_cast<const uint4*>(r + at);
          w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
        } else {
#pragma unroll
          for (int e = 0; e < 8; ++e)
            if (f + e < p.n) w[e >> 1] |= static_cast<uint32_t>(r[at + e]) << (16 * (e & 1));
        }
      }
      asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(
                       Stage::at(buf, piece / pieces(), t, piece % pieces())),
                   "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                   : "memory");
    }
  }

  // A finished chunk of `count` tokens from the staging buffer to Y.
  template <bool kPlain>
  __device__ __forceinline__ void store_chunk(uint32_t buf, int token0, int count,
                                              int feature0) const {
    if (kPlain || y_map) {
      if (lane == 0) {  // of each warp: a copy costs its thread 50 cycles
#pragma unroll
        for (int i = 0; i < kBlocks * kChunk / Stage::kBox; ++i) {
          const int b = i % kBlocks, t = i / kBlocks * Stage::kBox;
          if (i % 4 == warp && feature0 + b * 64 < p.n && t < count && token0 + t < tokens)
            tma_store_2d(y_map, buf + b * Stage::kBlock + t * 128, feature0 + b * 64, token0 + t);
        }
        bulk_commit();
      }
      return;
    }
    auto* y = static_cast<uint16_t*>(p.y);
    const int per_token = kBlocks * pieces();
#pragma unroll 2
    for (int i = thread; i < count * per_token; i += 128) {
      const int t = i / per_token, piece = i - t * per_token, f = feature0 + piece * 8;
      if (token0 + t >= tokens || f >= p.n) continue;
      uint32_t w[4];
      shared_load_words(Stage::at(buf, piece / pieces(), t, piece % pieces()), w);
      const int64_t at = static_cast<int64_t>(token0 + t) * p.ldy + f;
      if (y_vectors && f + 8 <= p.n) {
        *reinterpret_cast<uint4*>(y + at) = make_uint4(w[0], w[1], w[2], w[3]);
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e)
          if (f + e < p.n) y[at + e] = static_cast<uint16_t>(w[e >> 1] >> (16 * (e & 1)));
      }
    }
  }

  // The buffer for the next chunk, free of earlier tensor stores and loads.
  __device__ __forceinline__ uint32_t next_buffer() {
    if constexpr (Stage::kBuffers == 2) buffer ^= 1;
    if (y_map && lane == 0) bulk_wait_read<Stage::kBuffers - 1>();
    named_barrier(barrier, 128);
    return stage + buffer * Stage::kBuffer;
  }

  __device__ __forceinline__ void write_fp32(const float (&acc)[kBlocks][kTokens / 2], int row0,
                                             int token0) {
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      if (row0 / 64 + b >= p.row_blocks) continue;  // bias and scales end with the blocks
#pragma unroll
      for (int i = 0; i < kTokens / 8; ++i)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int token = token0 + i * 8 + (lane & 3) * 2 + e;
          if (token < tokens)
            write_row_pair<kAct>(p, row0 / 64 + b, token, warp * 16 + (lane >> 2),
                                 acc[b][4 * i + e], acc[b][4 * i + 2 + e]);
        }
    }
  }

  // Requests the scales of the tile, before its main loop: to shared memory, so that nobody waits
  // for them until write() does.
  __device__ __forceinline__ void stage_scales(int row0, int token0) const {
    if constexpr (kAct != Act::kBf16) {
      cp_async_wait_all();  // of a tile that was handed over
      const int rows = p.row_blocks * 64;
      for (int r = thread; r < kBlocks * 64; r += 128)
        request_scale(Scales::kOfTokens + r, p.row_scale, row0 + r, rows);
    }
    if constexpr (kAct == Act::kFp8)
      for (int t = thread; t < kTokens; t += 128)
        request_scale(t, p.token_scale, token0 + t, tokens);
  }
  __device__ __forceinline__ void request_scale(int to, const float* from, int i, int end) const {
    cp_async_4(scales + 4 * to, from + (i < end ? i : 0), i < end ? 4 : 0);
  }
  __device__ __forceinline__ float row_scale(int row) const {
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(scales + 4 * (Scales::kOfTokens + row)));
    return v;
  }
  __device__ __forceinline__ float2 token_scales(int token) const {
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];"
                 : "=f"(v.x), "=f"(v.y)
                 : "r"(scales + 4 * token));
    return v;
  }

  // The common case, kept short so that it stays in the instruction cache: no bias, SiLU-mul or
  // residual, Y of the activations' element type, tensor stores.
  __device__ __forceinline__ bool is_plain() const { return y_map && plain_outputs(p, kPlainOut); }

  // row0: first packed row of this warpgroup; acc rows are kBlocks blocks of 64.
  __device__ __forceinline__ void write(const float (&acc)[kBlocks][kTokens / 2], int row0,
                                        int token0) {
    if constexpr (kAct != Act::kBf16) cp_async_wait_all();
    if (is_plain())
      write_chunks<true>(acc, row0, token0);
    else if (p.out == Out::kFp32)
      write_fp32(acc, row0, token0);
    else
      write_chunks<false>(acc, row0, token0);
  }

  template <bool kPlain>
  __device__ __forceinline__ void write_chunks(const float (&acc)[kBlocks][kTokens / 2], int row0,
                                               int token0) {
    float rows[kBlocks][2], bias[kBlocks][2] = {};
    const int feature0 = !kPlain && p.silu_mul ? row0 / 2 : row0;
#pragma unroll
    for (int chunk = 0; chunk * kChunk < kTokens; ++chunk) {
      const int t0 = token0 + chunk * kChunk;
      constexpr int kLast = (kTokens - 1) / kChunk;
      const int count = chunk == kLast ? kTokens - kLast * kChunk : kChunk;
      if (t0 >= tokens) continue;
      const uint32_t buf = next_buffer();
      if (chunk == 0) {
#pragma unroll
        for (int b = 0; b < kBlocks; ++b)
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const int row = b * 64 + warp * 16 + (lane >> 2) + 8 * h;
            if constexpr (kAct != Act::kBf16) rows[b][h] = row_scale(row);
            if (!kPlain && p.bias && row0 + row < p.row_blocks * 64)
              bias[b][h] = p.bias[row0 + row];
          }
      }
      if (!kPlain && p.residual) {
        load_residual(buf, t0, count, feature0);
        named_barrier(barrier, 128);
      }
#pragma unroll
      for (int j = 0; j < count / 16; ++j) {
        const int i0 = chunk * (kChunk / 8) + 2 * j;  // first of two groups of 8 tokens
        float2 ts[2] = {};
        if constexpr (kAct == Act::kFp8) {
          ts[0] = token_scales(i0 * 8 + (lane & 3) * 2);
          ts[1] = token_scales(i0 * 8 + 8 + (lane & 3) * 2);
        }
        const int token = j * 16 + (lane & 7), half = (lane >> 3) & 1;
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) {
          float v[2][4];
#pragma unroll
          for (int g = 0; g < 2; ++g)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              v[g][e] = acc[b][(i0 + g) * 4 + e];
              if constexpr (kAct != Act::kBf16) v[g][e] *= rows[b][e >> 1];
              if constexpr (kAct == Act::kFp8) v[g][e] *= (e & 1) ? ts[g].y : ts[g].x;
              if (!kPlain) v[g][e] += bias[b][e >> 1];
            }
          if (!kPlain && p.silu_mul)
            put_features(Stage::at(buf, b, token + half * 8, warp), v);
          else
            put_rows<kPlain>(Stage::at(buf, b, token + (lane >> 4) * 8, warp * 2 + half), v);
        }
      }
      if (kPlain || y_map) fence_proxy_async();
      named_barrier(barrier, 128);
      store_chunk<kPlain>(buf, t0, count, feature0);
    }
  }

  // Four 8x8 matrices: rows g and g + 8 of two token groups.
  template <bool kPlain>
  __device__ __forceinline__ void put_rows(uint32_t address, float (&v)[2][4]) const {
    const Out out = kPlain ? kPlainOut : p.out;
    if (!kPlain && p.residual) {
      uint32_t r[4];
      ldmatrix_x4_trans(r, address);
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const float2 add = unpack_pair(r[q], p.out);
        v[q >> 1][2 * (q & 1)] += add.x;
        v[q >> 1][2 * (q & 1) + 1] += add.y;
      }
    }
    const uint32_t r[4] = {pack_pair(v[0][0], v[0][1], out), pack_pair(v[0][2], v[0][3], out),
                           pack_pair(v[1][0], v[1][1], out), pack_pair(v[1][2], v[1][3], out)};
    stmatrix_x4_trans(address, r);
  }
  // Two 8x8 matrices: the features of two token groups, gate in row g, up in row g + 8.
  __device__ __forceinline__ void put_features(uint32_t address, float (&v)[2][4]) const {
    float2 f[2];
#pragma unroll
    for (int g = 0; g < 2; ++g)
      f[g] = make_float2(silu(v[g][0]) * v[g][2], silu(v[g][1]) * v[g][3]);
    if (p.residual) {
      uint32_t r[2];
      ldmatrix_x2_trans(r, address);
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const float2 add = unpack_pair(r[g], p.out);
        f[g].x += add.x;
        f[g].y += add.y;
      }
    }
    const uint32_t r[2] = {pack_pair(f[0].x, f[0].y, p.out), pack_pair(f[1].x, f[1].y, p.out)};
    stmatrix_x2_trans(address, r);
  }

  // Before the CTA ends: nothing may still read or write its shared memory.
  __device__ __forceinline__ void drain() const {
    if constexpr (kAct != Act::kBf16) cp_async_wait_all();
    if (y_map && lane == 0) bulk_wait_read<0>();
  }
};

}  // namespace mx8::cuda
