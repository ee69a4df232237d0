// A weight in the layout Sm100Mx (pack/sm100_mx.h). Rows stand in the order of the MmaFragment
// layouts (fragment_source_row) and are padded to whole scale atoms, with codes 0 and scales
// kScalePadding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pack/mma_fragment_map.h"
#include "pack/sm100_mx.h"
#include "tensor/quant.h"

namespace mx8 {

struct Sm100Weight {
  std::vector<uint8_t> codes;   // [sm100_rows, k] row-major
  std::vector<uint8_t> scales;  // in the 128x4 order
};

constexpr int64_t sm100_rows(int64_t n, RowOrder order) {
  return scale_atoms_rows(fragment_packed_rows(n, order)) * kScaleAtomRows;
}

// The parts lie above each other, MXFP8 with the same cols.
Sm100Weight pack_sm100_weight(std::span<const QuantView> parts, RowOrder order);

}  // namespace mx8
