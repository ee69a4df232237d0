// The numbers of the CpuPanel layouts, alone so that files compiled for an instruction set can
// include them. pack/cpu_panel.h explains the layouts.
#pragma once

#include <cstdint>

namespace mx8 {

template <int64_t kPanelRows>
struct PanelShape {
  static constexpr int64_t kRows = kPanelRows;
  static constexpr int64_t kBlock = 32;  // k of one scale
  static constexpr int64_t kGroupScaleBytes = 64;
  static constexpr int64_t kGroupBlocks = kGroupScaleBytes / kRows;  // of a whole group
  static constexpr int64_t kGroupDepth = kGroupBlocks * kBlock;
  static constexpr int64_t kUnitBytes = kRows * 4;  // 4 k
  static constexpr int64_t kBlockBytes = kRows * kBlock;
  static constexpr int64_t kGroupBytes = kGroupScaleBytes + kGroupBlocks * kBlockBytes;
};

}  // namespace mx8
