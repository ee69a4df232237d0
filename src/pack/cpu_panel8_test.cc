#include "pack/cpu_panel8.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "mx/e4m3.h"

namespace mx8 {
namespace {

MxMatrix random_matrix(int64_t n, int64_t k, uint32_t seed) {
  std::mt19937 rng(seed);
  MxMatrix w(n, k);
  for (uint8_t& c : w.codes) c = static_cast<uint8_t>(rng());
  for (uint8_t& s : w.scales) s = static_cast<uint8_t>(rng());
  return w;
}

Buffer pack(const MxMatrix& w) {
  const QuantView view{w.codes.data(), w.scales.data(), w.rows, w.cols, QuantScheme::mxfp8()};
  return pack_cpu_panel8(list_rows({&view, 1}, RowOrder::kPlain), w.cols);
}

TEST(CpuPanel8, UnpackingIsTheExactInverse) {
  for (const int64_t n : {1, 7, 8, 9, 63, 64, 65}) {
    for (const int64_t k : {32, 64, 96, 224, 256, 288, 512, 576, 4096}) {
      const MxMatrix w = random_matrix(n, k, static_cast<uint32_t>(n * k));
      const Buffer packed = pack(w);
      ASSERT_EQ(packed.size(), CpuPanel8::bytes(n, k));
      const MxMatrix back = unpack_cpu_panel8({packed.data(), n, k});
      EXPECT_EQ(back.codes, w.codes) << n << "x" << k;
      EXPECT_EQ(back.scales, w.scales) << n << "x" << k;
    }
  }
}

TEST(CpuPanel8, TheMapIsABijectionOntoTheBytesThatAreNotPadding) {
  for (const int64_t n : {1, 8, 13}) {
    for (const int64_t k : {32, 256, 320, 576}) {
      std::set<int64_t> used;
      for (int64_t row = 0; row < n; ++row) {
        for (int64_t i = 0; i < k; ++i) used.insert(CpuPanel8::code_offset(row, i, k));
        for (int64_t b = 0; b < k / 32; ++b) used.insert(CpuPanel8::scale_offset(row, b, k));
      }
      EXPECT_EQ(static_cast<int64_t>(used.size()), n * k + n * (k / 32));
      EXPECT_GE(*used.begin(), 0);
      EXPECT_LT(*used.rbegin(), CpuPanel8::flags_offset(n, k));
    }
  }
}

TEST(CpuPanel8, LiesAsTheHeaderSays) {
  // K = 320: a whole group of 8 blocks, then a short one of 2.
  const int64_t panel = 64 + 8 * 256 + 64 + 2 * 256;
  EXPECT_EQ(CpuPanel8::panel_bytes(320), panel);
  EXPECT_EQ(CpuPanel8::code_offset(0, 0, 320), 64);
  EXPECT_EQ(CpuPanel8::code_offset(0, 3, 320), 67);
  EXPECT_EQ(CpuPanel8::code_offset(1, 0, 320), 68);
  EXPECT_EQ(CpuPanel8::code_offset(0, 4, 320), 64 + 32);
  EXPECT_EQ(CpuPanel8::code_offset(0, 32, 320), 64 + 256);
  EXPECT_EQ(CpuPanel8::code_offset(0, 256, 320), 64 + 2048 + 64);
  EXPECT_EQ(CpuPanel8::code_offset(9, 257, 320), panel + 64 + 2048 + 64 + 4 + 1);
  EXPECT_EQ(CpuPanel8::scale_offset(2, 1, 320), 8 + 2);
  EXPECT_EQ(CpuPanel8::scale_offset(8, 9, 320), panel + 64 + 2048 + 8);
  EXPECT_EQ(CpuPanel8::bytes(9, 320), static_cast<size_t>(2 * panel + 2 * 2));
}

TEST(CpuPanel8, PaddingIsNeutral) {
  const MxMatrix w = random_matrix(3, 288, 1);
  const Buffer packed = pack(w);
  const auto* data = packed.as<uint8_t>();
  for (int64_t row = 3; row < 8; ++row) {
    for (int64_t k = 0; k < 288; ++k) ASSERT_EQ(data[CpuPanel8::code_offset(row, k, 288)], 0);
    for (int64_t b = 0; b < 9; ++b) ASSERT_EQ(data[CpuPanel8::scale_offset(row, b, 288)], 127);
  }
  // The scales of the short group that stand for no block.
  for (int64_t i = 8; i < 64; ++i) EXPECT_EQ(data[64 + 2048 + i], 127);
}

TEST(CpuPanel8, FlagsMarkTheBlocksWithSubnormalCodes) {
  const int64_t n = 17, k = 544;
  MxMatrix w(n, k);
  for (uint8_t& c : w.codes) c = 0x38;
  w.codes[0] = 0x00;  // zero is no subnormal
  w.codes[1] = 0x80;
  w.codes[3 * k + 33] = 0x01;    // panel 0, block 1
  w.codes[7 * k + 543] = 0x87;   // panel 0, block 16
  w.codes[16 * k + 300] = 0x07;  // panel 2, block 9
  w.codes[12 * k + 300] = 0x08;  // the smallest normal number
  const Buffer packed = pack(w);
  const uint8_t* flags = packed.as<uint8_t>() + CpuPanel8::flags_offset(n, k);
  const std::vector<uint8_t> want{0x02, 0, 0x01, 0, 0, 0, 0, 0x02, 0};
  EXPECT_EQ(std::vector<uint8_t>(flags, flags + 9), want);
}

TEST(CpuPanel8, TakesGateAndUpInterleaved) {
  for (const int64_t half : {8, 12, 20}) {
    const MxMatrix gate = random_matrix(half, 64, 1), up = random_matrix(half, 64, 2);
    const std::vector<QuantView> parts{
        {gate.codes.data(), gate.scales.data(), half, 64, QuantScheme::mxfp8()},
        {up.codes.data(), up.scales.data(), half, 64, QuantScheme::mxfp8()}};
    const Buffer packed = pack_cpu_panel8(list_rows(parts, RowOrder::kGateUpInterleaved), 64);
    const MxMatrix back = unpack_cpu_panel8({packed.data(), 2 * half, 64});
    for (int64_t r = 0; r < 2 * half; ++r) {
      const int64_t source = source_row(RowOrder::kGateUpInterleaved, r, 2 * half);
      const MxMatrix& from = source < half ? gate : up;
      for (int64_t k = 0; k < 64; ++k) {
        ASSERT_EQ(back.codes[r * 64 + k], from.codes[source % half * 64 + k]);
      }
    }
  }
}

}  // namespace
}  // namespace mx8
