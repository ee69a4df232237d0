#include "pack/quantize_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "mx/bf16.h"
#include "mx/e8m0.h"

namespace mx8 {
namespace {

TEST(QuantizeMatrix, IsTheBlockQuantiserWhateverTheThreads) {
  std::mt19937 rng(3);
  std::normal_distribution<float> normal(0, 0.1f);
  for (const auto& [rows, cols] :
       {std::pair<int64_t, int64_t>{1, 32}, {7, 96}, {300, 288}, {40, 4096}})
    for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32})
      for (const ScaleRule rule :
           {ScaleRule::kRceil, ScaleRule::kFloor, ScaleRule::kCompressedTensors}) {
        std::vector<float> values(static_cast<size_t>(rows * cols));
        std::vector<uint16_t> halves(values.size());
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = normal(rng);
          if (dtype == DType::kF32) continue;
          halves[i] = dtype == DType::kBF16 ? f32_to_bf16(values[i]) : f32_to_f16(values[i]);
          values[i] = dtype == DType::kBF16 ? bf16_to_f32(halves[i]) : f16_to_f32(halves[i]);
        }
        const void* data =
            dtype == DType::kF32 ? static_cast<const void*>(values.data()) : halves.data();
        const QuantView plain{data, nullptr, rows, cols, QuantScheme::plain(dtype)};
        const MxMatrix want = mx_quantize(values.data(), rows, cols, cols, rule);
        const std::vector<float> back = mx_dequantize(want.view());
        double error = 0, norm = 0;
        for (size_t i = 0; i < values.size(); ++i) {
          error += std::pow(static_cast<double>(back[i]) - values[i], 2);
          norm += std::pow(static_cast<double>(values[i]), 2);
        }
        QuantError first;
        for (const int threads : {1, 2, 3}) {
          ThreadPool pool(threads);
          QuantError sums;
          const MxMatrix got = quantize_matrix(plain, rule, pool, &sums);
          ASSERT_EQ(got.codes, want.codes) << rows << "x" << cols;
          ASSERT_EQ(got.scales, want.scales) << rows << "x" << cols;
          EXPECT_EQ(quantize_matrix(plain, rule, pool).codes, want.codes);
          if (threads == 1) first = sums;
          EXPECT_EQ(sums.error, first.error);
          EXPECT_EQ(sums.norm, first.norm);
          EXPECT_NEAR(sums.error, error, 1e-12 * error);
          EXPECT_NEAR(sums.norm, norm, 1e-12 * norm);
          // The sums go on from one matrix to the next.
          quantize_matrix(plain, rule, pool, &sums);
          EXPECT_NEAR(sums.norm, 2 * norm, 2e-12 * norm);
        }
      }
}

TEST(QuantizeMatrix, NansAndInfinitiesMarkTheirBlock) {
  std::vector<float> values(3 * 64, 1.0f);
  values[70] = NAN;
  values[128 + 40] = INFINITY;
  ThreadPool pool(2);
  const MxMatrix got = quantize_matrix(
      {values.data(), nullptr, 3, 64, QuantScheme::plain(DType::kF32)}, ScaleRule::kRceil, pool);
  for (size_t block = 0; block < 6; ++block)
    EXPECT_EQ(got.scales[block] == kE8m0Nan, block == 2 || block == 5) << block;
}

}  // namespace
}  // namespace mx8
