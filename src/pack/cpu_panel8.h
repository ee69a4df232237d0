// CpuPanel8: MXFP8 weights for AVX2 kernels, whose vectors hold 8 rows. docs/layouts.md draws it.
//
//   matrix: panels of 8 rows, one after the other; then the flags
//   panel:  groups of 256 k (8 blocks of 32), the last one short when K is not a multiple of 256
//   group:  64 bytes of scales [block 8][row 8], then for each block 8 units of 32 bytes
//   unit:   [row 8][k 4]: 4 consecutive k of each row, so a 32-bit lane belongs to one row
//   flags:  [panel][group] bytes: bit b says that block b of the group holds a subnormal code in
//   one
//           of its 8 rows
//
// A panel is one linear stream; a unit decodes without moving anything across lanes; the results of
// 8 rows lie in one vector. Rows beyond N hold codes 0 and scales 127, as do the scales beyond K.
#pragma once

#include <span>

#include "pack/cpu_panel8_shape.h"
#include "pack/layout.h"
#include "pack/row_list.h"

namespace mx8 {

struct CpuPanel8 {
  static constexpr LayoutId kId = LayoutId::kCpuPanel8;
  static constexpr int64_t kRows = panel8::kRows;
  static constexpr int64_t kGroupBlocks = panel8::kGroupBlocks;
  static constexpr int64_t kGroupScaleBytes = panel8::kGroupScaleBytes;
  static constexpr int64_t kUnitBytes = panel8::kUnitBytes;
  static constexpr int64_t kBlockBytes = panel8::kBlockBytes;

  static int64_t panels(int64_t n) { return (n + kRows - 1) / kRows; }
  static int64_t groups(int64_t k) { return (k / kMxBlock + kGroupBlocks - 1) / kGroupBlocks; }
  static int64_t panel_bytes(int64_t k) {
    return groups(k) * kGroupScaleBytes + k / kMxBlock * kBlockBytes;
  }
  static int64_t flags_offset(int64_t n, int64_t k) { return panels(n) * panel_bytes(k); }
  static size_t bytes(int64_t n, int64_t k) {
    return static_cast<size_t>(flags_offset(n, k) + panels(n) * groups(k));
  }
  // Where the code of (row, k) and the scale of (row, k / 32) lie.
  static int64_t code_offset(int64_t row, int64_t k, int64_t depth);
  static int64_t scale_offset(int64_t row, int64_t block, int64_t depth);
};

Buffer pack_cpu_panel8(std::span<const PackRow> rows, int64_t k);

// The exact inverse: codes [n, k] and scales [n, k / 32] of the packed rows, in packed order.
MxMatrix unpack_cpu_panel8(const Packed<CpuPanel8>& packed);

// One packed row in FP32, [k].
void decode_row_cpu_panel8(const Packed<CpuPanel8>& packed, int64_t row, float* out);

}  // namespace mx8
