#include "pack/layout.h"

namespace mx8 {

std::string_view layout_name(LayoutId id) {
  switch (id) {
    case LayoutId::kRowMajor: return "row-major";
    case LayoutId::kCpuPanel8: return "cpu-panel8";
    case LayoutId::kCpuPanel16: return "cpu-panel16";
    case LayoutId::kMmaFragment: return "mma-fragment";
    case LayoutId::kSm100Mx: return "sm100-mx";
  }
  return "?";
}

int64_t source_row(RowOrder order, int64_t packed_row, int64_t rows) {
  if (order == RowOrder::kPlain) return packed_row;
  const int64_t half = rows / 2;
  const int64_t group = packed_row / 16;
  const int64_t width = std::min<int64_t>(8, half - group * 8);  // rows of each kind in the group
  const int64_t within = packed_row - group * 16;
  return within < width ? group * 8 + within : half + group * 8 + within - width;
}

size_t RowMajor::bytes(int64_t n, int64_t k, const QuantScheme& scheme) {
  const size_t codes = static_cast<size_t>(n * k) * static_cast<size_t>(dtype_size(scheme.code_type));
  return scheme.is_plain() ? codes : codes + static_cast<size_t>(n * (k / kMxBlock));
}

}  // namespace mx8
