// SM90, M > 16: Y[M, N] = X[M, K] W^T with wgmma, weights as the register operand A (so the
// rows of the tile are output features and its columns tokens).
//
// Layouts
//   W: MmaFragment records; BF16 and FP16 activations decode them in registers, E4M3 activations
//   take folded records untouched (m64nNk32), X then being in fragment order of K. X: row-major
//   through a TMA tensor map, 128-byte swizzle. Y: row-major.
// Bytes, FLOPs, bound
//   N K 33/32 of weights once per group of token tiles, 2 M K of tokens once per wave of row
//   tiles (from L2). 2 M N K FLOPs. Memory below M = 100 (180 with E4M3 activations), tensor
//   cores above: 790 TFLOP/s BF16 on random data, about twice that in E4M3; the chip is
//   power-limited.
// Design
//   One producer thread fills a ring of kStages (records by 1-D bulk copy, tokens by TMA);
//   consumer warpgroups of kBlocks x 64 rows decode the next group of K while the wgmmas of the
//   last run. Persistent: whole tiles, stream-K ranges (partial sums through a workspace, added
//   in a fixed order by the CTA that has the head of the tile) or a cluster that shares the K of
//   one tile. Weights are requested before griddepcontrol.wait. Outputs leave by tensor stores
//   that overlap the next tile (sm90_gemm_epilogue.cuh). Light instances (one producer warp, no
//   setmaxnreg) run several to an SM.
// Measured: docs/performance.md, section GPU.
// Lost
//   Token multicast between CTAs of neighbouring rows (2 or 4 to a cluster, with and without
//   split K: no cell of the table gained more than deeper stages did); three consumer warpgroups
//   (8-20 % slower in BF16); staggered warpgroups (no effect); warpgroups that take turns through
//   named barriers, one decoding while the other multiplies (0-2 % slower); groups of 64 K for
//   the wide BF16 tiles (no effect); stream-K above M = 512 where whole tiles fill the waves (the
//   skew of the CTAs destroys the shared K window in L2).
// ptxas
//   Accumulators are never zeroed by moves (C7515): the first wgmma of an item overwrites them.
//   No branch between two wgmma groups (C7513). The build fails on any C75xx.
#pragma once

#include "kernels/cuda/device/decode.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/device/wgmma.cuh"
#include "kernels/cuda/sm90_gemm_epilogue.cuh"
#include "kernels/cuda/sm90_gemm_schedule.cuh"
#include "kernels/cuda/sm90_mxfp8_gemm.h"
#include "kernels/cuda/tensor_map.h"
#include "pack/mma_fragment_map.h"

namespace mx8::cuda {

struct Sm90GemmArgs {
  GemmParams p;
  GemmSchedule schedule;
  float* partials;  // stream-K: one slot a CTA
  int* flags;       // stream-K: one int a CTA and warpgroup
  bool tensor_stores;
};

inline constexpr int kMaxWarpgroups = 2;
inline constexpr int kMaxStreamKCtas = 2;  // an SM
// Floats of one CTA's partial tile: 256 x 128, 128 x 256 or fewer.
inline constexpr int kPartialFloats = 256 * 128;

template <Act kAct_, int kTokens_, int kBlocks_, int kK_, int kStages_, bool kClusterSplit_ = false,
          int kLight_ = 0, int kWarpgroups_ = 2>
struct Sm90GemmCfg {
  static constexpr Act kAct = kAct_;
  static constexpr int kTokens = kTokens_, kBlocks = kBlocks_, kK = kK_, kStages = kStages_;
  static constexpr bool kClusterSplit = kClusterSplit_, kLight = kLight_ > 0;
  static constexpr int kWarpgroups = kWarpgroups_;
  static constexpr int kConsumers = 128 * kWarpgroups;
  static constexpr int kThreads = kConsumers + (kLight ? 32 : 128);
  static constexpr int kCtasPerSm = kLight ? kLight_ : 1;
  // setmaxnreg: 128 * producer + 256 * consumer <= 65536.
  static constexpr bool kTight = kTokens * kBlocks > 320;
  static constexpr int kProducerRegs = kTight ? 24 : 40, kConsumerRegs = kTight ? 240 : 232;

  static constexpr int kRows = 64 * kBlocks * kWarpgroups;
  static constexpr int kRowBlocks = kBlocks * kWarpgroups;
  static constexpr int kRecord = kAct == Act::kFp8 ? kFragmentCodeBytes : kFragmentRecordBytes;
  static constexpr int kRecords = kK / 64;                      // records of a row block in a stage
  static constexpr int kPanelK = kAct == Act::kFp8 ? 128 : 64;  // K of a 128-byte token panel
  static constexpr int kPanels = kK / kPanelK, kPanelBytes = kTokens * 128;
  static constexpr int kTokenBytes = kPanels * kPanelBytes;
  static constexpr int kWeightBytes = kRowBlocks * kRecords * kRecord;
  static constexpr int kChunk = kBlocks == 1 && !kLight && kTokens % 32 == 0 ? 32 : 16;
  using Stage = EpilogueStage<kBlocks, kChunk>;
  static constexpr int kRing = kStages * (kTokenBytes + kWeightBytes);
  using Writer = Epilogue<kAct, kBlocks, kTokens, kChunk>;
  // The cluster form lays its FP32 tile over the drained ring and stores from there.
  static constexpr int kStageBytes = kClusterSplit ? 0 : kWarpgroups * Stage::kBytes;
  static constexpr int kScaleBytes = kClusterSplit ? 0 : kWarpgroups * Writer::kScaleBytes;
  static constexpr int kSmem = kRing + kStageBytes + kScaleBytes + 16 * kStages + 1024;
  static constexpr int kSumStride = kRows + 4;
  // 228 KB an SM, of which each CTA costs 1 KB more than it asks for.
  static_assert(kSmem <= 233472 / kCtasPerSm - 1024);
  static_assert(!kClusterSplit || kTokens * kSumStride * 4 <= kRing);
  static_assert(kRows * kTokens <= kPartialFloats && kWarpgroups <= kMaxWarpgroups);
  static_assert(kTokens % kChunk == 0);
};

template <class C>
struct Sm90GemmSmem {
  uint32_t tokens, stage, weights, scales, full, empty;
  __device__ __forceinline__ explicit Sm90GemmSmem(uint32_t raw) {
    tokens = (raw + 1023) & ~1023u;
    stage = tokens + C::kStages * C::kTokenBytes;  // a multiple of 1024, as the swizzle wants
    weights = stage + C::kStageBytes;
    scales = weights + C::kStages * C::kWeightBytes;
    full = scales + C::kScaleBytes;
    empty = full + 8 * C::kStages;
  }
};

// One thread fills the ring. Pass 0 requests the weights of the first kStages steps before the grid
// this one depends on has ended; pass 1 adds their tokens and goes on.
template <class C>
__device__ __forceinline__ void produce(const CUtensorMap* x_map, const Sm90GemmArgs& a,
                                        const Sm90GemmSmem<C>& sm) {
  const GemmParams& p = a.p;
  const uint64_t policy =
      a.schedule.token_tiles == 1 ? l2_policy_evict_first() : l2_policy_evict_normal();
  const bool early = p.m_device == nullptr || a.schedule.token_tiles == 1;
  int tokens = p.m;
#pragma unroll 1
  for (int pass = early ? 0 : 1; pass < 2; ++pass) {
    if (pass == 1) {
      pdl_wait();
      if (p.m_device) tokens = min(*p.m_device, p.m);
    }
    GemmItems items(a.schedule, tokens, C::kTokens);
    GemmItem item;
    int step = 0;
    while (items.next(item)) {
      const int block0 = item.row_tile * C::kRowBlocks;
      const int blocks = max(0, min(C::kRowBlocks, p.row_blocks - block0));
#pragma unroll 1
      for (int k = item.k0; k < item.k1; ++k, ++step) {
        if (pass == 0 && step >= C::kStages) break;
        const int s = step % C::kStages;
        const uint32_t full = sm.full + 8 * s;
        if (pass == 0 || step >= C::kStages || !early) {
          if (step >= C::kStages) mbar_wait(sm.empty + 8 * s, ((step / C::kStages) & 1) ^ 1);
          mbar_arrive_expect(full, C::kTokenBytes + blocks * C::kRecords * C::kRecord);
          for (int b = 0; b < blocks; ++b)
            bulk_load(sm.weights + s * C::kWeightBytes + b * C::kRecords * C::kRecord,
                      p.w + (static_cast<size_t>(block0 + b) * p.k_records +
                             static_cast<size_t>(k) * C::kRecords) *
                                C::kRecord,
                      C::kRecords * C::kRecord, full, policy);
        }
        if (pass == 1) {
#pragma unroll
          for (int panel = 0; panel < C::kPanels; ++panel)
            tma_load_2d(sm.tokens + s * C::kTokenBytes + panel * C::kPanelBytes, x_map,
                        k * C::kK + panel * C::kPanelK, item.token_tile * C::kTokens, full);
        }
      }
      if (pass == 0 && step >= C::kStages) break;
    }
  }
}

__device__ __forceinline__ void load_codes(uint32_t address, uint32_t (&v)[4]) {
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
               : "r"(address));
}

// The A operands of one wgmma group: kSteps steps of 32 bytes of tokens each. 64 K a group where
// the registers allow it (fences, commits and waits cost latency, not issue slots), else 32 K.
template <class C>
struct Fragments {
  static constexpr int kHalves = C::kAct == Act::kFp8 || (C::kBlocks == 1 && C::kTokens <= 64 &&
                                                          C::kK >= 128 && C::kCtasPerSm <= 2)
                                     ? 2
                                     : 1;
  static constexpr int kSteps = C::kAct == Act::kFp8 ? kHalves : 2 * kHalves;
  static constexpr int kGroups = C::kK / (32 * kHalves);  // in a stage
  static_assert(kGroups % 2 == 0, "two buffers of fragments alternate");
  uint32_t a[C::kBlocks][kSteps][4];
};

// Packed words of a group, one load ahead of their decoding so that its latency hides behind it.
template <class C>
struct PackedWords {
  static constexpr int kHalves = Fragments<C>::kHalves;
  uint32_t codes[C::kBlocks][kHalves][4], scales[C::kBlocks];

  // `before` holds the scales of the record's first half when this group is its second.
  __device__ __forceinline__ void load(uint32_t weights, int group, int warp, int lane,
                                       const PackedWords& before) {
#pragma unroll
    for (int b = 0; b < C::kBlocks; ++b) {
      const int kb = group * kHalves;
      const uint32_t record = weights + (b * C::kRecords + (kb >> 1)) * C::kRecord;
#pragma unroll
      for (int h = 0; h < kHalves; ++h)
        load_codes(record + ((kb + h) & 1) * 2048 + warp * 512 + lane * 16, codes[b][h]);
      if ((kb & 1) == 0)
        asm volatile("ld.shared.u32 %0, [%1];"
                     : "=r"(scales[b])
                     : "r"(record + kFragmentCodeBytes + (warp * 8 + (lane >> 2)) * 4));
      else
        scales[b] = before.scales[b];
    }
  }
  __device__ __forceinline__ void decode(int group, Fragments<C>& f) const {
#pragma unroll
    for (int b = 0; b < C::kBlocks; ++b)
#pragma unroll
      for (int h = 0; h < kHalves; ++h) {
        const int half = (group * kHalves + h) & 1;
        const uint32_t s0 = scale_pair<C::kAct>(scales[b], half),
                       s1 = scale_pair<C::kAct>(scales[b], 2 + half);
        const uint32_t(&v)[4] = codes[b][h];
        uint32_t(&low)[4] = f.a[b][2 * h], (&high)[4] = f.a[b][2 * h + 1];
        decode_word<C::kAct>(v[0], s0, low[0], low[2]);
        decode_word<C::kAct>(v[1], s1, low[1], low[3]);
        decode_word<C::kAct>(v[2], s0, high[0], high[2]);
        decode_word<C::kAct>(v[3], s1, high[1], high[3]);
      }
  }
};

// One wgmma group on fragments `f`; leaves it in flight and waits for the one before.
template <class C>
__device__ __forceinline__ void multiply_group(const Fragments<C>& f, uint32_t tokens, int group,
                                               int first,
                                               float (&acc)[C::kBlocks][C::kTokens / 2]) {
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < Fragments<C>::kSteps; ++step) {
    const int slice = group * Fragments<C>::kSteps + step;  // of 32 bytes of K
    const uint64_t desc =
        wgmma_descriptor(tokens + (slice >> 2) * C::kPanelBytes + (slice & 3) * 32);
#pragma unroll
    for (int b = 0; b < C::kBlocks; ++b)
      Wgmma<C::kAct, C::kTokens>::run(acc[b], f.a[b][step], desc, first + slice);
  }
  wgmma_commit();
  wgmma_wait<1>();
}

// One stage: the fragments of a group are prepared while the wgmmas of the group before run.
// `previous_empty` is the barrier of the ring slot of the stage before, free once the first wait
// here has returned; `first` = 0 on the first step of an item, whose first wgmma overwrites the
// accumulators.
template <class C>
__device__ __forceinline__ void multiply_stage(uint32_t weights, uint32_t tokens, int warp,
                                               int lane, int first, uint32_t previous_empty,

                                               float (&acc)[C::kBlocks][C::kTokens / 2]) {
  Fragments<C> fragments[2];
  if constexpr (C::kAct == Act::kFp8) {
#pragma unroll
    for (int group = 0; group < Fragments<C>::kGroups; ++group) {
      Fragments<C>& f = fragments[group & 1];
#pragma unroll
      for (int b = 0; b < C::kBlocks; ++b)
#pragma unroll
        for (int step = 0; step < 2; ++step)
          load_codes(weights + (b * C::kRecords + group) * C::kRecord + step * 2048 + warp * 512 +
                         lane * 16,
                     f.a[b][step]);
      multiply_group<C>(f, tokens, group, first, acc);
      if (group == 0) mbar_arrive_lanes(previous_empty, lane, first != 0);
    }
  } else {
    PackedWords<C> words[2];
    words[0].load(weights, 0, warp, lane, words[1]);
#pragma unroll
    for (int group = 0; group < Fragments<C>::kGroups; ++group) {
      if (group + 1 < Fragments<C>::kGroups)
        words[(group + 1) & 1].load(weights, group + 1, warp, lane, words[group & 1]);
      words[group & 1].decode(group, fragments[group & 1]);
      multiply_group<C>(fragments[group & 1], tokens, group, first, acc);
      if (group == 0) mbar_arrive_lanes(previous_empty, lane, first != 0);
    }
  }
}

// Stream-K: hands this CTA's part of a tile to the CTA that has the head of it.
template <class C>
__device__ __forceinline__ void hand_over(const Sm90GemmArgs& a, int wg, int thread,
                                          const float (&acc)[C::kBlocks][C::kTokens / 2]) {
  float4* to =
      reinterpret_cast<float4*>(a.partials + static_cast<size_t>(blockIdx.x) * kPartialFloats) +
      wg * 128 + thread;
#pragma unroll
  for (int b = 0; b < C::kBlocks; ++b)
#pragma unroll
    for (int i = 0; i < C::kTokens / 8; ++i)
      __stcg(to + (b * (C::kTokens / 8) + i) * C::kConsumers,
             make_float4(acc[b][4 * i], acc[b][4 * i + 1], acc[b][4 * i + 2], acc[b][4 * i + 3]));
  __threadfence();
  named_barrier(1 + wg, 128);
  if (thread == 0) store_release(a.flags + blockIdx.x * kMaxWarpgroups + wg, 1);
}

// The other side: adds the parts of the CTAs that follow, in their order.
template <class C>
__device__ __forceinline__ void collect(const Sm90GemmArgs& a, const GemmItems& items, int tile,
                                        int wg, int thread,
                                        float (&acc)[C::kBlocks][C::kTokens / 2]) {
  const int64_t end = static_cast<int64_t>(tile - a.schedule.whole_tiles + 1) * a.schedule.k_steps;
#pragma unroll 1
  for (int u = blockIdx.x + 1; u < items.units && items.start(u) < end; ++u) {
    if (items.start(u) == items.start(u + 1)) continue;
    int* flag = a.flags + u * kMaxWarpgroups + wg;
    if (thread == 0)
      while (load_acquire(flag) == 0) {
      }
    named_barrier(1 + wg, 128);
    const float4* from =
        reinterpret_cast<const float4*>(a.partials + static_cast<size_t>(u) * kPartialFloats) +
        wg * 128 + thread;
#pragma unroll
    for (int b = 0; b < C::kBlocks; ++b)
#pragma unroll
      for (int i = 0; i < C::kTokens / 8; ++i) {
        const float4 v = __ldcg(from + (b * (C::kTokens / 8) + i) * C::kConsumers);
        acc[b][4 * i] += v.x;
        acc[b][4 * i + 1] += v.y;
        acc[b][4 * i + 2] += v.z;
        acc[b][4 * i + 3] += v.w;
      }
    if (thread == 0) *flag = 0;
  }
}

// Cluster form: every CTA lays its FP32 tile over its ring, then adds and stores its share of
// tokens.
template <class C>
__device__ __forceinline__ void cluster_finish(const Sm90GemmArgs& a, const GemmItem& item,
                                               uint32_t dump, int wg, int thread, int tokens,
                                               const float (&acc)[C::kBlocks][C::kTokens / 2]) {
  const int lane = thread & 31, warp = thread >> 5, cluster = a.schedule.cluster;
  named_barrier(3, C::kConsumers);  // both warpgroups have left the ring
#pragma unroll
  for (int b = 0; b < C::kBlocks; ++b)
#pragma unroll
    for (int i = 0; i < C::kTokens / 8; ++i) {
      const uint32_t at = dump + ((i * 8 + 2 * (lane & 3)) * C::kSumStride +
                                  (wg * C::kBlocks + b) * 64 + warp * 16 + (lane >> 2)) *
                                     4;
      asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(acc[b][4 * i]) : "memory");
      asm volatile("st.shared.f32 [%0], %1;" ::"r"(at + C::kSumStride * 4), "f"(acc[b][4 * i + 1])
                   : "memory");
      asm volatile("st.shared.f32 [%0], %1;" ::"r"(at + 32), "f"(acc[b][4 * i + 2]) : "memory");
      asm volatile("st.shared.f32 [%0], %1;" ::"r"(at + C::kSumStride * 4 + 32),
                   "f"(acc[b][4 * i + 3])
                   : "memory");
    }
  cluster_arrive();
  cluster_wait();
  const int rank = blockIdx.x % cluster, token0 = item.token_tile * C::kTokens;
  const int t0 = C::kTokens * rank / cluster;
  const int count = min(C::kTokens * (rank + 1) / cluster, tokens - token0) - t0;
  // A unit: one token, rows r..r+3 and r+8..r+11 of a 16-row fragment.
  constexpr int kUnits = C::kRows / 8;
  for (int u = wg * 128 + thread; u < count * kUnits; u += C::kConsumers) {
    const int t = t0 + u / kUnits, q = u % kUnits, row = (q >> 1) * 16 + (q & 1) * 4;
    const uint32_t at = dump + (t * C::kSumStride + row) * 4;
    float v[8] = {};
#pragma unroll
    for (int r0 = 0; r0 < 8; r0 += 4) {  // four CTAs' loads in flight: more would spill
      float4 lo[4], hi[4];
#pragma unroll
      for (int r = 0; r < 4; ++r)
        if (r0 + r < cluster) {
          const uint32_t from = cluster_map(at, r0 + r);
          lo[r] = cluster_load_v4(from);
          hi[r] = cluster_load_v4(from + 32);
        }
#pragma unroll
      for (int r = 0; r < 4; ++r)
        if (r0 + r < cluster) {
          v[0] += lo[r].x, v[1] += lo[r].y, v[2] += lo[r].z, v[3] += lo[r].w;
          v[4] += hi[r].x, v[5] += hi[r].y, v[6] += hi[r].z, v[7] += hi[r].w;
        }
    }
    const int packed = item.row_tile * C::kRows + row;
    if (packed < a.p.row_blocks * 64) write_row_quads<C::kAct>(a.p, packed, token0 + t, v);
  }
}

template <class C>
__device__ __forceinline__ void consume(const CUtensorMap* y_map, const Sm90GemmArgs& a,
                                        const Sm90GemmSmem<C>& sm, int wg) {
  const GemmParams& p = a.p;
  const int thread = threadIdx.x & 127, lane = thread & 31, warp = thread >> 5;
  pdl_wait();
  const int tokens = p.m_device ? min(*p.m_device, p.m) : p.m;
  float acc[C::kBlocks][C::kTokens / 2];
  GemmItems items(a.schedule, tokens, C::kTokens);
  GemmItem item;
  typename C::Writer epilogue(p, a.tensor_stores ? y_map : nullptr,
                              sm.stage + wg * C::Stage::kBytes,
                              sm.scales + wg * C::Writer::kScaleBytes, 1 + wg, thread, tokens);
  int step = 0;
#pragma unroll 1
  while (items.next(item)) {
    const int row0 = (item.row_tile * C::kRowBlocks + wg * C::kBlocks) * 64;
    const int token0 = item.token_tile * C::kTokens;
    if constexpr (!C::kClusterSplit) epilogue.stage_scales(row0, token0);
#pragma unroll 1
    for (int k = item.k0; k < item.k1; ++k, ++step) {
      const int s = step % C::kStages;
      mbar_wait(sm.full + 8 * s, (step / C::kStages) & 1);
      multiply_stage<C>(
          sm.weights + s * C::kWeightBytes + wg * C::kBlocks * C::kRecords * C::kRecord,
          sm.tokens + s * C::kTokenBytes, warp, lane, k - item.k0,
          sm.empty + 8 * ((step + C::kStages - 1) % C::kStages), acc);
    }
    wgmma_wait<0>();
    mbar_arrive_lanes(sm.empty + 8 * ((step + C::kStages - 1) % C::kStages), lane, 1);
    if constexpr (C::kClusterSplit) {
      cluster_finish<C>(a, item, sm.tokens, wg, thread, tokens, acc);
    } else {
      if (item.k0 > 0) {
        hand_over<C>(a, wg, thread, acc);
        continue;
      }
      if (item.k1 < a.schedule.k_steps) collect<C>(a, items, item.tile, wg, thread, acc);
      epilogue.write(acc, row0, token0);
    }
  }
  if constexpr (!C::kClusterSplit) epilogue.drain();
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kCtasPerSm)
    sm90_gemm_kernel(const __grid_constant__ CUtensorMap x_map,
                     const __grid_constant__ CUtensorMap y_map,
                     const __grid_constant__ Sm90GemmArgs a) {
  extern __shared__ uint8_t smem[];
  const Sm90GemmSmem<C> sm(smem_address(smem));
  const int wg = threadIdx.x >> 7;
  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) {
      mbar_init(sm.full + 8 * s, 1);
      mbar_init(sm.empty + 8 * s, 4 * C::kWarpgroups);
    }
    mbar_init_fence();
    tma_prefetch_map(&x_map);
    if (a.tensor_stores) tma_prefetch_map(&y_map);
  }
  __syncthreads();
  pdl_launch_dependents();
  // setmaxnreg needs whole warpgroups and one if/else; light instances put their one producer warp
  // last.
  if constexpr (C::kLight) {
    if (wg == C::kWarpgroups) {
      if (threadIdx.x == C::kConsumers) produce<C>(&x_map, a, sm);
      if constexpr (C::kClusterSplit) {
        __syncwarp();
        cluster_arrive();
        cluster_wait();
      }
    } else {
      consume<C>(&y_map, a, sm, wg);
    }
  } else {
    if (wg == 0) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(C::kProducerRegs));
      if (threadIdx.x == 0) produce<C>(&x_map, a, sm);
      if constexpr (C::kClusterSplit) {
        __syncwarp();
        cluster_arrive();
        cluster_wait();
      }
    } else {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(C::kConsumerRegs));
      consume<C>(&y_map, a, sm, wg - 1);
    }
  }
  if constexpr (C::kClusterSplit) {  // nobody leaves while its sums may still be read
    cluster_arrive();
    cluster_wait();
  }
}

// The schedule of a launch; grid receives the number of CTAs.
template <class C>
GemmSchedule plan_schedule(const GemmParams& p, const GemmConfig& config, int sms, int& grid) {
  GemmSchedule s = {};
  s.k_steps = p.k_records / C::kRecords;
  s.row_tiles = (p.row_blocks + C::kRowBlocks - 1) / C::kRowBlocks;
  s.token_tiles = (p.m + C::kTokens - 1) / C::kTokens;
  constexpr int kGroup = 12;  // 6, 12 and 24 measure alike
  const int groups = (s.token_tiles + kGroup - 1) / kGroup;
  s.group = (s.token_tiles + groups - 1) / groups;
  const int tiles = s.row_tiles * s.token_tiles;
  int units = sms * C::kCtasPerSm;
  if (C::kClusterSplit) {
    s.cluster = config.cluster;
    s.whole_tiles = tiles;
    grid = tiles * config.cluster;
    return s;
  }
  s.whole_tiles = tiles;
  if (config.split != GemmSplit::kWholeTiles) {
    s.whole_tiles = tiles / units * units;
    if (config.split == GemmSplit::kStreamKOne && s.whole_tiles >= units) s.whole_tiles -= units;
    s.cut_tiles = tiles - s.whole_tiles;
  }
  const int64_t most = s.whole_tiles > 0 ? tiles : static_cast<int64_t>(tiles) * s.k_steps;
  if (config.split == GemmSplit::kWholeTiles || s.whole_tiles == 0)
    units = static_cast<int>(units < most ? units : most);
  grid = units;
  return s;
}

template <class C>
cudaError_t launch_sm90_gemm(const GemmParams& p, const GemmConfig& config, int sms,
                             void* workspace, cudaStream_t stream, bool pdl) {
  CUtensorMap map;
  cudaError_t e = make_token_map(&map, p.x, C::kAct, p.k, p.m, p.ldx, C::kTokens);
  if (e != cudaSuccess) return e;
  auto kernel = sm90_gemm_kernel<C>;
  e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kSmem);
  if (e != cudaSuccess) return e;
  int grid = 0;
  Sm90GemmArgs args = {p, plan_schedule<C>(p, config, sms, grid), nullptr, nullptr, false};
  CUtensorMap y_map = {};
  if (!C::kClusterSplit && p.out != Out::kFp32 && !p.silu_mul && p.m_device == nullptr)
    args.tensor_stores = make_output_map(&y_map, p.y, p.n, p.m, p.ldy, C::kChunk) == cudaSuccess;
  args.flags = static_cast<int*>(workspace);
  args.partials = reinterpret_cast<float*>(static_cast<char*>(workspace) + gemm_flag_bytes());
  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3(static_cast<unsigned>(grid));
  launch.blockDim = dim3(C::kThreads);
  launch.dynamicSmemBytes = C::kSmem;
  launch.stream = stream;
  cudaLaunchAttribute attributes[2];
  if (C::kClusterSplit) {
    attributes[launch.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[launch.numAttrs++].val.clusterDim = {static_cast<unsigned>(config.cluster), 1, 1};
  }
  if (pdl) {
    attributes[launch.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[launch.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  launch.attrs = attributes;
  return cudaLaunchKernelEx(&launch, kernel, map, y_map, args);
}

struct GemmEntry {
  GemmVariant info;
  cudaError_t (*launch)(const GemmParams&, const GemmConfig&, int, void*, cudaStream_t, bool);
};
template <class C>
constexpr GemmEntry gemm_entry(const char* name) {
  return {{name, C::kRows, C::kTokens, C::kK, C::kCtasPerSm, C::kClusterSplit},
          launch_sm90_gemm<C>};
}

}  // namespace mx8::cuda
