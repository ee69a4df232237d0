#include "pack/sm100_weight.h"

#include <gtest/gtest.h>

#include <utility>

namespace mx8 {
namespace {

// A matrix whose code bytes and scale bytes tell their places, none of them a padding byte.
struct Source {
  int64_t n, k;
  std::vector<uint8_t> codes, scales;

  Source(int64_t rows, int64_t cols)
      : n(rows), k(cols), codes(rows * cols), scales(rows * cols / kMxBlock) {
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 31 % 251 + 1);
    for (size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<uint8_t>(i * 37 % 253 + 1);
  }
  // Its rows as parts of the given heights.
  std::vector<QuantView> parts(const std::vector<int64_t>& heights) const {
    std::vector<QuantView> out;
    int64_t row = 0;
    for (const int64_t rows : heights) {
      out.push_back({codes.data() + row * k, scales.data() + row * (k / kMxBlock), rows, k,
                     QuantScheme::mxfp8()});
      row += rows;
    }
    EXPECT_EQ(row, n);
    return out;
  }
};

// Where the row of W stands: 8 gate rows, their 8 up rows, and so on.
int64_t place(int64_t row, int64_t n, RowOrder order) {
  if (order == RowOrder::kPlain) return row;
  const bool up = row >= n / 2;
  const int64_t feature = up ? row - n / 2 : row;
  return feature / 8 * 16 + feature % 8 + (up ? 8 : 0);
}

void expect_inverse(const Source& w, const std::vector<int64_t>& heights, RowOrder order) {
  SCOPED_TRACE(testing::Message() << w.n << " x " << w.k << " order " << static_cast<int>(order));
  const Sm100Weight packed = pack_sm100_weight(w.parts(heights), order);
  const int64_t rows = sm100_rows(w.n, order), blocks = w.k / kMxBlock;
  ASSERT_EQ(rows % kScaleAtomRows, 0);
  ASSERT_GE(rows, w.n);
  ASSERT_EQ(static_cast<int64_t>(packed.codes.size()), rows * w.k);
  ASSERT_EQ(static_cast<int64_t>(packed.scales.size()), sf128x4_bytes(rows, w.k));
  // Takes every byte of W out of its place; what is left over must be padding.
  Sm100Weight left = packed;
  std::vector<uint8_t> codes, scales;
  for (int64_t row = 0; row < w.n; ++row) {
    const int64_t at = place(row, w.n, order);
    ASSERT_LT(at, rows);
    for (int64_t c = 0; c < w.k; ++c) codes.push_back(std::exchange(left.codes[at * w.k + c], 0));
    for (int64_t b = 0; b < blocks; ++b)
      scales.push_back(std::exchange(left.scales[sf128x4_offset(at, b, w.k)], kScalePadding));
  }
  EXPECT_EQ(codes, w.codes);
  EXPECT_EQ(scales, w.scales);
  EXPECT_EQ(left.codes, std::vector<uint8_t>(packed.codes.size(), 0));
  EXPECT_EQ(left.scales, std::vector<uint8_t>(packed.scales.size(), kScalePadding));
}

TEST(Sm100Weight, PlainRowsAreFoundAgain) {
  for (const int64_t n : {1, 64, 127, 128, 129, 200, 256, 300})
    for (const int64_t k : {32, 96, 128, 160, 544}) expect_inverse({n, k}, {n}, RowOrder::kPlain);
  expect_inverse({300, 160}, {200, 60, 40}, RowOrder::kPlain);  // q, k, v
}

// Halves of whole groups of 8 and not; N around whole atoms. A short last group is padded.
TEST(Sm100Weight, GateAndUpRowsAreFoundAgain) {
  for (const int64_t n : {2, 16, 30, 126, 128, 130, 200, 254, 256, 258})
    for (const int64_t k : {32, 96, 128, 160}) {
      expect_inverse({n, k}, {n / 2, n / 2}, RowOrder::kGateUpInterleaved);
      expect_inverse({n, k}, {n}, RowOrder::kGateUpInterleaved);  // fused in the file
    }
  EXPECT_EQ(sm100_rows(256, RowOrder::kGateUpInterleaved), 256);
  EXPECT_EQ(sm100_rows(250, RowOrder::kGateUpInterleaved), 256);
  EXPECT_EQ(sm100_rows(258, RowOrder::kGateUpInterleaved), 384);
}

}  // namespace
}  // namespace mx8
