#include "pack/sm100_mx.h"

#include "base/check.h"

namespace mx8 {

std::vector<uint8_t> pack_sf128x4(std::span<const uint8_t> scales, int64_t rows, int64_t k) {
  const int64_t blocks = k / kMxBlock;
  MX8_CHECK(static_cast<int64_t>(scales.size()) == rows * blocks, scales.size(), rows, k);
  std::vector<uint8_t> packed(static_cast<size_t>(sf128x4_bytes(rows, k)), kScalePadding);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t b = 0; b < blocks; ++b)
      packed[static_cast<size_t>(sf128x4_offset(r, b, k))] =
          scales[static_cast<size_t>(r * blocks + b)];
  return packed;
}

std::vector<uint8_t> unpack_sf128x4(std::span<const uint8_t> packed, int64_t rows, int64_t k) {
  const int64_t blocks = k / kMxBlock;
  MX8_CHECK(static_cast<int64_t>(packed.size()) == sf128x4_bytes(rows, k), packed.size(), rows, k);
  std::vector<uint8_t> scales(static_cast<size_t>(rows * blocks));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t b = 0; b < blocks; ++b)
      scales[static_cast<size_t>(r * blocks + b)] =
          packed[static_cast<size_t>(sf128x4_offset(r, b, k))];
  return scales;
}

}  // namespace mx8
