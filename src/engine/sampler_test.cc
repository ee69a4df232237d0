#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

namespace mx8 {
namespace {

// The distribution that SamplingParams describe, in FP64 and by full sorting: the slow obvious
// twin.
std::vector<double> twin(const SamplerState& state, std::vector<float> logits) {
  const SamplingParams& p = state.params;
  apply_penalties(state, logits);
  std::vector<double> prob(logits.size(), 0);
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  if (p.top_k > 0 && static_cast<size_t>(p.top_k) < order.size()) order.resize(p.top_k);
  auto normalise = [&] {
    double total = 0;
    for (int i : order)
      total += prob[i] = std::exp((double{logits[i]} - logits[order[0]]) / p.temperature);
    std::vector<double> kept(prob.size(), 0);
    for (int i : order) kept[i] = prob[i] / total;
    prob = kept;
  };
  normalise();
  double sum = 0;
  size_t n = 0;
  while (n < order.size()) {
    sum += prob[order[n++]];
    if (sum >= p.top_p) break;
  }
  order.resize(n);
  normalise();
  const double limit = p.min_p * prob[order[0]];
  std::erase_if(order, [&](int i) { return prob[i] < limit; });
  normalise();
  return prob;
}

std::vector<float> random_logits(uint32_t seed, size_t vocab, float spread) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> gauss(0, spread);
  std::vector<float> logits(vocab);
  for (float& l : logits) l = gauss(rng);
  return logits;
}

// Pearson's statistic against its 99.99 % quantile (Wilson and Hilferty's approximation).
void expect_same_distribution(const std::vector<double>& want, const std::vector<int>& counts,
                              int draws) {
  double statistic = 0, rest_want = 0, rest_got = 0;
  int cells = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] == 0) {
      EXPECT_EQ(counts[i], 0) << "token " << i << " cannot occur";
    } else if (want[i] * draws < 8) {
      rest_want += want[i] * draws;
      rest_got += counts[i];
    } else {
      statistic += std::pow(counts[i] - want[i] * draws, 2) / (want[i] * draws);
      ++cells;
    }
  }
  if (rest_want > 8) {
    statistic += std::pow(rest_got - rest_want, 2) / rest_want;
    ++cells;
  }
  const double df = std::max(1, cells - 1);
  const double quantile = df * std::pow(1 - 2 / (9 * df) + 3.72 * std::sqrt(2 / (9 * df)), 3);
  EXPECT_LT(statistic, quantile) << df << " degrees of freedom";
}

std::vector<int> draw_many(SamplerState state, const std::vector<float>& logits, int draws) {
  Sampler sampler;
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) {
    state.position = i;
    std::vector<float> copy = logits;
    ++counts[static_cast<size_t>(sampler.sample(state, copy))];
  }
  return counts;
}

TEST(Sampler, DrawsFromTheTwinsDistribution) {
  std::vector<SamplingParams> cases(9);
  cases[1].temperature = 0.6f;
  cases[2].top_k = 7;
  cases[3].top_p = 0.8f;
  cases[4].min_p = 0.1f;
  cases[5] = {.temperature = 1.4f, .top_k = 30, .top_p = 0.9f, .min_p = 0.02f};
  cases[6].repetition_penalty = 1.5f;
  cases[7].presence_penalty = 1.2f;
  cases[7].frequency_penalty = 0.4f;
  cases[8].logit_bias = {{3, 2.5f}, {4, -100.0f}};
  for (size_t c = 0; c < cases.size(); ++c) {
    SCOPED_TRACE(c);
    const std::vector<int32_t> prompt = {1, 2, 2, 40};
    SamplerState state(cases[c], 1234 + c, prompt);
    for (int32_t t : {7, 7, 9, 1}) state.push(t);
    const std::vector<float> logits = random_logits(static_cast<uint32_t>(c), 60, 1.5f);
    expect_same_distribution(twin(state, logits), draw_many(state, logits, 20000), 20000);
  }
}

TEST(Sampler, TheChiSquareTestCanFail) {
  SamplingParams params;
  SamplerState state(params, 5, {});
  const std::vector<float> logits = random_logits(1, 60, 1.5f);
  SamplerState warmer = state;
  warmer.params.temperature = 1.1f;
  const std::vector<double> want = twin(warmer, logits);
  const std::vector<int> counts = draw_many(state, logits, 20000);
  double statistic = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    statistic += std::pow(counts[i] - want[i] * 20000, 2) / (want[i] * 20000);
  }
  EXPECT_GT(statistic, 120);
}

TEST(Sampler, EqualsTransformersProcessors) {
  std::ifstream file(MX8_SOURCE_DIR "/tests/data/sampling/hf_processors.json");
  const auto golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["cases"].size(), 16u);
  for (const auto& c : golden["cases"]) {
    SamplingParams p;
    const auto& params = c["params"];
    p.temperature = params.value("temperature", 1.0f);
    p.top_k = params.value("top_k", 0);
    p.top_p = params.value("top_p", 1.0f);
    p.min_p = params.value("min_p", 0.0f);
    p.repetition_penalty = params.value("repetition_penalty", 1.0f);
    SamplerState state(p, 99, c["tokens"].get<std::vector<int32_t>>());
    const auto logits = c["logits"].get<std::vector<float>>();
    const auto want = c["probabilities"].get<std::vector<double>>();
    const std::vector<double> got = twin(state, logits);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-6) << params << " " << i;
    expect_same_distribution(want, draw_many(state, logits, 4000), 4000);
  }
}

TEST(Sampler, PenaltiesByTheirFormulas) {
  SamplingParams p;
  p.repetition_penalty = 2;
  p.presence_penalty = 0.5f;
  p.frequency_penalty = 0.25f;
  p.logit_bias = {{0, 1.0f}};
  SamplerState state(p, 0, std::vector<int32_t>{1, 2});
  state.push(2);
  state.push(2);
  state.push(3);
  std::vector<float> logits = {1, 4, -4, 8, 5};
  apply_penalties(state, logits);
  EXPECT_EQ(logits, (std::vector<float>{2, 2, -8 - 0.5f - 0.5f, 4 - 0.5f - 0.25f, 5}));
}

TEST(Sampler, GreedyTakesTheLowestIdOfEqualLogits) {
  Sampler sampler;
  SamplingParams p;
  p.temperature = 0;
  SamplerState state(p, 0, {});
  std::vector<float> logits = {1, 3, 3, NAN, 2};
  EXPECT_EQ(sampler.sample(state, logits), 1);
  state.params.temperature = 1e-38f;
  EXPECT_EQ(sampler.sample(state, logits, std::vector<int32_t>{1}), 2);
}

TEST(Sampler, HostileLogits) {
  Sampler sampler;
  SamplingParams p;
  SamplerState state(p, 0, {});
  std::vector<float> none = {NAN, -INFINITY, NAN};
  EXPECT_EQ(sampler.sample(state, none), -1);
  state.params.temperature = 0;
  EXPECT_EQ(sampler.sample(state, none), -1);
  state.params.temperature = 1;
  std::vector<float> one = {NAN, -5e30f, -INFINITY};
  EXPECT_EQ(sampler.sample(state, one), 1);
  std::vector<float> infinite = {1, INFINITY, 2};
  EXPECT_EQ(sampler.sample(state, infinite), 1);
  // Everything but one token filtered out, and a top_p that the head alone reaches.
  state.params.top_p = 1e-6f;
  std::vector<float> head = {0, 9, 1};
  EXPECT_EQ(sampler.sample(state, head), 1);
}

TEST(Sampler, DrawsDependOnSeedAndPositionAlone) {
  SamplingParams p;
  const std::vector<float> logits = random_logits(3, 1000, 1);
  Sampler used, fresh;
  SamplerState a(p, 7, {}), b(p, 7, {}), other(p, 8, {});
  int different = 0;
  for (int i = 0; i < 50; ++i) {
    std::vector<float> noise = random_logits(static_cast<uint32_t>(i), 1000, 2);
    (void)used.sample(other, noise);
    std::vector<float> la = logits, lb = logits, lo = logits;
    const int32_t token = used.sample(a, la);
    EXPECT_EQ(token, fresh.sample(b, lb));
    different += token != used.sample(other, lo);
    a.push(token);
    b.push(token);
    other.push(token);
  }
  EXPECT_GT(different, 40);
}

TEST(Sampler, UniformIsUniform) {
  std::vector<int> counts(64);
  for (int seed = 0; seed < 100; ++seed) {
    for (int i = 0; i < 640; ++i) {
      const double u = uniform_at(static_cast<uint64_t>(seed), static_cast<uint64_t>(i));
      ASSERT_GE(u, 0);
      ASSERT_LT(u, 1);
      ++counts[static_cast<size_t>(u * 64)];
    }
  }
  expect_same_distribution(std::vector<double>(64, 1.0 / 64), counts, 64000);
}

TEST(Sampler, Logprobs) {
  const std::vector<float> logits = {0, std::log(3.0f), NAN, std::log(4.0f), -INFINITY};
  const TokenLogprobs lp = Sampler::logprobs(logits, 1, 2);
  EXPECT_NEAR(lp.logprob, std::log(3.0 / 8), 1e-6);
  ASSERT_EQ(lp.top.size(), 2u);
  EXPECT_EQ(lp.top[0].first, 3);
  EXPECT_NEAR(lp.top[0].second, std::log(0.5), 1e-6);
  EXPECT_EQ(lp.top[1].first, 1);
  EXPECT_EQ(lp.top[1].second, lp.logprob);
  EXPECT_TRUE(Sampler::logprobs(logits, 0, 0).top.empty());
}

TEST(SamplingParams, EachFieldIsChecked) {
  auto message = [](auto change) {
    SamplingParams p;
    change(p);
    const auto r = p.check(100);
    return r.ok() ? std::string() : r.error().message;
  };
  EXPECT_EQ(message([](SamplingParams&) {}), "");
  EXPECT_NE(message([](SamplingParams& p) { p.temperature = NAN; }).find("temperature"),
            std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) { p.temperature = -1; }).find("temperature"),
            std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) { p.top_k = -2; }).find("top_k"), std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) { p.top_p = 0; }).find("top_p"), std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) { p.min_p = 1.5f; }).find("min_p"), std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) { p.repetition_penalty = 0; }).find("repetition"),
            std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) { p.presence_penalty = 3; }).find("presence"),
            std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) { p.frequency_penalty = -3; }).find("frequency"),
            std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) {
              p.logit_bias = {{100, 1}};
            }).find("99"),
            std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) {
              p.logit_bias = {{1, 101}};
            }).find("logit_bias"),
            std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) { p.max_tokens = 0; }).find("max_tokens"),
            std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) {
              p.max_tokens = 3;
              p.min_tokens = 4;
            }).find("min_tokens"),
            std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) { p.stop_token_ids = {-1}; }).find("stop_token_ids"),
            std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) { p.stop = {""}; }).find("stop"), std::string::npos);
  EXPECT_NE(message([](SamplingParams& p) { p.logprobs = 101; }).find("logprobs"),
            std::string::npos);
}

}  // namespace
}  // namespace mx8
