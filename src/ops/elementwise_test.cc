#include "ops/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "mx/bf16.h"
#include "ops/op_test_util.h"

namespace mx8 {
namespace {

using test::ExecOwner;
using test::first_difference;
using test::isas_here;
using test::kNan;
using test::normal_floats;

TEST(Embedding, DecodesTheRowsOfEachDtype) {
  ExecOwner owner;
  const std::vector<int32_t> ids = {2, 0, 2, 1};
  std::vector<float> f32 = normal_floats(3 * 5, 1);
  std::vector<uint16_t> bf16, f16;
  for (float x : f32) bf16.push_back(f32_to_bf16(x)), f16.push_back(f32_to_f16(x));
  const Mat tables[] = {{f32.data(), DType::kF32, 3, 5, 5},
                        {bf16.data(), DType::kBF16, 3, 5, 5},
                        {f16.data(), DType::kF16, 3, 5, 5}};
  for (const Mat& table : tables) {
    std::vector<float> out(4 * 5, kNan);
    embedding(owner.exec, table, ids, Mat::f32(out.data(), 4, 5));
    for (size_t m = 0; m < 4; ++m) {
      for (size_t i = 0; i < 5; ++i) {
        const size_t from = static_cast<size_t>(ids[m]) * 5 + i;
        const float expected = table.dtype == DType::kF32    ? f32[from]
                               : table.dtype == DType::kBF16 ? bf16_to_f32(bf16[from])
                                                             : f16_to_f32(f16[from]);
        EXPECT_EQ(out[m * 5 + i], expected);
      }
    }
  }
}

TEST(EmbeddingDeathTest, RefusesIdsOutsideTheTable) {
  ExecOwner owner;
  std::vector<float> table(6), out(2);
  for (int32_t id : {-1, 3}) {
    const std::vector<int32_t> ids = {id};
    EXPECT_DEATH(
        embedding(owner.exec, Mat::f32(table.data(), 3, 2), ids, Mat::f32(out.data(), 1, 2)), "id");
  }
}

TEST(RmsNorm, MatchesFp64) {
  for (CpuIsa isa : isas_here()) {
    ExecOwner owner(isa, 2);
    for (int64_t n : {1, 7, 8, 9, 31, 32, 33, 64, 100, 576, 1000, 4096}) {
      const int64_t rows = 3;
      std::vector<float> x = normal_floats(rows * n, 2, 3.0f);
      const std::vector<float> weight = normal_floats(n, 3);
      std::vector<float> out(x.size(), kNan);
      rms_norm(owner.exec, Mat::f32(x.data(), rows, n), weight, 1e-5f,
               Mat::f32(out.data(), rows, n));
      for (int64_t m = 0; m < rows; ++m) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += double{x[m * n + i]} * x[m * n + i];
        const double inverse = 1 / std::sqrt(sum / static_cast<double>(n) + 1e-5f);
        for (int64_t i = 0; i < n; ++i) {
          const double expected = x[m * n + i] * inverse * weight[i];
          EXPECT_NEAR(out[m * n + i], expected, 5e-7 * std::abs(expected)) << n << " " << i;
        }
      }
      rms_norm(owner.exec, Mat::f32(x.data(), rows, n), weight, 1e-5f, Mat::f32(x.data(), rows, n));
      EXPECT_EQ(first_difference(x, out), -1) << "in place, " << n;
    }
  }
}

TEST(RmsNorm, HeadsAreRowsOfTheirOwn) {
  for (CpuIsa isa : isas_here()) {
    ExecOwner owner(isa);
    std::vector<float> x = normal_floats(4 * 6 * 48, 5), y = x;
    const std::vector<float> weight = normal_floats(48, 6);
    head_rms_norm(owner.exec, Mat::f32(x.data(), 4, 6 * 48), 48, weight, 1e-6f);
    rms_norm(owner.exec, Mat::f32(y.data(), 4 * 6, 48), weight, 1e-6f,
             Mat::f32(y.data(), 4 * 6, 48));
    EXPECT_EQ(first_difference(x, y), -1);
  }
}

// Rows beside each other in a wider matrix: what lies between them is neither read nor written.
TEST(Elementwise, RowStridesAreRespected) {
  for (CpuIsa isa : isas_here()) {
    ExecOwner owner(isa);
    const int64_t rows = 5, n = 40, ld = 50;
    std::vector<float> dense = normal_floats(rows * n, 7);
    std::vector<float> wide(static_cast<size_t>(rows * ld), kNan);
    for (int64_t m = 0; m < rows; ++m) {
      std::copy_n(dense.begin() + m * n, n, wide.begin() + m * ld);
    }
    const Mat d = Mat::f32(dense.data(), rows, n);
    const Mat w = {wide.data(), DType::kF32, rows, n, ld};
    const std::vector<float> weight = normal_floats(n, 8);
    const std::vector<float> inv_freq = {1.0f, 0.5f, 0.25f};
    const RopeTable table = make_rope_table(inv_freq, 8, 1.0f);
    const std::vector<int32_t> positions = {3, 1, 0, 7, 7};
    for (const Mat& x : {d, w}) {
      rms_norm(owner.exec, x, weight, 1e-6f, x);
      rope(owner.exec, table, positions, 10, x);
    }
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t i = 0; i < ld; ++i) {
        if (i < n) {
          EXPECT_EQ(wide[m * ld + i], dense[m * n + i]);
        } else {
          EXPECT_TRUE(std::isnan(wide[m * ld + i]));
        }
      }
    }
  }
}

TEST(Rope, MatchesTheFormulaInFp64) {
  for (CpuIsa isa : isas_here()) {
    ExecOwner owner(isa, 2);
    for (const auto& [head_dim, rotary_dim] :
         {std::pair{64, 64}, {16, 16}, {80, 32}, {96, 96}, {128, 64}, {10, 6}, {2, 2}, {64, 36}}) {
      const int half = rotary_dim / 2;
      std::vector<float> inv_freq;
      for (int i = 0; i < half; ++i) {
        inv_freq.push_back(static_cast<float>(std::pow(1e5, -2.0 * i / rotary_dim)));
      }
      const float magnitude = 1.25f;
      const RopeTable table = make_rope_table(inv_freq, 5000, magnitude);
      ASSERT_EQ(table.positions(), 5000);
      const std::vector<int32_t> positions = {0, 1, 17, 4999, 2500};
      const int heads = 3;
      const int cols = heads * head_dim;
      const std::vector<float> before = normal_floats(5 * cols, 9);
      std::vector<float> x = before;
      rope(owner.exec, table, positions, head_dim, Mat::f32(x.data(), 5, cols));
      for (size_t m = 0; m < positions.size(); ++m) {
        for (int h = 0; h < heads; ++h) {
          const size_t at = m * static_cast<size_t>(cols) + static_cast<size_t>(h * head_dim);
          for (int i = 0; i < head_dim; ++i) {
            const size_t e = at + static_cast<size_t>(i);
            if (i >= rotary_dim) {
              EXPECT_EQ(x[e], before[e]);
              continue;
            }
            const int pair = i % half;
            // The angle is an FP32 product, as Transformers computes it; all else is exact here.
            const double angle =
                static_cast<float>(positions[m]) * inv_freq[static_cast<size_t>(pair)];
            const double low = before[at + static_cast<size_t>(pair)];
            const double high = before[at + static_cast<size_t>(pair + half)];
            const double expected =
                magnitude * (i < half ? low * std::cos(angle) - high * std::sin(angle)
                                      : high * std::cos(angle) + low * std::sin(angle));
            EXPECT_NEAR(x[e], expected, 4e-7 * (std::abs(low) + std::abs(high)));
          }
        }
      }
    }
  }
}

TEST(RopeDeathTest, RefusesPositionsOutsideTheTable) {
  ExecOwner owner;
  const std::vector<float> inv_freq = {1.0f};
  const RopeTable table = make_rope_table(inv_freq, 4, 1.0f);
  std::vector<float> x(2);
  const std::vector<int32_t> positions = {4};
  EXPECT_DEATH(rope(owner.exec, table, positions, 2, Mat::f32(x.data(), 1, 2)), "position");
}

TEST(GatherRows, CopiesTheRowsAskedFor) {
  ExecOwner owner;
  std::vector<float> x = normal_floats(4 * 3, 10), out(3 * 3, kNan);
  const std::vector<int32_t> rows = {3, 3, 1};
  gather_rows(owner.exec, Mat::f32(x.data(), 4, 3), rows, Mat::f32(out.data(), 3, 3));
  for (size_t m = 0; m < 3; ++m) {
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(out[m * 3 + i], x[static_cast<size_t>(rows[m]) * 3 + i]);
  }
}

// Every row alone on the scalar kernels equals the row within a batch that is spread over threads.
TEST(Elementwise, RowsDoNotDependOnBatchThreadsOrKernels) {
  const int64_t rows = 200, n = 576;
  const std::vector<float> x = normal_floats(rows * n, 11);
  const std::vector<float> weight = normal_floats(n, 12);
  const std::vector<float> inv_freq = normal_floats(32, 13);
  const RopeTable table = make_rope_table(inv_freq, 300, 1.0f);
  std::vector<int32_t> positions;
  for (int m = 0; m < rows; ++m) positions.push_back(m + 50);
  std::vector<float> expected = x;
  ExecOwner scalar;
  for (int64_t m = 0; m < rows; ++m) {
    const Mat row = Mat::f32(expected.data() + m * n, 1, n);
    rms_norm(scalar.exec, row, weight, 1e-5f, row);
    rope(scalar.exec, table, std::span(positions).subspan(static_cast<size_t>(m), 1), 64, row);
  }
  for (CpuIsa isa : isas_here()) {
    for (int threads : {1, 2, 3}) {
      ExecOwner owner(isa, threads);
      std::vector<float> y = x;
      const Mat mat = Mat::f32(y.data(), rows, n);
      rms_norm(owner.exec, mat, weight, 1e-5f, mat);
      rope(owner.exec, table, positions, 64, mat);
      EXPECT_EQ(first_difference(y, expected), -1) << cpu_isa_name(isa) << " " << threads;
    }
  }
}

}  // namespace
}  // namespace mx8
