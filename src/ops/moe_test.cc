#include "ops/moe.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "ops/op_test_util.h"

namespace mx8 {
namespace {

using test::ExecOwner;
using test::first_difference;
using test::isas_here;
using test::kInf;
using test::kNan;
using test::normal_floats;

constexpr int kExperts[] = {1, 2, 7, 8, 60, 64, 128, 256, 257};

// What holds for every routing, whatever the logits.
void check_invariants(const RouterShape& shape, int64_t tokens, const Routing& r) {
  const auto pairs = static_cast<size_t>(tokens * shape.top_k);
  ASSERT_EQ(r.offsets.size(), static_cast<size_t>(shape.experts) + 1);
  ASSERT_EQ(r.rows.size(), pairs);
  ASSERT_EQ(r.place.size(), pairs);
  ASSERT_EQ(r.weights.size(), pairs);
  EXPECT_EQ(r.offsets.front(), 0);
  EXPECT_EQ(r.offsets.back(), static_cast<int32_t>(pairs));
  EXPECT_TRUE(std::is_sorted(r.offsets.begin(), r.offsets.end()));
  EXPECT_EQ(std::set<int32_t>(r.place.begin(), r.place.end()).size(), pairs);
  for (size_t i = 0; i < pairs; ++i) {
    ASSERT_GE(r.place[i], 0);
    ASSERT_LT(r.place[i], static_cast<int32_t>(pairs));
    EXPECT_EQ(r.rows[static_cast<size_t>(r.place[i])], static_cast<int32_t>(i) / shape.top_k);
    EXPECT_TRUE(std::isfinite(r.weights[i]) && r.weights[i] >= 0) << r.weights[i];
  }
  for (size_t e = 0; e + 1 < r.offsets.size(); ++e) {
    // Ascending and without repeats: a token chooses an expert once.
    for (int32_t i = r.offsets[e] + 1; i < r.offsets[e + 1]; ++i) {
      EXPECT_LT(r.rows[static_cast<size_t>(i) - 1], r.rows[static_cast<size_t>(i)]);
    }
  }
}

int32_t expert_at(const Routing& r, int32_t row) {
  return static_cast<int32_t>(std::upper_bound(r.offsets.begin(), r.offsets.end(), row) -
                              r.offsets.begin()) -
         1;
}

// The choice by a full stable sort of FP64 probabilities.
void check_choice(const RouterShape& shape, const std::vector<float>& logits, const Routing& r) {
  const auto experts = static_cast<size_t>(shape.experts);
  const auto top_k = static_cast<size_t>(shape.top_k);
  for (size_t m = 0; m * experts < logits.size(); ++m) {
    const float* x = logits.data() + m * experts;
    std::vector<size_t> order(experts);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
    double sum = 0, chosen = 0;
    for (size_t e = 0; e < experts; ++e) sum += std::exp(double{x[e]} - x[order[0]]);
    for (size_t i = 0; i < top_k; ++i) chosen += std::exp(double{x[order[i]]} - x[order[0]]);
    for (size_t i = 0; i < top_k; ++i) {
      const size_t at = m * top_k + i;
      EXPECT_EQ(expert_at(r, r.place[at]), static_cast<int32_t>(order[i])) << "token " << m;
      const double p = std::exp(double{x[order[i]]} - x[order[0]]);
      EXPECT_NEAR(r.weights[at], p / (shape.renormalise ? chosen : sum), 1e-6);
    }
  }
}

TEST(Router, MatchesASortInFp64) {
  for (CpuIsa isa : isas_here()) {
    for (int experts : kExperts) {
      for (int top_k : {1, 2, 4, 8}) {
        if (top_k > experts) continue;
        for (bool renormalise : {false, true}) {
          const int64_t tokens = 37;
          const RouterShape shape = {experts, top_k, renormalise};
          std::vector<float> logits = normal_floats(tokens * experts, 1, 2.0f);
          // Halves of whole numbers make many exact ties.
          for (size_t i = 0; i < logits.size() / 2; ++i) logits[i] = std::round(logits[i]) / 2;
          ExecOwner owner(isa, 2);
          Routing routing;
          route_tokens(owner.exec, shape, Mat::f32(logits.data(), tokens, experts), routing);
          check_invariants(shape, tokens, routing);
          check_choice(shape, logits, routing);
        }
      }
    }
  }
}

TEST(Router, BadLogitsOfOneRowStayInIt) {
  for (CpuIsa isa : isas_here()) {
    for (int experts : kExperts) {
      const int top_k = std::min(experts, 8);
      const RouterShape shape = {experts, top_k, true};
      const int64_t tokens = 6;
      ExecOwner owner(isa, 2);
      std::vector<float> logits = normal_floats(tokens * experts, 2);
      Routing clean, dirty;
      route_tokens(owner.exec, shape, Mat::f32(logits.data(), tokens, experts), clean);
      const auto row = [&](int64_t m) { return logits.begin() + m * experts; };
      std::fill(row(1), row(2), kNan);
      std::fill(row(2), row(3), -kInf);
      std::fill(row(3), row(4), kInf);
      *(row(4)) = kNan;
      *(row(5) - 1) = kInf;
      route_tokens(owner.exec, shape, Mat::f32(logits.data(), tokens, experts), dirty);
      check_invariants(shape, tokens, dirty);
      for (const int64_t m : {0, 5}) {
        for (int i = 0; i < top_k; ++i) {
          const auto at = static_cast<size_t>(m * top_k + i);
          EXPECT_EQ(clean.weights[at], dirty.weights[at]);
          EXPECT_EQ(expert_at(clean, clean.place[at]), expert_at(dirty, dirty.place[at]));
        }
      }
      // A row of NaN: the lowest experts, evenly. A single infinity takes everything.
      EXPECT_EQ(expert_at(dirty, dirty.place[static_cast<size_t>(top_k)]), 0);
      EXPECT_FLOAT_EQ(dirty.weights[static_cast<size_t>(top_k)], 1.0f / static_cast<float>(top_k));
      EXPECT_EQ(expert_at(dirty, dirty.place[static_cast<size_t>(4 * top_k)]), experts - 1);
      EXPECT_EQ(dirty.weights[static_cast<size_t>(4 * top_k)], 1.0f);
    }
  }
}

RC_GTEST_PROP(Router, AnyBitsAsLogitsGiveDistinctExpertsAndFiniteWeights, ()) {
  const int experts = *rc::gen::inRange(1, 40);
  const RouterShape shape = {experts, *rc::gen::inRange(1, experts + 1),
                             *rc::gen::arbitrary<bool>()};
  const int tokens = *rc::gen::inRange(0, 20);
  const auto bits = *rc::gen::container<std::vector<uint32_t>>(
      static_cast<size_t>(tokens * experts), rc::gen::arbitrary<uint32_t>());
  std::vector<float> logits;
  for (uint32_t b : bits) logits.push_back(std::bit_cast<float>(b));
  std::vector<Routing> routings;
  for (CpuIsa isa : isas_here()) {
    ExecOwner owner(isa);
    route_tokens(owner.exec, shape, Mat::f32(logits.data(), tokens, experts),
                 routings.emplace_back());
    check_invariants(shape, tokens, routings.back());
    RC_ASSERT(!testing::Test::HasFailure());
    RC_ASSERT(routings.back().place == routings.front().place);
    RC_ASSERT(first_difference(routings.back().weights, routings.front().weights) == -1);
  }
}

TEST(Combine, SumsInTheOrderOfChoice) {
  for (CpuIsa isa : isas_here()) {
    for (int64_t cols : {1, 7, 8, 33, 576}) {
      for (int top_k : {1, 2, 8}) {
        const int64_t tokens = 9;
        const RouterShape shape = {16, top_k, true};
        ExecOwner owner(isa, 2);
        std::vector<float> logits = normal_floats(tokens * 16, 3);
        Routing r;
        route_tokens(owner.exec, shape, Mat::f32(logits.data(), tokens, 16), r);
        std::vector<float> y = normal_floats(tokens * top_k * cols, 4);
        const std::vector<float> base = normal_floats(tokens * cols, 5);
        for (bool accumulate : {false, true}) {
          std::vector<float> out = base;
          if (!accumulate) std::fill(out.begin(), out.end(), kNan);
          combine_experts(owner.exec, r, top_k, Mat::f32(y.data(), tokens * top_k, cols),
                          Mat::f32(out.data(), tokens, cols), accumulate);
          for (int64_t m = 0; m < tokens; ++m) {
            for (int64_t c = 0; c < cols; ++c) {
              float sum = 0;
              for (int64_t i = m * top_k; i < (m + 1) * top_k; ++i) {
                const auto at = static_cast<size_t>(i);
                sum = std::fma(r.weights[at], y[static_cast<size_t>(r.place[at] * cols + c)], sum);
              }
              const auto at = static_cast<size_t>(m * cols + c);
              EXPECT_EQ(out[at], accumulate ? base[at] + sum : sum);
            }
          }
        }
      }
    }
  }
}

TEST(SharedExpertGate, ScalesRowsBySigmoid) {
  for (CpuIsa isa : isas_here()) {
    ExecOwner owner(isa);
    std::vector<float> gate = {0.0f, 1.5f, -4.0f, 200.0f, -200.0f};
    std::vector<float> x = normal_floats(5 * 19, 6);
    const std::vector<float> before = x;
    scale_rows_by_sigmoid(owner.exec, Mat::f32(gate.data(), 5, 1), Mat::f32(x.data(), 5, 19));
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = before[i] / (1 + std::exp(-double{gate[i / 19]}));
      EXPECT_NEAR(x[i], expected, 4e-7 * std::abs(expected) + 1e-38);
    }
  }
}

}  // namespace
}  // namespace mx8
