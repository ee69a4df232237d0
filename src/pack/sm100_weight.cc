#include "pack/sm100_weight.h"

#include <algorithm>

#include "base/check.h"
#include "pack/row_list.h"

namespace mx8 {

Sm100Weight pack_sm100_weight(std::span<const QuantView> parts, RowOrder order) {
  MX8_CHECK(!parts.empty());
  const std::vector<PackRow> stacked = list_rows(parts, RowOrder::kPlain);
  const auto n = static_cast<int64_t>(stacked.size());
  const int64_t k = parts[0].cols, blocks = k / kMxBlock, rows = sm100_rows(n, order);
  Sm100Weight out;
  out.codes.resize(static_cast<size_t>(rows * k));
  std::vector<uint8_t> scales(static_cast<size_t>(rows * blocks), kScalePadding);
  for (int64_t p = 0; p < fragment_packed_rows(n, order); ++p) {
    const int64_t row = fragment_source_row(p, n, order);
    if (row < 0) continue;
    const auto* codes = reinterpret_cast<const uint8_t*>(stacked[row].codes);
    std::copy(codes, codes + k, out.codes.begin() + p * k);
    std::copy(stacked[row].scales, stacked[row].scales + blocks, scales.begin() + p * blocks);
  }
  out.scales = pack_sf128x4(scales, rows, k);
  return out;
}

}  // namespace mx8
