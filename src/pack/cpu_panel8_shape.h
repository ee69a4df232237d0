// The numbers of the CpuPanel8 layout, alone so that files compiled for an instruction set can
// include them. pack/cpu_panel8.h explains the layout.
#pragma once

#include <cstdint>

namespace mx8::panel8 {

inline constexpr int64_t kRows = 8;
inline constexpr int64_t kBlock = 32;       // k of one scale
inline constexpr int64_t kGroupBlocks = 8;  // blocks of a whole group
inline constexpr int64_t kGroupScaleBytes = 64;
inline constexpr int64_t kUnitBytes = 32;  // 8 rows x 4 k
inline constexpr int64_t kBlockBytes = kRows * kBlock;

}  // namespace mx8::panel8
