// Paged attention for AVX2, bit-equal to kernels/reference/attention.h.
#pragma once

#include "kernels/attention_tile.h"

namespace mx8::cpu::avx2 {

// head_dim is a multiple of kAttentionHeadDim.
inline constexpr int kAttentionHeadDim = 16;

void attention_tile(const AttentionTile& tile);
void attention_merge(const AttentionMerge& merge);
void write_kv(const KvWrite& write);

}  // namespace mx8::cpu::avx2
