// The rows of a weight in the order in which they are packed, gathered from the stacked parts of a
// fused layer (q, k, v; gate, up) without copying them.
#pragma once

#include <span>
#include <vector>

#include "pack/layout.h"

namespace mx8 {

struct PackRow {
  const std::byte* codes = nullptr;
  const uint8_t* scales = nullptr;  // null for plain weights
};

// The parts have the same cols and scheme.
std::vector<PackRow> list_rows(std::span<const QuantView> parts, RowOrder order);

// The layout of files: copies the rows one after the other, then their scales.
Buffer pack_row_major(std::span<const PackRow> rows, int64_t k, const QuantScheme& scheme);

}  // namespace mx8
