#include "pack/cpu_panel.h"

#include <algorithm>
#include <cstring>

#include "mx/e4m3.h"

namespace mx8 {

namespace {

constexpr uint8_t kNeutralScale = 127;

// Zeros are no subnormals.
template <int64_t kCount>
bool has_subnormal(const uint8_t* codes) {
  uint8_t found = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    found |= static_cast<uint8_t>(static_cast<uint8_t>((codes[i] & 0x7F) - 1) < 7);
  }
  return found != 0;
}

// One block of up to R rows: its scales, its units and its flag.
template <class Shape>
void pack_block(std::span<const PackRow> rows, int64_t block, uint8_t* group, uint8_t& flags) {
  const int64_t within = block % Shape::kGroupBlocks;
  uint8_t* scales = group + within * Shape::kRows;
  uint8_t* units = group + Shape::kGroupScaleBytes + within * Shape::kBlockBytes;
  for (size_t lane = 0; lane < rows.size(); ++lane) {
    const std::byte* source = rows[lane].codes + block * kMxBlock;
    for (int u = 0; u < kMxBlock / 4; ++u) {
      std::memcpy(units + u * Shape::kUnitBytes + lane * 4, source + u * 4, 4);
    }
    scales[lane] = rows[lane].scales[block];
  }
  if (has_subnormal<Shape::kBlockBytes>(units)) flags |= static_cast<uint8_t>(1 << within);
}

}  // namespace

template <int64_t R>
int64_t CpuPanel<R>::code_offset(int64_t row, int64_t k, int64_t depth) {
  const int64_t block = k / kMxBlock;
  return row / R * panel_bytes(depth) + block / Shape::kGroupBlocks * Shape::kGroupBytes +
         Shape::kGroupScaleBytes + block % Shape::kGroupBlocks * Shape::kBlockBytes +
         k % kMxBlock / 4 * Shape::kUnitBytes + row % R * 4 + k % 4;
}

template <int64_t R>
int64_t CpuPanel<R>::scale_offset(int64_t row, int64_t block, int64_t depth) {
  return row / R * panel_bytes(depth) + block / Shape::kGroupBlocks * Shape::kGroupBytes +
         block % Shape::kGroupBlocks * R + row % R;
}

template <int64_t R>
Buffer CpuPanel<R>::pack(std::span<const PackRow> rows, int64_t k) {
  MX8_CHECK(k > 0 && k % kMxBlock == 0, k);
  const auto n = static_cast<int64_t>(rows.size());
  Buffer out(bytes(n, k));
  auto* data = out.as<uint8_t>();
  const int64_t stride = panel_bytes(k), all_groups = groups(k);
  uint8_t* flags = data + flags_offset(n, k);
  std::memset(flags, 0, static_cast<size_t>(panels(n) * all_groups));
  for (int64_t p = 0; p < panels(n); ++p) {
    uint8_t* panel = data + p * stride;
    const int64_t filled = std::min(R, n - p * R);
    if (filled < R) std::memset(panel, 0, static_cast<size_t>(stride));
    for (int64_t g = 0; g < all_groups; ++g) {
      std::memset(panel + g * Shape::kGroupBytes, kNeutralScale, Shape::kGroupScaleBytes);
    }
    const std::span<const PackRow> lanes =
        rows.subspan(static_cast<size_t>(p * R), static_cast<size_t>(filled));
    for (int64_t block = 0; block < k / kMxBlock; ++block) {
      const int64_t g = block / Shape::kGroupBlocks;
      pack_block<Shape>(lanes, block, panel + g * Shape::kGroupBytes, flags[p * all_groups + g]);
    }
  }
  return out;
}

template <int64_t R>
MxMatrix CpuPanel<R>::unpack(const Packed<CpuPanel>& packed) {
  MxMatrix out(packed.n, packed.k);
  const auto* data = reinterpret_cast<const uint8_t*>(packed.data);
  const int64_t blocks = packed.k / kMxBlock;
  for (int64_t row = 0; row < packed.n; ++row) {
    for (int64_t k = 0; k < packed.k; k += 4) {
      std::memcpy(&out.codes[static_cast<size_t>(row * packed.k + k)],
                  data + code_offset(row, k, packed.k), 4);
    }
    for (int64_t b = 0; b < blocks; ++b) {
      out.scales[static_cast<size_t>(row * blocks + b)] = data[scale_offset(row, b, packed.k)];
    }
  }
  return out;
}

template <int64_t R>
void CpuPanel<R>::decode_row(const Packed<CpuPanel>& packed, int64_t row, float* out) {
  const auto* data = reinterpret_cast<const uint8_t*>(packed.data);
  for (int64_t k = 0; k < packed.k; ++k) {
    const uint8_t scale = data[scale_offset(row, k / kMxBlock, packed.k)];
    out[k] = static_cast<float>(mx_value(data[code_offset(row, k, packed.k)], scale));
  }
}

template struct CpuPanel<8>;
template struct CpuPanel<16>;

}  // namespace mx8
