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
//   Two producer threads fill a ring of kStages (records by 1-D bulk copy, tokens by TMA; a copy
//   and a barrier cost their thread 50 cycles each); consumer warpgroups of kBlocks x 64 rows
//   decode groups of 32 K ahead of the wgmmas. Persistent: whole tiles, stream-K ranges (partial
//   sums through a workspace, added in the order of K by the CTA that has the head of the tile,
//   which gets them through its ring) or a cluster that shares the K of one tile and exchanges
//   its sums through distributed shared memory. Weights are requested before
//   griddepcontrol.wait. Outputs leave by tensor stores that overlap the next tile
//   (sm90_gemm_epilogue.cuh). Light instances (no setmaxnreg) run several to an SM. Every lane
//   gives a stage back itself: one for its warp is no faster, and racecheck cannot follow it.
// A tile of 128 rows x T tokens, in cycles a 64 K of one SM
//   Tensor cores 4 T, L2 into shared memory (128 T + 8448) / 60, decoding 130 to 170. Measured:
//   T = 256 1026, T = 192 771 (no longer built), T = 128 557, T = 64 430 (the copies).
// Measured: docs/performance.md, section GPU.
// Lost
//   Token multicast between CTAs of neighbouring rows (2 or 4 to a cluster, with and without
//   split K: no cell of the table gained more than deeper stages did); three consumer warpgroups
//   (8-20 % slower in BF16); staggered warpgroups (no effect); warpgroups that take turns through
//   named barriers, one decoding while the other multiplies (0-2 % slower); groups of 64 K for
//   the wide BF16 tiles (no effect); stream-K above M = 512 where whole tiles fill the waves (the
//   skew of the CTAs destroys the shared K window in L2); every CTA of a stream-K tile adding its
//   share of the tokens (20 % slower: all parts cross L2 twice); reading a cluster's sums with
//   ld.shared::cluster (9 bytes a cycle); two stages of weights before the wait and the others with
//   the tokens (3 % slower at M = 128); 256 x 80 tiles in BF16 (decoding binds: 980
//   cycles for 640); 192 rows in three warpgroups (512 threads leave a wgmma of 256 tokens too few
//   registers).
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
  int* flags;       // stream-K: one int a CTA, the warpgroups that have laid their part down
  bool tensor_stores;
};

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
  static constexpr int kThreads = kConsumers + (kLight ? 64 : 128);
  static constexpr int kCtasPerSm = kLight ? kLight_ : 1;
  // setmaxnreg: 128 * producer + kConsumers * consumer <= 65536.
  static constexpr bool kMostAccumulators = kBlocks * kTokens > 256;  // 160 or 176 a thread
  static constexpr int kProducerRegs = kMostAccumulators ? 40 : 56;
  static constexpr int kConsumerRegs = kMostAccumulators ? 232 : 224;

  static constexpr int kRows = 64 * kBlocks * kWarpgroups;
  static constexpr int kRowBlocks = kBlocks * kWarpgroups;
  static constexpr int kRecord = kAct == Act::kFp8 ? kFragmentCodeBytes : kFragmentRecordBytes;
  static constexpr int kRecords = kK / 64;                      // records of a row block in a stage
  static constexpr int kPanelK = kAct == Act::kFp8 ? 128 : 64;  // K of a 128-byte token panel
  static constexpr int kPanels = kK / kPanelK, kPanelBytes = kTokens * 128;
  static constexpr int kTokenBytes = kPanels * kPanelBytes;
  static constexpr int kWeightBytes = kRowBlocks * kRecords * kRecord;
  static constexpr int kRing = kStages * (kTokenBytes + kWeightBytes);
  static constexpr int kBarrierBytes = 16 * kStages + 8;
  using Scales = EpilogueScales<kAct, kBlocks, kTokens>;
  static constexpr int kScaleBytes = kClusterSplit ? 0 : kWarpgroups * Scales::kBytes;
  // 228 KB an SM, of which each CTA costs 1 KB more than it asks for.
  static constexpr int kMostSmem = 233472 / kCtasPerSm - 1024;
  // The cluster form lays its FP32 tile over the drained ring and stores from there.
  using Stage = EpilogueStage<kBlocks, kTokens,
                              kClusterSplit ? kTokens * kBlocks * 128
                                            : (kMostSmem - kRing - kBarrierBytes - kScaleBytes) /
                                                  kWarpgroups>;
  using Writer = Epilogue<kAct, kBlocks, kTokens, Stage>;
  static constexpr int kStageBytes = kClusterSplit ? 0 : kWarpgroups * Stage::kBytes;
  static constexpr int kSmem = kRing + kStageBytes + kScaleBytes + kBarrierBytes;
  static constexpr int kSumStride = kRows + 4;  // cluster form, floats between tokens: no conflicts
  static_assert(kSmem <= kMostSmem);
  // Two copies of the sums, the rounding of shares, and what a thread's second token reads beyond.
  static_assert(!kClusterSplit ||
                (2 * kTokens + 7 + kConsumers * 8 / kRows) * kSumStride * 4 <= kRing);
  // The next stage is awaited before the last one is given back.
  static_assert(kStages >= 3);
  // Stream-K needs a slot of the workspace a CTA.
  static constexpr bool kStreamK =
      !kClusterSplit && kCtasPerSm == 1 && kRows * kTokens <= kPartialFloats;
  // Stream-K sums come in through the ring: a group of 4 accumulators a thread at a time,
  // kSumGroups of them a stage.
  static constexpr int kAccGroups = kBlocks * kTokens / 8, kGroupBytes = kConsumers * 16;
  static constexpr int sum_groups() {
    int groups = kTokenBytes / kGroupBytes;
    while (groups > 1 && kAccGroups % groups != 0) --groups;
    return groups;
  }
  static constexpr int kSumGroups = sum_groups();
  static_assert(!kStreamK || kGroupBytes <= kTokenBytes);
};

template <class C>
struct Sm90GemmSmem {
  uint32_t tokens, stage, weights, scales, full, empty, done;
  __device__ __forceinline__ explicit Sm90GemmSmem(uint32_t raw) {
    tokens = raw;                                  // a multiple of 1024, as the swizzle wants
    stage = tokens + C::kStages * C::kTokenBytes;  // so is this
    weights = stage + C::kStageBytes;
    scales = weights + C::kStages * C::kWeightBytes;
    full = scales + C::kScaleBytes;
    empty = full + 8 * C::kStages;
    done = empty + 8 * C::kStages;
  }
};

// A place in the ring, and the parity that its full barrier takes on when it is filled.
template <class C>
struct RingPosition {
  int stage = 0, parity = 0;
  // For a producer that has filled `filled` stages, all of them counted as kStages.
  __device__ __forceinline__ void wait_free(const Sm90GemmSmem<C>& sm, int& filled) const {
    if (filled == C::kStages)
      mbar_wait(sm.empty + 8 * stage, parity ^ 1);
    else
      ++filled;
  }
  __device__ __forceinline__ RingPosition next() const {
    const bool wraps = stage + 1 == C::kStages;
    return {wraps ? 0 : stage + 1, wraps ? parity ^ 1 : parity};
  }
};

// Stream-K: the parts of a tile that the CTAs after this one worked on, in the order of K.
template <class C>
__device__ __forceinline__ void produce_parts(const Sm90GemmArgs& a, const Sm90GemmSmem<C>& sm,
                                              const GemmItems& items, const GemmItem& item,
                                              RingPosition<C> at, int filled) {
  constexpr int kBytes = C::kSumGroups * C::kGroupBytes;
  const int end = items.tile_end(item);
  pdl_wait();  // the grid before this one may use the same workspace
  for (int u = blockIdx.x + 1; items.start(u) < end; ++u) {
    int* flag = a.flags + u;
    while (load_acquire(flag) < C::kWarpgroups) {
    }
    *flag = 0;
    fence_proxy_async_global();
    const float* part = a.partials + static_cast<size_t>(u) * kPartialFloats;
#pragma unroll 1
    for (int g = 0; g < C::kAccGroups; g += C::kSumGroups, part += kBytes / 4, at = at.next()) {
      const uint32_t full = sm.full + 8 * at.stage;
      at.wait_free(sm, filled);
      mbar_arrive_expect(full, kBytes);
      bulk_load(sm.tokens + at.stage * C::kTokenBytes, part, kBytes, full, l2_policy_evict_first());
      mbar_arrive(full);  // for the producer of tokens, which has ended
    }
  }
}

// Two threads of different warps fill the ring: a copy costs its thread 50 cycles, a barrier as
// much. Weights don't depend on the grid before this one and are requested at once.
template <class C>
__device__ __forceinline__ void produce_weights(const Sm90GemmArgs& a, const Sm90GemmSmem<C>& sm) {
  const GemmParams& p = a.p;
  const uint64_t policy =
      a.schedule.token_tiles == 1 ? l2_policy_evict_first() : l2_policy_evict_normal();
  int tokens = p.m;
  if (p.m_device && a.schedule.token_tiles > 1) {
    pdl_wait();
    tokens = min(*p.m_device, p.m);
  }
  constexpr int kBytes = C::kRecords * C::kRecord;  // of a row block
  const size_t block_stride = static_cast<size_t>(p.k_records) * C::kRecord;
  GemmItems items(a.schedule, tokens, C::kTokens);
  GemmItem item;
  RingPosition<C> at;
  int filled = 0;
  while (items.next(item)) {
    const int block0 = item.row_tile * C::kRowBlocks;
    const int blocks = max(0, min(C::kRowBlocks, p.row_blocks - block0));
    const uint8_t* from = p.w + block0 * block_stride + static_cast<size_t>(item.k0) * kBytes;
#pragma unroll 1
    for (int k = item.k0; k < item.k1; ++k, at = at.next(), from += kBytes) {
      const uint32_t full = sm.full + 8 * at.stage, to = sm.weights + at.stage * C::kWeightBytes;
      at.wait_free(sm, filled);
      mbar_arrive_expect(full, blocks * kBytes);
#pragma unroll
      for (int b = 0; b < C::kRowBlocks; ++b)
        if (b < blocks) bulk_load(to + b * kBytes, from + b * block_stride, kBytes, full, policy);
    }
    if constexpr (C::kStreamK)
      if (item.k0 == 0 && item.k1 < a.schedule.k_steps)
        produce_parts<C>(a, sm, items, item, at, filled);
  }
}

// Waits for the grid before this one; the divisions of the first item are done meanwhile.
__device__ __forceinline__ bool first_item(const GemmParams& p, GemmItems& items, GemmItem& item) {
  bool any = p.m_device == nullptr && items.next(item);
  pdl_wait();
  if (p.m_device) {
    items.tokens = min(*p.m_device, p.m);
    any = items.next(item);
  }
  return any;
}

template <class C>
__device__ __forceinline__ void produce_tokens(const CUtensorMap* x_map, const Sm90GemmArgs& a,
                                               const Sm90GemmSmem<C>& sm) {
  GemmItems items(a.schedule, a.p.m, C::kTokens);
  GemmItem item;
  RingPosition<C> at;
  int filled = 0;
  for (bool more = first_item(a.p, items, item); more; more = items.next(item)) {
#pragma unroll 1
    for (int k = item.k0; k < item.k1; ++k, at = at.next()) {
      const uint32_t full = sm.full + 8 * at.stage, to = sm.tokens + at.stage * C::kTokenBytes;
      at.wait_free(sm, filled);
      mbar_arrive_expect(full, C::kTokenBytes);
#pragma unroll
      for (int panel = 0; panel < C::kPanels; ++panel)
        tma_load_2d(to + panel * C::kPanelBytes, x_map, k * C::kK + panel * C::kPanelK,
                    item.token_tile * C::kTokens, full);
    }
  }
}

// The A operands of one wgmma group: two steps of 32 bytes of tokens each, so 32 K a group with
// 16-bit tokens and 64 K with E4M3. kAhead groups are decoded ahead of the one being issued.
template <class C>
struct Fragments {
  // One step where the accumulators leave no registers for more. (16-bit words hold two.)
  static constexpr int kSteps = C::kMostAccumulators ? 1 : 2;
  static constexpr int kGroups = C::kK / ((C::kAct == Act::kFp8 ? 32 : 16) * kSteps);  // in a stage
  static constexpr int kAhead = kSteps == 1 ? 1 : kGroups / 2;
  static_assert(kGroups == 2 || kGroups == 4);
  static_assert(kSteps == 2 || C::kAct == Act::kFp8);
  uint32_t a[C::kBlocks][kSteps][4];
};

// The weights of one group on their way from the ring to fragments: fetch() requests the packed
// words, prepare() makes operands of them a group later. E4M3 operands are the words themselves,
// loaded by prepare().
template <class C>
struct GroupWeights {
  uint32_t codes[C::kBlocks][4], scales[C::kBlocks];

  // `codes_at` and `scales_at`: this lane's part of the first record of a stage.
  __device__ __forceinline__ void fetch(uint32_t codes_at, uint32_t scales_at, int group) {
    if constexpr (C::kAct != Act::kFp8) {
      const int half = group & 1;
#pragma unroll
      for (int b = 0; b < C::kBlocks; ++b) {
        const uint32_t record = (b * C::kRecords + (group >> 1)) * C::kRecord;
        shared_load_words(codes_at + record + half * 2048, codes[b]);
        if (half == 0)  // one word holds the scales of both halves of a record
          asm volatile("ld.shared.u32 %0, [%1];" : "=r"(scales[b]) : "r"(scales_at + record));
      }
    }
  }
  __device__ __forceinline__ void prepare(uint32_t codes_at, int group, Fragments<C>& f) const {
#pragma unroll
    for (int b = 0; b < C::kBlocks; ++b) {
      if constexpr (C::kAct == Act::kFp8) {
#pragma unroll
        for (int step = 0; step < Fragments<C>::kSteps; ++step) {
          const int half = group * Fragments<C>::kSteps + step;
          shared_load_words(
              codes_at + (b * C::kRecords + (half >> 1)) * C::kRecord + (half & 1) * 2048,
              f.a[b][step]);
        }
      } else {
        decode_operands<C::kAct>(codes[b], scales[b], group & 1, f.a[b][0], f.a[b][1]);
      }
    }
  }
};

// wgmma_descriptor() of an address that all lanes share, known as such to the compiler.
__device__ __forceinline__ uint64_t uniform_descriptor(uint32_t address) {
  return wgmma_descriptor(__shfl_sync(~0u, address, 0));
}

// Issues one wgmma group on fragments `f`; `tokens` is the descriptor of the stage. `first` = 0 on
// the first step of an item, whose first wgmma overwrites the accumulators.
template <class C>
__device__ __forceinline__ void issue_group(const Fragments<C>& f, uint64_t tokens, int group,
                                            int first, float (&acc)[C::kBlocks][C::kTokens / 2]) {
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < Fragments<C>::kSteps; ++step) {
    const int slice = group * Fragments<C>::kSteps + step;  // of 32 bytes of K
    const uint64_t desc = tokens + ((slice >> 2) * C::kPanelBytes + (slice & 3) * 32) / 16;
#pragma unroll
    for (int b = 0; b < C::kBlocks; ++b)
      Wgmma<C::kAct, C::kTokens>::run(acc[b], f.a[b][step], desc, slice == 0 ? first : 1);
  }
  wgmma_commit();
}

// The K loop of one item: `steps` stages of the ring from `at` on. While group g multiplies, group
// g + kAhead is decoded and the words of the one after it are fetched; the barrier of the next
// stage is awaited under cover of the wgmmas too. With the barrier (50 cycles) and the loads on the
// critical path a 128 x 128 tile took 780 cycles a 64 K where the tensor cores need 512.
template <class C>
__device__ __forceinline__ void multiply_item(const Sm90GemmSmem<C>& sm, int wg, int warp, int lane,
                                              int steps, RingPosition<C>& at,
                                              float (&acc)[C::kBlocks][C::kTokens / 2]) {
  using F = Fragments<C>;
  const uint32_t own = sm.weights + wg * C::kBlocks * C::kRecords * C::kRecord;
  uint32_t codes0 = own + warp * 512 + lane * 16;
  uint32_t scales0 = own + kFragmentCodeBytes + (warp * 8 + (lane >> 2)) * 4;
  asm volatile("" : "+r"(codes0), "+r"(scales0));  // kept in registers, not computed anew each step
  F fragments[F::kGroups];
  GroupWeights<C> words;
  uint32_t codes = codes0 + at.stage * C::kWeightBytes,
           scales = scales0 + at.stage * C::kWeightBytes;
  mbar_wait(sm.full + 8 * at.stage, at.parity);
#pragma unroll
  for (int group = 0; group < F::kAhead; ++group) {
    words.fetch(codes, scales, group);
    words.prepare(codes, group, fragments[group]);
  }
  words.fetch(codes, scales, F::kAhead);
  uint32_t previous_empty = sm.empty;
#pragma unroll 1
  for (int k = 0; k < steps; ++k) {
    const uint64_t tokens = uniform_descriptor(sm.tokens + at.stage * C::kTokenBytes);
    const RingPosition<C> next = at.next();
    // The last step has no next one: it fetches its own words once more. (In the cluster form
    // nothing is filled after the one item.)
    const int next_stage = C::kClusterSplit || k + 1 < steps ? next.stage : at.stage;
    const uint32_t next_codes = codes0 + next_stage * C::kWeightBytes,
                   next_scales = scales0 + next_stage * C::kWeightBytes;
#pragma unroll
    for (int group = 0; group < F::kGroups; ++group) {
      const int decoded = group + F::kAhead, fetched = decoded + 1;
      issue_group<C>(fragments[group], tokens, group, k, acc);
      if (fetched == F::kGroups) mbar_wait_if(sm.full + 8 * next.stage, next.parity, k + 1 < steps);
      wgmma_wait<F::kAhead>();
      // The wgmmas of the stage before have ended.
      if (group == F::kAhead - 1) mbar_arrive_if(previous_empty, k != 0);
      words.prepare(decoded < F::kGroups ? codes : next_codes, decoded % F::kGroups,
                    fragments[decoded % F::kGroups]);
      words.fetch(fetched < F::kGroups ? codes : next_codes,
                  fetched < F::kGroups ? scales : next_scales, fetched % F::kGroups);
    }
    previous_empty = sm.empty + 8 * at.stage;
    at = next;
    codes = next_codes;
    scales = next_scales;
  }
  wgmma_wait<0>();
  mbar_arrive(previous_empty);
}

// Stream-K: lays this CTA's part of a tile into its slot of the workspace for the CTA that has the
// head of the tile.
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
  fence_proxy_async_global();
  __threadfence();
  named_barrier(1 + wg, 128);
  if (thread == 0) add_release(a.flags + blockIdx.x, 1);
}

// The other side: adds the parts of the CTAs that follow, as the producer brings them.
template <class C>
__device__ __forceinline__ void collect(const Sm90GemmArgs& a, const Sm90GemmSmem<C>& sm,
                                        const GemmItems& items, const GemmItem& item, int wg,
                                        int thread, RingPosition<C>& at,
                                        float (&acc)[C::kBlocks][C::kTokens / 2]) {
  const int end = items.tile_end(item);
#pragma unroll 1
  for (int u = blockIdx.x + 1; items.start(u) < end; ++u) {
#pragma unroll
    for (int g = 0; g < C::kAccGroups; ++g) {
      if (g % C::kSumGroups == 0) mbar_wait(sm.full + 8 * at.stage, at.parity);
      const float4 v =
          shared_load_v4(sm.tokens + at.stage * C::kTokenBytes +
                         (g % C::kSumGroups) * C::kGroupBytes + (wg * 128 + thread) * 16);
      float* sum = acc[g / (C::kTokens / 8)] + 4 * (g % (C::kTokens / 8));
      sum[0] += v.x, sum[1] += v.y, sum[2] += v.z, sum[3] += v.w;
      if ((g + 1) % C::kSumGroups == 0) {
        mbar_arrive(sm.empty + 8 * at.stage);
        at = at.next();
      }
    }
  }
}

// Cluster form: every CTA lays its FP32 tile over its ring and pushes to each other CTA the tokens
// that one is to finish (reading them there instead moves 9 bytes a clock), then adds and stores
// its own.
template <class C>
struct ClusterSums {
  static constexpr int kTokenBytes = C::kSumStride * 4;
  uint32_t own, received;  // [kTokens][kSumStride]; a slot a CTA, [room][kSumStride]
  int cluster, rank, room;

  __device__ __forceinline__ ClusterSums(uint32_t ring, int cluster_size)
      : own(ring),
        received(ring + C::kTokens * kTokenBytes),
        cluster(cluster_size),
        rank(blockIdx.x % cluster_size),
        room((C::kTokens + cluster_size - 1) / cluster_size) {}
  // First token of rank r's share.
  __device__ __forceinline__ int first(int r) const { return C::kTokens * r / cluster; }
  // By as many threads as there are ranks; `done` completes when all have pushed to this CTA.
  __device__ __forceinline__ void push(int r, uint32_t done) const {
    const int from = first(r), bytes = (first(r + 1) - from) * kTokenBytes;
    if (r == rank)
      mbar_arrive_expect(done, (cluster - 1) * bytes);
    else
      cluster_push(cluster_map(received + rank * room * kTokenBytes, r), own + from * kTokenBytes,
                   bytes, cluster_map(done, r));
  }
  // Sums of rows row..row+3 and row+next..row+next+3 of tokens t and t + step of this rank's share,
  // in the order of the ranks, which is that of K.
  template <int kMany>
  __device__ __forceinline__ void add(int t, int step, int row, int next,
                                      float (&v)[kMany][8]) const {
    const uint32_t offset = t * kTokenBytes + row * 4;
#pragma unroll 2
    for (int r = 0; r < cluster; ++r) {
      const uint32_t at = offset + (r == rank ? own + first(rank) * kTokenBytes
                                              : received + r * room * kTokenBytes);
#pragma unroll
      for (int j = 0; j < kMany; ++j) {
        const float4 lo = shared_load_v4(at + j * step * kTokenBytes),
                     hi = shared_load_v4(at + j * step * kTokenBytes + next * 4);
        v[j][0] += lo.x, v[j][1] += lo.y, v[j][2] += lo.z, v[j][3] += lo.w;
        v[j][4] += hi.x, v[j][5] += hi.y, v[j][6] += hi.z, v[j][7] += hi.w;
      }
    }
  }
};

template <class C>
__device__ __forceinline__ void cluster_finish(const Sm90GemmArgs& a, const GemmItem& item,
                                               const Sm90GemmSmem<C>& sm, int wg, int thread,
                                               int tokens,
                                               const float (&acc)[C::kBlocks][C::kTokens / 2]) {
  using Sums = ClusterSums<C>;
  constexpr int kUnits = C::kRows / 8;  // a unit: 8 rows of a token
  constexpr Out kOut = C::Writer::kPlainOut;
  const GemmParams& p = a.p;
  const int lane = thread & 31, warp = thread >> 5, first = wg * 128 + thread;
  const Sums sums(sm.tokens, a.schedule.cluster);
  const int token0 = item.token_tile * C::kTokens + sums.first(sums.rank);
  const int count = min(sums.first(sums.rank + 1) - sums.first(sums.rank), tokens - token0);
  const bool plain = plain_outputs(p, kOut) && (p.n & 7) == 0 && (p.ldy & 7) == 0 &&
                     (reinterpret_cast<uintptr_t>(p.y) & 15) == 0;
  // Plain: eight neighbouring rows, the same ones for all tokens of a thread.
  const int plain_row = first % kUnits * 8, plain_packed = item.row_tile * C::kRows + plain_row;
  float scales[8];
  if constexpr (C::kAct != Act::kBf16)
#pragma unroll
    for (int i = 0; i < 8; ++i)
      scales[i] = plain && plain_packed < p.n ? p.row_scale[plain_packed + i] : 0.f;
  named_barrier(3, C::kConsumers);  // both warpgroups have left the ring
  cluster_arrive_relaxed();
#pragma unroll
  for (int b = 0; b < C::kBlocks; ++b)
#pragma unroll
    for (int i = 0; i < C::kTokens / 8; ++i) {
      const uint32_t at = sums.own + (i * 8 + 2 * (lane & 3)) * Sums::kTokenBytes +
                          ((wg * C::kBlocks + b) * 64 + warp * 16 + (lane >> 2)) * 4;
      shared_store(at, acc[b][4 * i]);
      shared_store(at + Sums::kTokenBytes, acc[b][4 * i + 1]);
      shared_store(at + 32, acc[b][4 * i + 2]);
      shared_store(at + Sums::kTokenBytes + 32, acc[b][4 * i + 3]);
    }
  fence_proxy_async();
  named_barrier(3, C::kConsumers);  // this CTA's tile is down
  cluster_wait();                   // the others have left their rings
  if (first < sums.cluster) sums.push(first, sm.done);
  if (plain) {
    constexpr int kMany = 2, kStep = C::kConsumers / kUnits;  // tokens of a thread side by side
    mbar_wait(sm.done, 0);
#pragma unroll 1
    for (int t = first / kUnits; t < count; t += kMany * kStep) {
      float v[kMany][8] = {}, token_scales[kMany];
      if constexpr (C::kAct == Act::kFp8)
#pragma unroll
        for (int j = 0; j < kMany; ++j)
          token_scales[j] = p.token_scale[min(token0 + t + j * kStep, tokens - 1)];
      sums.template add<kMany>(t, kStep, plain_row, 4, v);
#pragma unroll
      for (int j = 0; j < kMany; ++j) {
        if constexpr (C::kAct != Act::kBf16)
#pragma unroll
          for (int i = 0; i < 8; ++i) v[j][i] *= scales[i];
        if constexpr (C::kAct == Act::kFp8)
#pragma unroll
          for (int i = 0; i < 8; ++i) v[j][i] *= token_scales[j];
        if (plain_packed < p.n && t + j * kStep < count)
          *reinterpret_cast<uint4*>(static_cast<uint16_t*>(p.y) + (token0 + t + j * kStep) * p.ldy +
                                    plain_packed) =
              make_uint4(pack_pair(v[j][0], v[j][1], kOut), pack_pair(v[j][2], v[j][3], kOut),
                         pack_pair(v[j][4], v[j][5], kOut), pack_pair(v[j][6], v[j][7], kOut));
      }
    }
    return;
  }
  mbar_wait(sm.done, 0);
  // Rows r..r+3 and r+8..r+11 of a 16-row fragment: gate and up of the same features.
#pragma unroll 1
  for (int u = first; u < count * kUnits; u += C::kConsumers) {
    const int t = u / kUnits, q = u % kUnits, row = (q >> 1) * 16 + (q & 1) * 4;
    float v[1][8] = {};
    sums.template add<1>(t, 0, row, 8, v);
    const int packed = item.row_tile * C::kRows + row;
    if (packed < p.row_blocks * 64) write_row_quads<C::kAct>(p, packed, token0 + t, v[0]);
  }
}

template <class C>
__device__ __forceinline__ void consume(const CUtensorMap* y_map, const Sm90GemmArgs& a,
                                        const Sm90GemmSmem<C>& sm, int wg) {
  const GemmParams& p = a.p;
  const int thread = threadIdx.x & 127, lane = thread & 31, warp = thread >> 5;
  float acc[C::kBlocks][C::kTokens / 2];
  GemmItems items(a.schedule, p.m, C::kTokens);
  GemmItem item;
  bool more = first_item(p, items, item);
  const int tokens = items.tokens;
  typename C::Writer epilogue(p, a.tensor_stores ? y_map : nullptr,
                              sm.stage + wg * C::Stage::kBytes, sm.scales + wg * C::Scales::kBytes,
                              1 + wg, thread, tokens);
  RingPosition<C> at;
#pragma unroll 1
  for (; more; more = items.next(item)) {
    const int row0 = (item.row_tile * C::kRowBlocks + wg * C::kBlocks) * 64;
    const int token0 = item.token_tile * C::kTokens;
    if constexpr (!C::kClusterSplit) epilogue.stage_scales(row0, token0);
    multiply_item<C>(sm, wg, warp, lane, item.k1 - item.k0, at, acc);
    if constexpr (C::kClusterSplit) {
      cluster_finish<C>(a, item, sm, wg, thread, tokens, acc);
    } else {
      if constexpr (C::kStreamK) {
        if (item.k0 > 0) {
          hand_over<C>(a, wg, thread, acc);
          continue;
        }
        if (item.k1 < a.schedule.k_steps) collect<C>(a, sm, items, item, wg, thread, at, acc);
      }
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
  extern __shared__ __align__(1024) uint8_t smem[];
  const Sm90GemmSmem<C> sm(smem_address(smem));
  if ((sm.tokens & 1023) != 0) __trap();
  const int wg = threadIdx.x >> 7;
  if (threadIdx.x < C::kStages) {
    mbar_init(sm.full + 8 * threadIdx.x, 2);
    mbar_init(sm.empty + 8 * threadIdx.x, C::kConsumers);
    if (threadIdx.x == 0) mbar_init(sm.done, 1);
    mbar_init_fence();
  }
  if (threadIdx.x == 64) {
    tma_prefetch_map(&x_map);
    if (a.tensor_stores) tma_prefetch_map(&y_map);
  }
  __syncthreads();
  pdl_launch_dependents();
  // setmaxnreg needs whole warpgroups and one if/else; light instances put their two producer warps
  // last.
  if constexpr (C::kLight) {
    if (wg == C::kWarpgroups) {
      if (threadIdx.x == C::kConsumers) produce_weights<C>(a, sm);
      if (threadIdx.x == C::kConsumers + 32) produce_tokens<C>(&x_map, a, sm);
      if constexpr (C::kClusterSplit) {
        __syncwarp();
        cluster_arrive_relaxed();
        cluster_wait();
      }
    } else {
      consume<C>(&y_map, a, sm, wg);
    }
  } else {
    if (wg == 0) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(C::kProducerRegs));
      if (threadIdx.x == 0) produce_weights<C>(a, sm);
      if (threadIdx.x == 32) produce_tokens<C>(&x_map, a, sm);
      if constexpr (C::kClusterSplit) {
        __syncwarp();
        cluster_arrive_relaxed();
        cluster_wait();
      }
    } else {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(C::kConsumerRegs));
      consume<C>(&y_map, a, sm, wg - 1);
    }
  }
  if constexpr (C::kClusterSplit) {  // nobody leaves while what it pushes may still be read
    __syncwarp();
    cluster_arrive_relaxed();
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
  // Two steps a part at least.
  const int64_t most = static_cast<int64_t>(s.cut_tiles) * s.k_steps / 2;
  s.cut_units = static_cast<int>(most < 1 ? 1 : most < units ? most : units);
  grid = s.cut_tiles == 0     ? (tiles < units ? tiles : units)
         : s.whole_tiles == 0 ? s.cut_units
                              : units;
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
  // Tensor stores were seen to write beyond rows of Y that end within 16 bytes.
  if (!C::kClusterSplit && p.out != Out::kFp32 && !p.silu_mul && p.m_device == nullptr &&
      p.n % 8 == 0)
    args.tensor_stores =
        make_output_map(&y_map, p.y, p.n, p.m, p.ldy, C::Stage::kBox) == cudaSuccess;
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
  constexpr GemmSplits kSplits = C::kClusterSplit ? GemmSplits::kCluster
                                 : C::kStreamK    ? GemmSplits::kWholeOrStreamK
                                                  : GemmSplits::kWhole;
  return {{name, C::kRows, C::kTokens, C::kK, C::kCtasPerSm, kSplits}, launch_sm90_gemm<C>};
}

}  // namespace mx8::cuda
