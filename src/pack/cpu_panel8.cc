#include "pack/cpu_panel8.h"

#include <algorithm>
#include <cstring>

#include "mx/e4m3.h"

namespace mx8 {

namespace {

constexpr uint8_t kNeutralScale = 127;

// The start of the group of block `block` within its panel.
int64_t group_offset(int64_t block) {
  const int64_t group = block / CpuPanel8::kGroupBlocks;
  return group * (CpuPanel8::kGroupScaleBytes + CpuPanel8::kGroupBlocks * CpuPanel8::kBlockBytes);
}

bool has_subnormal(const uint8_t* codes) {
  int count = 0;
  for (int i = 0; i < kMxBlock; ++i) count += static_cast<uint8_t>((codes[i] & 0x7F) - 1) < 7;
  return count > 0;
}

void pack_row(const PackRow& row, int lane, int64_t k, uint8_t* panel, uint8_t* flags) {
  const auto* codes = reinterpret_cast<const uint8_t*>(row.codes);
  for (int64_t block = 0; block < k / kMxBlock; ++block) {
    const int64_t within = block % CpuPanel8::kGroupBlocks;
    uint8_t* group = panel + group_offset(block);
    group[within * CpuPanel8::kRows + lane] = row.scales[block];
    uint8_t* units = group + CpuPanel8::kGroupScaleBytes + within * CpuPanel8::kBlockBytes;
    const uint8_t* source = codes + block * kMxBlock;
    for (int u = 0; u < kMxBlock / 4; ++u) {
      std::memcpy(units + u * CpuPanel8::kUnitBytes + lane * 4, source + u * 4, 4);
    }
    if (has_subnormal(source)) {
      flags[block / CpuPanel8::kGroupBlocks] |= static_cast<uint8_t>(1 << within);
    }
  }
}

}  // namespace

int64_t CpuPanel8::code_offset(int64_t row, int64_t k, int64_t depth) {
  const int64_t block = k / kMxBlock;
  return row / kRows * panel_bytes(depth) + group_offset(block) + kGroupScaleBytes +
         block % kGroupBlocks * kBlockBytes + k % kMxBlock / 4 * kUnitBytes + row % kRows * 4 +
         k % 4;
}

int64_t CpuPanel8::scale_offset(int64_t row, int64_t block, int64_t depth) {
  return row / kRows * panel_bytes(depth) + group_offset(block) + block % kGroupBlocks * kRows +
         row % kRows;
}

Buffer pack_cpu_panel8(std::span<const PackRow> rows, int64_t k) {
  MX8_CHECK(k > 0 && k % kMxBlock == 0, k);
  const auto n = static_cast<int64_t>(rows.size());
  Buffer out(CpuPanel8::bytes(n, k));
  auto* data = out.as<uint8_t>();
  const int64_t stride = CpuPanel8::panel_bytes(k), groups = CpuPanel8::groups(k);
  uint8_t* flags = data + CpuPanel8::flags_offset(n, k);
  std::memset(flags, 0, static_cast<size_t>(CpuPanel8::panels(n) * groups));
  for (int64_t p = 0; p < CpuPanel8::panels(n); ++p) {
    uint8_t* panel = data + p * stride;
    const int64_t filled = std::min(CpuPanel8::kRows, n - p * CpuPanel8::kRows);
    if (filled < CpuPanel8::kRows) std::memset(panel, 0, static_cast<size_t>(stride));
    for (int64_t g = 0; g < groups; ++g) {
      std::memset(panel + group_offset(g * CpuPanel8::kGroupBlocks), kNeutralScale,
                  CpuPanel8::kGroupScaleBytes);
    }
    for (int64_t lane = 0; lane < filled; ++lane) {
      pack_row(rows[static_cast<size_t>(p * CpuPanel8::kRows + lane)], static_cast<int>(lane), k,
               panel, flags + p * groups);
    }
  }
  return out;
}

MxMatrix unpack_cpu_panel8(const Packed<CpuPanel8>& packed) {
  MxMatrix out(packed.n, packed.k);
  const auto* data = reinterpret_cast<const uint8_t*>(packed.data);
  const int64_t blocks = packed.k / kMxBlock;
  for (int64_t row = 0; row < packed.n; ++row) {
    for (int64_t k = 0; k < packed.k; k += 4) {
      std::memcpy(&out.codes[static_cast<size_t>(row * packed.k + k)],
                  data + CpuPanel8::code_offset(row, k, packed.k), 4);
    }
    for (int64_t b = 0; b < blocks; ++b) {
      out.scales[static_cast<size_t>(row * blocks + b)] =
          data[CpuPanel8::scale_offset(row, b, packed.k)];
    }
  }
  return out;
}

void decode_row_cpu_panel8(const Packed<CpuPanel8>& packed, int64_t row, float* out) {
  const auto* data = reinterpret_cast<const uint8_t*>(packed.data);
  for (int64_t k = 0; k < packed.k; ++k) {
    const uint8_t scale = data[CpuPanel8::scale_offset(row, k / kMxBlock, packed.k)];
    const uint8_t code = data[CpuPanel8::code_offset(row, k, packed.k)];
    out[k] = static_cast<float>(mx_value(code, scale));
  }
}

}  // namespace mx8
