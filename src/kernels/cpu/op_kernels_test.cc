#include "kernels/cpu/op_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "kernels/reference/elementwise.h"
#include "kernels/reference/exp.h"

namespace mx8::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Exp, IsWithinOneUlpOfFp64) {
  double worst = 0;
  // Every 997th float between the limits, of both signs.
  for (const float limit : {88.7228f, -87.3365f}) {
    for (uint32_t bits = 0; bits <= std::bit_cast<uint32_t>(std::abs(limit)); bits += 997) {
      const float x = std::copysign(std::bit_cast<float>(bits), limit);
      const double exact = std::exp(static_cast<double>(x));
      const int exponent = std::max(-126, std::ilogb(exact));
      const double error = std::abs(reference::exp(x) - exact) / std::ldexp(1.0, exponent - 23);
      worst = std::max(worst, error);
    }
  }
  EXPECT_LT(worst, 1.1);
  EXPECT_GT(worst, 0.5) << "an error this small means that the test measures nothing";
}

TEST(Exp, HasStatedValuesAtTheEdges) {
  EXPECT_EQ(reference::exp(0.0f), 1.0f);
  EXPECT_EQ(reference::exp(-0.0f), 1.0f);
  EXPECT_EQ(reference::exp(-kInf), 0.0f);
  EXPECT_EQ(reference::exp(-87.4f), 0.0f);
  EXPECT_GE(reference::exp(exp_f32::kMin), std::numeric_limits<float>::min());
  EXPECT_EQ(reference::exp(88.8f), kInf);
  EXPECT_EQ(reference::exp(kInf), kInf);
  EXPECT_TRUE(std::isfinite(reference::exp(exp_f32::kMax)));
  EXPECT_EQ(reference::exp(std::nextafter(exp_f32::kMax, kInf)), kInf);
  EXPECT_TRUE(std::isnan(reference::exp(kNan)));
  EXPECT_EQ(reference::sigmoid(-kInf), 0.0f);
  EXPECT_EQ(reference::sigmoid(kInf), 1.0f);
}

class Avx2Ops : public testing::Test {
 protected:
  void SetUp() override {
    if (!detect_cpu_features().has(CpuIsa::kAvx2)) GTEST_SKIP() << "this processor lacks AVX2";
    if (&op_kernels(CpuIsa::kAvx2) == &op_kernels(CpuIsa::kScalar)) {
      GTEST_SKIP() << "this build lacks AVX2 kernels";
    }
  }

  static std::vector<float> random_floats(size_t n, uint32_t seed, float sigma) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0, sigma);
    std::vector<float> v(n);
    for (float& x : v) x = normal(rng);
    return v;
  }

  static void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b,
                               size_t from) {
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i]))
          << "element " << i << " of " << from;
    }
  }

  const OpKernels& avx2_ = op_kernels(CpuIsa::kAvx2);
  const OpKernels& scalar_ = op_kernels(CpuIsa::kScalar);
};

// The exponential of AVX2 through softmax, over scores from 0 to far below the underflow.
TEST_F(Avx2Ops, SoftmaxHasTheBitsOfTheTwin) {
  for (size_t n = 1; n < 300; n += n < 40 ? 1 : 37) {
    for (const float sigma : {0.1f, 3.0f, 40.0f}) {
      std::vector<float> x = random_floats(n, 1, sigma);
      if (n > 3) x[2] = -kInf;
      std::vector<float> a(n, kNan), b(n, kNan);
      scalar_.softmax(x.data(), static_cast<int64_t>(n), a.data());
      avx2_.softmax(x.data(), static_cast<int64_t>(n), b.data());
      expect_same_bits(a, b, n);
    }
  }
}

TEST_F(Avx2Ops, RowKernelsHaveTheBitsOfTheTwin) {
  for (size_t n = 1; n < 200; n += n < 70 ? 1 : 29) {
    const auto size = static_cast<int64_t>(n);
    const std::vector<float> x = random_floats(n, 2, 5.0f), y = random_floats(n, 3, 1e-20f);
    std::vector<float> a(n, kNan), b(n, kNan);
    scalar_.rms_norm(x.data(), y.data(), 1e-6f, size, a.data());
    avx2_.rms_norm(x.data(), y.data(), 1e-6f, size, b.data());
    expect_same_bits(a, b, n);

    const float* rows[] = {x.data(), y.data(), x.data()};
    const float weights[] = {0.3f, -2.0f, 0.1f};
    for (const bool accumulate : {false, true}) {
      scalar_.weighted_sum(rows, weights, 3, size, accumulate, a.data());
      avx2_.weighted_sum(rows, weights, 3, size, accumulate, b.data());
      expect_same_bits(a, b, n);
    }
    scalar_.scale(1.7f, size, a.data());
    avx2_.scale(1.7f, size, b.data());
    expect_same_bits(a, b, n);

    std::vector<float> c = random_floats(4 * n + 6, 4, 1.0f), d = c;
    scalar_.rope(x.data(), y.data(), static_cast<int>(n), 2, static_cast<int>(2 * n + 3), c.data());
    avx2_.rope(x.data(), y.data(), static_cast<int>(n), 2, static_cast<int>(2 * n + 3), d.data());
    expect_same_bits(c, d, n);
  }
}

}  // namespace
}  // namespace mx8::cpu
