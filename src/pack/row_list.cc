#include "pack/row_list.h"

#include <cstring>

namespace mx8 {

std::vector<PackRow> list_rows(std::span<const QuantView> parts, RowOrder order) {
  std::vector<PackRow> stacked;
  for (const QuantView& part : parts) {
    const auto* codes = static_cast<const std::byte*>(part.codes);
    const auto* scales = static_cast<const uint8_t*>(part.scales);
    const int64_t row_bytes = part.cols * dtype_size(part.scheme.code_type);
    for (int64_t r = 0; r < part.rows; ++r) {
      stacked.push_back({codes + r * row_bytes,
                         scales == nullptr ? nullptr : scales + r * (part.cols / kMxBlock)});
    }
  }
  if (order == RowOrder::kPlain) return stacked;
  const auto rows = static_cast<int64_t>(stacked.size());
  std::vector<PackRow> ordered(stacked.size());
  for (int64_t r = 0; r < rows; ++r) ordered[r] = stacked[source_row(order, r, rows)];
  return ordered;
}

Buffer pack_row_major(std::span<const PackRow> rows, int64_t k, const QuantScheme& scheme) {
  const auto n = static_cast<int64_t>(rows.size());
  const size_t row_bytes = static_cast<size_t>(k * dtype_size(scheme.code_type));
  Buffer out(RowMajor::bytes(n, k, scheme));
  std::byte* codes = out.data();
  std::byte* scales = codes + rows.size() * row_bytes;
  const auto row_scales = static_cast<size_t>(k / kMxBlock);
  for (const PackRow& row : rows) {
    std::memcpy(codes, row.codes, row_bytes);
    codes += row_bytes;
    if (scheme.is_plain()) continue;
    std::memcpy(scales, row.scales, row_scales);
    scales += row_scales;
  }
  return out;
}

}  // namespace mx8
