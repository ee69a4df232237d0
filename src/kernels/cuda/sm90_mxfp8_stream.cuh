// SM90, M = 1..16: Y[M, N] = X[M, K] W^T, mma.sync m16n8k16 (k32 for E4M3 activations), weights
// as A.
//
// Layouts
//   W: MmaFragment records (pack/mma_fragment_map.h). X: row-major, BF16, FP16 or E4M3 (then in
//   fragment order of K). Y: row-major.
// Bytes, FLOPs, bound
//   N K 33/32 of weights (N K when folded), read once; 2 M (N + K). 2 M N K FLOPs. Memory: 4.3
//   TB/s on an H200.
// Design
//   A CTA is one 64-row block x one of `split` K slices. Each of its warps owns a ring of records
//   that one lane fills with 1-D bulk copies, so bytes in flight cost no registers, there is no
//   CTA-wide barrier in the loop, and the small CTAs let the next kernel of the stream
//   (programmatic dependent launch) become resident and request its weights before this one ends:
//   ramp and tail of neighbours overlap; by then it has decoded the first record of each warp, too
//   (16-bit activations). Tokens come through a per-warp cp.async ring of 64-K slices and ldmatrix.
//   Warps add through shared memory; the CTAs of a cluster push their sums to the CTA that owns the
//   outputs (st.async completing on its mbarrier: one hop, no second cluster barrier), which adds
//   them in rank order, so results do not depend on timing.
// Measured: docs/performance.md, section GPU.
// Lost
//   Register-direct loads of whole records (127 registers, no room for the dependent kernel);
//   token fragments straight from global memory (1.6x slower at M = 16); a global workspace with
//   tickets instead of clusters (+4 us a launch); whole records decoded before their products in
//   the loop too (2-7 % slower).
#pragma once

#include "kernels/cuda/device/decode.cuh"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/output.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/sm90_mxfp8_stream.h"
#include "pack/mma_fragment_map.h"

namespace mx8::cuda {

template <Act kAct_, int kGroups_, int kWarps_, int kStages_, int kMinCtas_>
struct StreamCfg {
  static constexpr Act kAct = kAct_;
  static constexpr int kGroups = kGroups_;  // groups of 8 tokens
  static constexpr int kWarps = kWarps_;
  static constexpr int kStages = kStages_;
  static constexpr int kMinCtas = kMinCtas_;
  // Whether the first record is decoded before the grid before this one is awaited: 64 registers.
  static constexpr bool kEarly = kAct != Act::kFp8;
  static constexpr int kTokens = 8 * kGroups;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kRecord = kAct == Act::kFp8 ? kFragmentCodeBytes : kFragmentRecordBytes;
  static constexpr int kXStages = 4;
  static constexpr int kXRow = kAct == Act::kFp8 ? 64 : 128;  // bytes of 64 K of one token
  static constexpr int kXSlot = kTokens * kXRow;
  static constexpr int kRing = kWarps * kStages * kRecord;
  static constexpr int kXRing = kWarps * kXStages * kXSlot;
  static constexpr int kSumStride = 68;  // floats between tokens in the warps' sums: no conflicts
  static constexpr int kSums = kWarps * kTokens * kSumStride * 4;
  static constexpr int kWork = kRing + kXRing > kSums ? kRing + kXRing : kSums;
  // What the CTAs of the cluster push here: at most 8 * ceil(units / 8) pairs.
  static constexpr int kParts = (kTokens * 32 + 8) * 8;
  static constexpr int kSmem = kWork + kParts + 8 * (kWarps * kStages + 1);
};

// The warp's share of the weights: records first, first + kWarps, ... of the CTA's slice.
template <class C>
struct WeightRing {
  const uint8_t* source;
  uint32_t slots, bars;
  int count;
  uint64_t policy;

  __device__ __forceinline__ void request(int i) const {
    const int s = i % C::kStages;
    mbar_arrive_expect(bars + 8 * s, C::kRecord);
    bulk_load(slots + s * C::kRecord, source + static_cast<size_t>(i) * C::kWarps * C::kRecord,
              C::kRecord, bars + 8 * s, policy);
  }
  __device__ __forceinline__ uint32_t wait(int i) const {
    const int s = i % C::kStages;
    mbar_wait(bars + 8 * s, (i / C::kStages) & 1);
    return slots + s * C::kRecord;
  }
};

// Tokens of the warp's records, 64 K at a time; 16-byte chunks XOR-swizzled inside a row.
template <class C>
struct TokenRing {
  const uint8_t* x;
  int64_t row_bytes;
  uint32_t slots;
  int tokens, k_bytes, first_record, count;
  static constexpr int kChunks = C::kXRow / 16;
  static constexpr int kCopies = C::kTokens * kChunks / 32;

  static __device__ __forceinline__ int swizzle(int token, int chunk) {
    return C::kAct == Act::kFp8 ? chunk ^ ((token >> 1) & 3) : chunk ^ (token & 7);
  }
  // Always commits a group, so that waiting for a fixed number of groups is right at the end too.
  __device__ __forceinline__ void request(int i, int lane) const {
    if (i < count) {
      const uint32_t slot = slots + (i % C::kXStages) * C::kXSlot;
      const int64_t at = static_cast<int64_t>(first_record + i * C::kWarps) * C::kXRow;
#pragma unroll
      for (int j = 0; j < kCopies; ++j) {
        const int v = j * 32 + lane, token = v / kChunks, chunk = v % kChunks;
        const int64_t k = at + chunk * 16;
        const bool ok = token < tokens && k < k_bytes;
        cp_async_16(slot + token * C::kXRow + swizzle(token, chunk) * 16,
                    x + (ok ? token * row_bytes + k : 0), ok ? 16 : 0);
      }
    }
    cp_async_commit();
  }
};

// Operand A of 16 rows x 32 K of a record: the packed words for E4M3 activations, else what they
// decode to.
template <class C>
struct Operand {
  static constexpr bool kPlain = C::kAct == Act::kFp8;
  uint32_t a[kPlain ? 1 : 2][4];

  __device__ __forceinline__ void load(uint32_t record, int half, int frag, int lane) {
    const uint32_t words = record + half * 2048 + frag * 512 + lane * 16;
    if constexpr (kPlain) {
      shared_load_words(words, a[0]);
    } else {
      uint32_t v[4], scales;
      shared_load_words(words, v);
      asm volatile("ld.shared.u32 %0, [%1];"
                   : "=r"(scales)
                   : "r"(record + kFragmentCodeBytes + (frag * 8 + (lane >> 2)) * 4));
      decode_operands<C::kAct>(v, scales, half, a[0], a[1]);
    }
  }
};

// acc[frag][group] += 64 rows x 64 K of one record; `operand(half, frag)` gives its operands.
template <class C, class GetOperand>
__device__ __forceinline__ void multiply_record(GetOperand operand, uint32_t tokens, int lane,
                                                float (&acc)[4][C::kGroups][4]) {
  using Ring = TokenRing<C>;
  const int row = lane & 7, matrix = lane >> 3;
  uint32_t b[C::kGroups][4];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (C::kAct != Act::kFp8 || half == 0)
#pragma unroll
      for (int t = 0; t < C::kGroups; ++t)
        ldmatrix_x4(b[t], tokens + (t * 8 + row) * C::kXRow +
                              Ring::swizzle(t * 8 + row, half * 4 + matrix) * 16);
#pragma unroll
    for (int f = 0; f < 4; ++f) {
      const Operand<C> w = operand(half, f);
#pragma unroll
      for (int t = 0; t < C::kGroups; ++t) {
        if constexpr (C::kAct == Act::kFp8) {
          mma_16x8<C::kAct>(acc[f][t], w.a[0], b[t][2 * half], b[t][2 * half + 1]);
        } else {
          mma_16x8<C::kAct>(acc[f][t], w.a[0], b[t][0], b[t][1]);
          mma_16x8<C::kAct>(acc[f][t], w.a[1], b[t][2], b[t][3]);
        }
      }
    }
  }
}

// A unit is one token and one pair of rows (r, r + 8) of the block: with gate/up rows, one feature.
__device__ __forceinline__ int unit_row(int j) { return (j >> 3) * 16 + (j & 7); }

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kMinCtas)
    stream_kernel(const __grid_constant__ GemmParams p, int split) {
  extern __shared__ __align__(128) uint8_t smem[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int rank = blockIdx.x % split, row_block = blockIdx.x / split;
  const int r0 = p.k_records * rank / split, r1 = p.k_records * (rank + 1) / split;
  const uint32_t base = smem_address(smem), parts = base + C::kWork, bars = parts + C::kParts,
                 push_bar = bars + 8 * C::kWarps * C::kStages;
  WeightRing<C> weights;
  weights.source = p.w + (static_cast<size_t>(row_block) * p.k_records + r0 + warp) * C::kRecord;
  weights.slots = base + warp * C::kStages * C::kRecord;
  weights.bars = bars + warp * C::kStages * 8;
  weights.count = r1 - r0 - warp <= 0 ? 0 : (r1 - r0 - warp + C::kWarps - 1) / C::kWarps;
  if (lane == 0) {
    weights.policy = l2_policy_evict_first();
    for (int s = 0; s < C::kStages; ++s) mbar_init(weights.bars + 8 * s, 1);
    if (warp == 0) mbar_init(push_bar, 1);
    mbar_init_fence();
    for (int i = 0; i < C::kStages && i < weights.count; ++i) weights.request(i);
  }
  __syncwarp();
  if (split > 1) {
    __syncthreads();  // push_bar exists before anybody of this CTA says so
    cluster_arrive_relaxed();
  }
  pdl_launch_dependents();

  constexpr int kXBytes = C::kAct == Act::kFp8 ? 1 : 2;
  TokenRing<C> tokens{static_cast<const uint8_t*>(p.x),
                      p.ldx * kXBytes,
                      base + C::kRing + warp * C::kXStages * C::kXSlot,
                      0,
                      p.k * kXBytes,
                      r0 + warp,
                      weights.count};
  float acc[4][C::kGroups][4] = {};
  auto tokens_of = [&](int i) {  // requests those of a later record and waits for those of record i
    tokens.request(i + C::kXStages - 1, lane);
    cp_async_wait<C::kXStages - 1>();
    __syncwarp();
    return tokens.slots + (i % C::kXStages) * C::kXSlot;
  };
  auto give_back = [&](int i) {
    __syncwarp();
    if (lane == 0 && i + C::kStages < weights.count) weights.request(i + C::kStages);
  };
  // With few tokens and a small matrix a warp has two to four records, and decoding them is most of
  // its work: the first is decoded before the grid before this one has ended.
  Operand<C> early[2][4];
  if (C::kEarly && weights.count > 0) {
    const uint32_t record = weights.wait(0);
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int f = 0; f < 4; ++f) early[half][f].load(record, half, f, lane);
    give_back(0);
  }
  pdl_wait();
  const int m = p.m_device ? min(*p.m_device, p.m) : p.m;
  tokens.tokens = m;
#pragma unroll 1
  for (int i = 0; i < C::kXStages - 1; ++i) tokens.request(i, lane);
  if (C::kEarly && weights.count > 0)
    multiply_record<C>([&](int half, int f) { return early[half][f]; }, tokens_of(0), lane, acc);
  __syncwarp();
#pragma unroll 1
  for (int i = C::kEarly ? 1 : 0; i < weights.count; ++i) {
    const uint32_t x = tokens_of(i), record = weights.wait(i);
    multiply_record<C>(
        [&](int half, int f) {
          Operand<C> w;
          w.load(record, half, f, lane);
          return w;
        },
        x, lane, acc);
    give_back(i);
  }
  cp_async_wait<0>();
  __syncthreads();

  float* sums = reinterpret_cast<float*>(smem);
#pragma unroll
  for (int f = 0; f < 4; ++f)
#pragma unroll
    for (int t = 0; t < C::kGroups; ++t) {
      float* at = sums + (warp * C::kTokens + t * 8 + 2 * (lane & 3)) * C::kSumStride + f * 16 +
                  (lane >> 2);
      at[0] = acc[f][t][0];
      at[C::kSumStride] = acc[f][t][1];
      at[8] = acc[f][t][2];
      at[C::kSumStride + 8] = acc[f][t][3];
    }
  __syncthreads();
  auto sum = [&](int token, int row) {
    float s = 0;
#pragma unroll
    for (int w = 0; w < C::kWarps; ++w) s += sums[(w * C::kTokens + token) * C::kSumStride + row];
    return s;
  };
  const int units = m * 32;
  if (split == 1) {
    for (int u = threadIdx.x; u < units; u += C::kThreads) {
      const int token = u >> 5, row = unit_row(u & 31);
      write_row_pair<C::kAct>(p, row_block, token, row, sum(token, row), sum(token, row + 8));
    }
    return;
  }
  // Unit u belongs to rank u * split / units; rank r's units are [first(r), first(r + 1)).
  auto first = [&](int r) { return (units * r + split - 1) / split; };
  const int mine = first(rank), own = first(rank + 1) - mine, room = (units + split - 1) / split;
  if (threadIdx.x == 0) mbar_arrive_expect(push_bar, own * split * 8);
  cluster_wait();
  for (int u = threadIdx.x; u < units; u += C::kThreads) {
    const int token = u >> 5, row = unit_row(u & 31), owner = u * split / units;
    cluster_store_v2(cluster_map(parts + (rank * room + u - first(owner)) * 8, owner),
                     sum(token, row), sum(token, row + 8), cluster_map(push_bar, owner));
  }
  mbar_wait(push_bar, 0);
  const float2* received = reinterpret_cast<const float2*>(smem + C::kWork);
  for (int u = threadIdx.x; u < own; u += C::kThreads) {
    float a = 0, b = 0;
    for (int r = 0; r < split; ++r) {
      const float2 v = received[r * room + u];
      a += v.x;
      b += v.y;
    }
    write_row_pair<C::kAct>(p, row_block, (mine + u) >> 5, unit_row((mine + u) & 31), a, b);
  }
}

template <class C>
cudaError_t launch_sm90_stream(const GemmParams& p, int split, cudaStream_t stream, bool pdl) {
  auto kernel = stream_kernel<C>;
  cudaError_t e =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kSmem);
  if (e != cudaSuccess) return e;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(p.row_blocks) * split);
  config.blockDim = dim3(C::kThreads);
  config.dynamicSmemBytes = C::kSmem;
  config.stream = stream;
  cudaLaunchAttribute attributes[2];
  if (split > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs++].val.clusterDim = {static_cast<unsigned>(split), 1, 1};
  }
  if (pdl) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  config.attrs = attributes;
  return cudaLaunchKernelEx(&config, kernel, p, split);
}

struct StreamEntry {
  StreamVariant info;
  cudaError_t (*launch)(const GemmParams&, int, cudaStream_t, bool);
};
template <class C>
constexpr StreamEntry stream_entry(const char* name) {
  return {{name, C::kTokens, C::kWarps, C::kStages, C::kSmem}, launch_sm90_stream<C>};
}

inline constexpr int kStreamVariants = 8;

// Names: groups of 8 tokens, warps, records in flight per warp.
template <Act kAct>
struct StreamTable {
  static constexpr StreamEntry kEntries[kStreamVariants] = {
      stream_entry<StreamCfg<kAct, 1, 4, 2, 4>>("g1w4s2"),
      stream_entry<StreamCfg<kAct, 1, 4, 3, 4>>("g1w4s3"),
      stream_entry<StreamCfg<kAct, 1, 4, 4, 3>>("g1w4s4"),
      stream_entry<StreamCfg<kAct, 1, 8, 2, 2>>("g1w8s2"),
      stream_entry<StreamCfg<kAct, 1, 8, 3, 2>>("g1w8s3"),
      stream_entry<StreamCfg<kAct, 2, 4, 2, 4>>("g2w4s2"),
      stream_entry<StreamCfg<kAct, 2, 4, 3, 3>>("g2w4s3"),
      stream_entry<StreamCfg<kAct, 2, 8, 2, 2>>("g2w8s2"),
  };
};

// One unit each.
const StreamEntry* sm90_stream_entries_bf16();
const StreamEntry* sm90_stream_entries_fp16();
const StreamEntry* sm90_stream_entries_fp8();

}  // namespace mx8::cuda
