#include "mx/row_fold.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "mx/e4m3.h"

namespace mx8 {
namespace {

MxMatrix gaussian(int64_t n, int64_t k, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> gauss(0, 0.02f);
  std::vector<float> x(static_cast<size_t>(n * k));
  for (float& v : x) v = gauss(rng);
  return mx_quantize(x.data(), n, k, k, ScaleRule::kRceil);
}

// The error measured on the folded matrix itself, in FP64.
double measured_error(const MxView& view, const RowFold& fold) {
  double error = 0, norm = 0;
  for (int64_t n = 0; n < view.rows; ++n) {
    for (int64_t k = 0; k < view.cols; ++k) {
      const double want = mx_value(view.code(n, k), view.scale(n, k));
      const double got = std::ldexp(e4m3_decode(fold.codes[static_cast<size_t>(n * view.cols + k)]),
                                    fold.exponents[static_cast<size_t>(n)]);
      error += (want - got) * (want - got);
      norm += want * want;
    }
  }
  return norm > 0 ? std::sqrt(error / norm) : 0;
}

TEST(RowFold, GaussianWeightsFoldAtFarBelowTheGate) {
  const MxMatrix m = gaussian(64, 4096, 5);
  const RowFold fold = mx_fold_rows(m.view());
  EXPECT_LT(fold.error, 1e-6);
  EXPECT_NEAR(fold.error, measured_error(m.view(), fold), 1e-12);
  EXPECT_EQ(fold.error, mx_row_fold_error(m.view()));
}

TEST(RowFold, ReportsWhatARowOfWideRangeLoses) {
  MxMatrix m(1, 64);
  for (int i = 0; i < 64; ++i) m.codes[i] = 0x7E;
  m.scales = {127, 127 - 12};  // 448 * 2^-12 = 0.109 keeps its bits as a normal code
  EXPECT_EQ(mx_fold_rows(m.view()).error, 0);
  m.scales = {127, 127 - 17};  // 448 * 2^-17 = 1.75 * 2^-9 rounds to 2^-8
  const RowFold fold = mx_fold_rows(m.view());
  EXPECT_GT(fold.error, 0);
  EXPECT_NEAR(fold.error, measured_error(m.view(), fold), 1e-15);
  m.scales = {127, 60};
  EXPECT_NEAR(mx_fold_rows(m.view()).error, std::ldexp(1.0, -67), std::ldexp(1.0, -75));
}

TEST(RowFold, ZeroBlocksAndRowsDoNotSetTheScale) {
  MxMatrix m(2, 64);
  m.codes[0] = 0x38;            // 1.0 in block 0 of row 0
  m.scales = {120, 250, 3, 9};  // block 1 is all zero with a huge scale; row 1 is all zero
  const RowFold fold = mx_fold_rows(m.view());
  EXPECT_EQ(fold.exponents[0], -7);
  EXPECT_EQ(fold.exponents[1], 0);
  EXPECT_EQ(fold.codes[0], 0x38);
  EXPECT_EQ(fold.error, 0);
}

}  // namespace
}  // namespace mx8
