#include "pack/sm100_mx.h"

#include <gtest/gtest.h>

#include <set>

namespace mx8 {
namespace {

TEST(Sm100Mx, EveryScaleHasItsOwnPlace) {
  for (int64_t rows : {1, 32, 127, 128, 129, 300})
    for (int64_t k : {32, 96, 128, 160, 1024}) {
      std::set<int64_t> seen;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t b = 0; b < k / 32; ++b) {
          const int64_t at = sf128x4_offset(r, b, k);
          ASSERT_GE(at, 0);
          ASSERT_LT(at, sf128x4_bytes(rows, k));
          seen.insert(at);
        }
      ASSERT_EQ(static_cast<int64_t>(seen.size()), rows * (k / 32));
    }
}

// The worked example of the cuBLAS documentation's figure: rows 0, 32, 64, 96 share 16 bytes.
TEST(Sm100Mx, AtomOrder) {
  EXPECT_EQ(sf128x4_offset(0, 0, 128), 0);
  EXPECT_EQ(sf128x4_offset(0, 3, 128), 3);
  EXPECT_EQ(sf128x4_offset(32, 0, 128), 4);
  EXPECT_EQ(sf128x4_offset(96, 2, 128), 14);
  EXPECT_EQ(sf128x4_offset(1, 0, 128), 16);
  EXPECT_EQ(sf128x4_offset(31, 0, 128), 496);
  EXPECT_EQ(sf128x4_offset(0, 4, 256), 512);     // next atom along K
  EXPECT_EQ(sf128x4_offset(128, 0, 256), 1024);  // then along rows
}

// K that is no multiple of 128 or 256, rows around whole atoms: the row stride is that of the padded
// scale columns, and what no scale falls on is padding, byte for byte.
TEST(Sm100Mx, RoundTripAndPadding) {
  for (int64_t rows : {1, 33, 65, 100, 128, 129, 256})
    for (int64_t k : {32, 64, 96, 128, 160, 224, 288, 352, 416, 480, 512, 544}) {
      std::vector<uint8_t> scales(static_cast<size_t>(rows * (k / 32)));
      for (size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<uint8_t>(i * 37 % 254 + 1);
      const std::vector<uint8_t> packed = pack_sf128x4(scales, rows, k);
      EXPECT_EQ(unpack_sf128x4(packed, rows, k), scales) << rows << "x" << k;
      std::vector<uint8_t> want(packed.size(), kScalePadding);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t b = 0; b < k / 32; ++b)
          want[static_cast<size_t>(sf128x4_offset(r, b, k))] =
              scales[static_cast<size_t>(r * (k / 32) + b)];
      EXPECT_EQ(packed, want) << rows << "x" << k;
    }
}

// Whatever the alignment to which a caller pads the tokens of an expert, scales come in whole atoms.
TEST(Sm100Mx, SizesDoNotDependOnTheAlignmentOfRows) {
  for (int64_t rows : {1, 7, 63, 64, 65, 127, 128, 129, 300})
    for (int64_t alignment : {1, 8, 64, 128}) {
      const int64_t aligned = (rows + alignment - 1) / alignment * alignment;
      EXPECT_EQ(sf128x4_bytes(aligned, 160), sf128x4_bytes(rows, 160)) << rows << " " << alignment;
      EXPECT_EQ(sf128x4_bytes(rows, 160) % (kScaleAtomBytes * 2), 0);
    }
}

// 70000 x 32768 has more than 2^31 elements, and 2^40 scales need more than 32 bits.
TEST(Sm100Mx, OffsetsAreWide) {
  EXPECT_EQ(sf128x4_bytes(70000, 32768), int64_t{547} * 256 * 512);
  const int64_t rows = int64_t{1} << 30, k = 32768;
  EXPECT_EQ(sf128x4_bytes(rows, k), rows * 1024);
  EXPECT_EQ(sf128x4_offset(rows - 1, 1023, k), rows * 1024 - 1);
}

}  // namespace
}  // namespace mx8
