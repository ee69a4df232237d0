// CpuPanel8 and CpuPanel16: MXFP8 weights for AVX2 and AVX-512 kernels, whose vectors hold 8 and 16
// rows. docs/layouts.md draws them. With R rows:
//
//   matrix: panels of R rows, one after the other; then the flags
//   panel:  groups of 64 / R blocks of 32 k, the last one short where K asks for it
//   group:  64 bytes of scales [block][row R], then for each block 8 units of 4 R bytes
//   unit:   [row R][k 4]: 4 consecutive k of each row, so a 32-bit lane belongs to one row
//   flags:  [panel][group] bytes: bit b says that block b of the group holds a subnormal code in
//   one
//           of its R rows
//
// A panel is one linear stream; a unit decodes without moving anything across lanes; the results of
// R rows lie in one vector. Rows beyond N hold codes 0 and scales 127, as do the scales beyond K.
#pragma once

#include <span>

#include "pack/cpu_panel_shape.h"
#include "pack/layout.h"
#include "pack/row_list.h"

namespace mx8 {

template <int64_t kPanelRows>
struct CpuPanel : PanelShape<kPanelRows> {
  using Shape = PanelShape<kPanelRows>;
  static constexpr LayoutId kId = kPanelRows == 8 ? LayoutId::kCpuPanel8 : LayoutId::kCpuPanel16;

  static int64_t panels(int64_t n) { return (n + kPanelRows - 1) / kPanelRows; }
  static int64_t groups(int64_t k) { return (k + Shape::kGroupDepth - 1) / Shape::kGroupDepth; }
  static int64_t panel_bytes(int64_t k) {
    return groups(k) * Shape::kGroupScaleBytes + k * kPanelRows;
  }
  static int64_t flags_offset(int64_t n, int64_t k) { return panels(n) * panel_bytes(k); }
  static size_t bytes(int64_t n, int64_t k) {
    return static_cast<size_t>(flags_offset(n, k) + panels(n) * groups(k));
  }
  // Where the code of (row, k) and the scale of (row, block of 32 k) lie.
  static int64_t code_offset(int64_t row, int64_t k, int64_t depth);
  static int64_t scale_offset(int64_t row, int64_t block, int64_t depth);

  static Buffer pack(std::span<const PackRow> rows, int64_t k);
  // The exact inverse: codes [n, k] and scales [n, k / 32] of the packed rows, in packed order.
  static MxMatrix unpack(const Packed<CpuPanel>& packed);
  // One packed row in FP32, [k].
  static void decode_row(const Packed<CpuPanel>& packed, int64_t row, float* out);
};

using CpuPanel8 = CpuPanel<8>;
using CpuPanel16 = CpuPanel<16>;

}  // namespace mx8
