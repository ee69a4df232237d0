// More than a few tokens on SM90: wgmma with the weights in registers. See the .cuh for the design
// and what it measured.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "kernels/cuda/gemm_params.h"

namespace mx8::cuda {

// How the K of the tiles is shared out.
enum class GemmSplit : uint8_t {
  kWholeTiles,  // persistent CTAs take whole tiles
  kStreamK,     // the tiles beyond a whole number of waves are cut into equal K ranges
  kStreamKOne,  // as kStreamK, with one more wave cut
  kCluster,     // `cluster` CTAs share each tile and add through distributed shared memory
};

struct GemmConfig {
  int variant = 0;  // index into gemm_variant()
  GemmSplit split = GemmSplit::kWholeTiles;
  int cluster = 1;  // kCluster: 1..8, and a step of K for each
};

// What an instance can do with the K of its tiles.
enum class GemmSplits : uint8_t { kWhole, kWholeOrStreamK, kCluster };

// One compiled instance.
struct GemmVariant {
  const char* name;
  int tile_rows;  // 64, 128 or 256 rows of W
  int tile_tokens;
  int tile_k;
  int ctas_per_sm;
  GemmSplits splits;

  bool takes(GemmSplit split) const {
    if (split == GemmSplit::kCluster) return splits == GemmSplits::kCluster;
    if (split == GemmSplit::kWholeTiles) return splits != GemmSplits::kCluster;
    return splits == GemmSplits::kWholeOrStreamK;
  }
};

int gemm_variant_count(Act act);
const GemmVariant& gemm_variant(Act act, int index);

// Scratch that stream-K needs on a device of `sms` multiprocessors: partial sums and flags. The
// flags (the first gemm_flag_bytes()) must be zero before the first launch; every launch leaves
// them zero. One workspace serves any number of launches on one stream, not two streams at once.
size_t gemm_workspace_bytes(int sms);
size_t gemm_flag_bytes();

// Asynchronous. X needs 16-byte aligned rows. The tensor map of X is made here, on the CPU.
cudaError_t launch_sm90_mxfp8_gemm(Act act, const GemmParams& p, const GemmConfig& config, int sms,
                                   void* workspace, cudaStream_t stream, bool pdl);

}  // namespace mx8::cuda
