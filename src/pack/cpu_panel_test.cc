#include "pack/cpu_panel.h"

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

template <class Layout>
Buffer pack(const MxMatrix& w) {
  const QuantView view{w.codes.data(), w.scales.data(), w.rows, w.cols, QuantScheme::mxfp8()};
  return Layout::pack(list_rows({&view, 1}, RowOrder::kPlain), w.cols);
}

template <class Layout>
class CpuPanels : public testing::Test {};

using Layouts = testing::Types<CpuPanel8, CpuPanel16>;
TYPED_TEST_SUITE(CpuPanels, Layouts);

TYPED_TEST(CpuPanels, UnpackingIsTheExactInverse) {
  for (const int64_t n : {1, 7, 8, 9, 15, 16, 17, 63, 64, 65}) {
    for (const int64_t k : {32, 64, 96, 128, 160, 224, 256, 288, 512, 576, 4096}) {
      const MxMatrix w = random_matrix(n, k, static_cast<uint32_t>(n * k));
      const Buffer packed = pack<TypeParam>(w);
      ASSERT_EQ(packed.size(), TypeParam::bytes(n, k));
      const MxMatrix back = TypeParam::unpack({packed.data(), n, k});
      EXPECT_EQ(back.codes, w.codes) << n << "x" << k;
      EXPECT_EQ(back.scales, w.scales) << n << "x" << k;
    }
  }
}

TYPED_TEST(CpuPanels, TheMapIsABijectionOntoTheBytesThatAreNotPadding) {
  for (const int64_t n : {1, 8, 13, 20}) {
    for (const int64_t k : {32, 256, 320, 576}) {
      std::set<int64_t> used;
      for (int64_t row = 0; row < n; ++row) {
        for (int64_t i = 0; i < k; ++i) used.insert(TypeParam::code_offset(row, i, k));
        for (int64_t b = 0; b < k / 32; ++b) used.insert(TypeParam::scale_offset(row, b, k));
      }
      EXPECT_EQ(static_cast<int64_t>(used.size()), n * k + n * (k / 32));
      EXPECT_GE(*used.begin(), 0);
      EXPECT_LT(*used.rbegin(), TypeParam::flags_offset(n, k));
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

TEST(CpuPanel16, LiesAsTheHeaderSays) {
  // K = 160: a whole group of 4 blocks, then a short one of 1.
  const int64_t panel = 64 + 4 * 512 + 64 + 512;
  EXPECT_EQ(CpuPanel16::panel_bytes(160), panel);
  EXPECT_EQ(CpuPanel16::code_offset(0, 0, 160), 64);
  EXPECT_EQ(CpuPanel16::code_offset(1, 1, 160), 69);
  EXPECT_EQ(CpuPanel16::code_offset(0, 4, 160), 64 + 64);
  EXPECT_EQ(CpuPanel16::code_offset(0, 32, 160), 64 + 512);
  EXPECT_EQ(CpuPanel16::code_offset(17, 129, 160), panel + 64 + 2048 + 64 + 4 + 1);
  EXPECT_EQ(CpuPanel16::scale_offset(2, 1, 160), 16 + 2);
  EXPECT_EQ(CpuPanel16::scale_offset(16, 4, 160), panel + 64 + 2048);
  EXPECT_EQ(CpuPanel16::bytes(17, 160), static_cast<size_t>(2 * panel + 2 * 2));
}

TYPED_TEST(CpuPanels, PaddingIsNeutral) {
  const int64_t k = 288;
  const MxMatrix w = random_matrix(3, k, 1);
  const Buffer packed = pack<TypeParam>(w);
  const auto* data = packed.template as<uint8_t>();
  for (int64_t row = 3; row < TypeParam::kRows; ++row) {
    for (int64_t i = 0; i < k; ++i) ASSERT_EQ(data[TypeParam::code_offset(row, i, k)], 0);
    for (int64_t b = 0; b < 9; ++b) ASSERT_EQ(data[TypeParam::scale_offset(row, b, k)], 127);
  }
  // The scales of the short group that stand for no block.
  const int64_t last = TypeParam::scale_offset(0, 8, k);
  for (int64_t i = TypeParam::kRows; i < 64; ++i) EXPECT_EQ(data[last + i], 127);
}

TYPED_TEST(CpuPanels, OffsetsAreWide) {
  const int64_t n = 70000, k = 32768;  // more than 2^31 codes
  const int64_t last = TypeParam::code_offset(n - 1, k - 1, k);
  EXPECT_GT(last, int64_t{1} << 31);
  EXPECT_LT(last, TypeParam::flags_offset(n, k));
  EXPECT_EQ(static_cast<int64_t>(TypeParam::bytes(n, k)),
            n * k * 33 / 32 + n / TypeParam::kRows * TypeParam::groups(k));
}

TYPED_TEST(CpuPanels, FlagsMarkTheBlocksWithSubnormalCodes) {
  constexpr int64_t R = TypeParam::kRows;
  const int64_t n = 2 * R + 1, k = 544, blocks = k / 32;
  MxMatrix w(n, k);
  std::set<std::pair<int64_t, int64_t>> want;  // panel, block
  for (uint8_t& c : w.codes) c = 0x38;
  const auto put = [&](int64_t row, int64_t at, uint8_t code, bool subnormal) {
    w.codes[static_cast<size_t>(row * k + at)] = code;
    if (subnormal) want.insert({row / R, at / 32});
  };
  put(0, 0, 0x00, false);
  put(0, 1, 0x80, false);
  put(3, 33, 0x01, true);
  put(R - 1, 543, 0x87, true);
  put(2 * R, 300, 0x07, true);
  put(R + 4, 300, 0x08, false);  // the smallest normal number
  put(R, 0, 0x88, false);
  const Buffer packed = pack<TypeParam>(w);
  const uint8_t* flags = packed.template as<uint8_t>() + TypeParam::flags_offset(n, k);
  for (int64_t p = 0; p < 3; ++p) {
    for (int64_t b = 0; b < blocks; ++b) {
      const uint8_t byte = flags[p * TypeParam::groups(k) + b / TypeParam::kGroupBlocks];
      EXPECT_EQ(byte >> (b % TypeParam::kGroupBlocks) & 1, want.count({p, b})) << p << " " << b;
    }
  }
}

TYPED_TEST(CpuPanels, TakesGateAndUpInterleaved) {
  for (const int64_t half : {8, 12, 20}) {
    const MxMatrix gate = random_matrix(half, 64, 1), up = random_matrix(half, 64, 2);
    const std::vector<QuantView> parts{
        {gate.codes.data(), gate.scales.data(), half, 64, QuantScheme::mxfp8()},
        {up.codes.data(), up.scales.data(), half, 64, QuantScheme::mxfp8()}};
    const Buffer packed = TypeParam::pack(list_rows(parts, RowOrder::kGateUpInterleaved), 64);
    const MxMatrix back = TypeParam::unpack({packed.data(), 2 * half, 64});
    for (int64_t r = 0; r < 2 * half; ++r) {
      const int64_t source = source_row(RowOrder::kGateUpInterleaved, r, 2 * half);
      const MxMatrix& from = source < half ? gate : up;
      for (int64_t k = 0; k < 64; ++k) {
        ASSERT_EQ(back.codes[static_cast<size_t>(r * 64 + k)],
                  from.codes[static_cast<size_t>(source % half * 64 + k)]);
      }
    }
  }
}

}  // namespace
}  // namespace mx8
