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

TEST(Sm100Mx, RoundTrip) {
  for (int64_t rows : {1, 100, 129, 256})
    for (int64_t k : {32, 160, 512}) {
      std::vector<uint8_t> scales(static_cast<size_t>(rows * (k / 32)));
      for (size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<uint8_t>(i * 37 + 1);
      EXPECT_EQ(unpack_sf128x4(pack_sf128x4(scales, rows, k), rows, k), scales);
    }
}

}  // namespace
}  // namespace mx8
