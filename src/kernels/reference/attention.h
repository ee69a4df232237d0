// The scalar twins of the attention kernels.
#pragma once

#include "kernels/attention_tile.h"

namespace mx8::reference {

void attention_tile(const AttentionTile& tile);
void attention_merge(const AttentionMerge& merge);
void write_kv(const KvWrite& write);

}  // namespace mx8::reference
