// Which (tile, K range) items a CTA works on: the same sequence for its producer and its consumers.
#pragma once

#include <cstdint>

namespace mx8::cuda {

struct GemmSchedule {
  int k_steps;  // steps of the tile's K
  int row_tiles;
  int token_tiles;
  int group;        // token tiles that run side by side before the next row tile
  int whole_tiles;  // tiles [0, whole_tiles) go round-robin
  int cut_tiles;    // the rest: one K-major range cut into equal parts,
  int cut_units;    // one for each of the first so many CTAs
  int cluster;  // > 0: CTAs of a cluster share the K of a tile, blockIdx.x / cluster is the tile
};

struct GemmItem {
  int tile, k0, k1;  // steps [k0, k1)
  int row_tile, token_tile;
};

struct GemmItems {
  const GemmSchedule& s;
  int tokens, tile_tokens;
  int next_whole;
  int at = 0, end = 0;
  bool once = false;

  __device__ __forceinline__ GemmItems(const GemmSchedule& schedule, int tokens_, int tile_tokens_)
      : s(schedule), tokens(tokens_), tile_tokens(tile_tokens_), next_whole(blockIdx.x) {
    if (s.cluster > 0) {
      once = true;
    } else if (static_cast<int>(blockIdx.x) < s.cut_units) {
      at = start(blockIdx.x);
      end = start(blockIdx.x + 1);
    }
  }
  // First step of unit u in the K-major range of the cut tiles.
  // (At most 2 tiles a CTA, 264 CTAs: 32 bits are enough for any K below 2^20.)
  __device__ __forceinline__ int start(int u) const {
    return static_cast<int>(static_cast<uint32_t>(u * s.cut_tiles * s.k_steps) /
                            static_cast<uint32_t>(s.cut_units));
  }
  // First step after the (cut) tile of `item` in that range.
  __device__ __forceinline__ int tile_end(const GemmItem& item) const {
    return (item.tile - s.whole_tiles + 1) * s.k_steps;
  }
  // Neighbouring tiles share rows (and so weights) while the group of token tiles stays in L2.
  __device__ __forceinline__ void place(GemmItem& item) const {
    const int per_group = s.row_tiles * s.group, g = item.tile / per_group;
    const int rest = item.tile - g * per_group, width = min(s.group, s.token_tiles - g * s.group);
    item.row_tile = rest / width;
    item.token_tile = g * s.group + rest - item.row_tile * width;
  }
  __device__ __forceinline__ bool advance(GemmItem& item) {
    if (s.cluster > 0) {
      if (!once) return false;
      once = false;
      const int rank = blockIdx.x % s.cluster;
      item.tile = blockIdx.x / s.cluster;
      item.k0 = s.k_steps * rank / s.cluster;
      item.k1 = s.k_steps * (rank + 1) / s.cluster;
      return true;
    }
    if (next_whole < s.whole_tiles) {
      item.tile = next_whole;
      item.k0 = 0;
      item.k1 = s.k_steps;
      next_whole += gridDim.x;
      return true;
    }
    if (at >= end) return false;
    const int t = at / s.k_steps;
    item.k0 = at - t * s.k_steps;
    item.k1 = min(item.k0 + end - at, s.k_steps);
    at += item.k1 - item.k0;
    item.tile = s.whole_tiles + t;
    return true;
  }
  // Tiles without tokens (fewer on the device than planned for) are skipped by everybody alike. Not
  // with one token tile, whose weights are requested before the number of tokens is known, nor in
  // the cluster form, whose CTAs must meet.
  __device__ __forceinline__ bool next(GemmItem& item) {
    while (advance(item)) {
      place(item);
      if (item.token_tile * tile_tokens < tokens || s.token_tiles == 1 || s.cluster > 0)
        return true;
    }
    return false;
  }
};

}  // namespace mx8::cuda
