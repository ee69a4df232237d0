#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mx8 {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

int32_t argmax(std::span<const float> logits) {
  int32_t best = -1;
  float best_logit = kMinusInfinity;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > best_logit) {
      best_logit = logits[i];
      best = static_cast<int32_t>(i);
    }
  }
  return best;
}

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

}  // namespace

double uniform_at(uint64_t seed, uint64_t position) {
  const uint64_t bits =
      mix(mix(seed + 0x9E3779B97F4A7C15ull) + (position + 1) * 0x9E3779B97F4A7C15ull);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

SamplerState::SamplerState(const SamplingParams& p, uint64_t seed_value,
                           std::span<const int32_t> prompt)
    : params(p), seed(seed_value) {
  for (int32_t token : prompt) {
    const size_t word = static_cast<size_t>(token) / 64;
    if (word >= seen_bits_.size()) seen_bits_.resize(word + 1);
    const uint64_t bit = uint64_t{1} << (token % 64);
    if ((seen_bits_[word] & bit) == 0) seen.push_back(token);
    seen_bits_[word] |= bit;
  }
}

void SamplerState::push(int32_t token) {
  const size_t word = static_cast<size_t>(token) / 64;
  if (word >= seen_bits_.size()) seen_bits_.resize(word + 1);
  const uint64_t bit = uint64_t{1} << (token % 64);
  if ((seen_bits_[word] & bit) == 0) seen.push_back(token);
  seen_bits_[word] |= bit;
  const auto at = std::find(output_ids.begin(), output_ids.end(), token);
  if (at == output_ids.end()) {
    output_ids.push_back(token);
    output_counts.push_back(1);
  } else {
    ++output_counts[static_cast<size_t>(at - output_ids.begin())];
  }
  ++position;
}

void apply_penalties(const SamplerState& state, std::span<float> logits) {
  const SamplingParams& p = state.params;
  for (const auto& [token, bias] : p.logit_bias) logits[static_cast<size_t>(token)] += bias;
  if (p.repetition_penalty != 1) {
    for (int32_t token : state.seen) {
      float& l = logits[static_cast<size_t>(token)];
      l = l > 0 ? l / p.repetition_penalty : l * p.repetition_penalty;
    }
  }
  if (p.presence_penalty != 0 || p.frequency_penalty != 0) {
    for (size_t i = 0; i < state.output_ids.size(); ++i) {
      logits[static_cast<size_t>(state.output_ids[i])] -=
          p.presence_penalty + p.frequency_penalty * static_cast<float>(state.output_counts[i]);
    }
  }
}

int32_t Sampler::sample(const SamplerState& state, std::span<float> logits,
                        std::span<const int32_t> banned) {
  apply_penalties(state, logits);
  for (int32_t token : banned) logits[static_cast<size_t>(token)] = kMinusInfinity;
  if (state.params.temperature == 0 || state.params.top_k == 1) return argmax(logits);
  return draw(state, logits);
}

int32_t Sampler::draw(const SamplerState& state, std::span<const float> logits) {
  const SamplingParams& p = state.params;
  const int32_t best = argmax(logits);
  if (best < 0) return -1;
  const double max_logit = logits[static_cast<size_t>(best)];
  if (std::isinf(max_logit)) return best;  // plus infinity: certain
  // Bounded, so that the largest logit keeps 0 * inverse = 0 under a temperature that is subnormal.
  const double inverse_temperature = std::min(1.0 / static_cast<double>(p.temperature), 1e300);
  // exp of less than -745 is zero in FP64, so a tiny temperature is greedy without overflow.
  auto weight = [&](float logit) {
    return std::exp((static_cast<double>(logit) - max_logit) * inverse_temperature);
  };

  // min-p keeps weight(l) >= min_p * weight(max) = min_p. NaN fails every comparison.
  candidates_.clear();
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (!(logit > kMinusInfinity)) continue;
    total += weight(logit);
    candidates_.push_back({logit, static_cast<int32_t>(i)});
  }
  auto before = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  size_t kept = candidates_.size();
  const bool by_k = p.top_k > 0 && static_cast<size_t>(p.top_k) < kept;
  size_t sorted = 0;  // candidates_[0 .. sorted) are the largest, in order
  auto sort_to = [&](size_t n) {
    if (n <= sorted) return;
    std::partial_sort(candidates_.begin() + static_cast<ptrdiff_t>(sorted),
                      candidates_.begin() + static_cast<ptrdiff_t>(n), candidates_.end(), before);
    sorted = n;
  };
  if (by_k) {
    kept = static_cast<size_t>(p.top_k);
    sort_to(kept);
    total = 0;
    for (size_t i = 0; i < kept; ++i) total += weight(candidates_[i].logit);
  }
  if (p.top_p < 1) {
    // The shortest head of the sorted list with a probability of at least top_p.
    double sum = 0;
    size_t i = 0;
    while (i < kept) {
      if (i >= sorted) sort_to(std::min(kept, std::max<size_t>(64, sorted * 4)));
      sum += weight(candidates_[i].logit);
      ++i;
      if (sum >= static_cast<double>(p.top_p) * total) break;
    }
    kept = i;
    total = sum;
  }
  if (p.min_p > 0) {
    size_t out = 0;
    total = 0;
    for (size_t i = 0; i < kept; ++i) {
      const double w = weight(candidates_[i].logit);
      if (w < static_cast<double>(p.min_p)) continue;
      total += w;
      candidates_[out++] = candidates_[i];
    }
    kept = out;
  }
  const double target = uniform_at(state.seed, static_cast<uint64_t>(state.position)) * total;
  double sum = 0;
  for (size_t i = 0; i < kept; ++i) {
    sum += weight(candidates_[i].logit);
    if (sum > target) return candidates_[i].id;
  }
  // Rounding left the target at the very end: the last candidate with a weight.
  for (size_t i = kept; i-- > 0;) {
    if (weight(candidates_[i].logit) > 0) return candidates_[i].id;
  }
  return best;
}

TokenLogprobs Sampler::logprobs(std::span<const float> logits, int32_t token, int top) {
  float max_logit = kMinusInfinity;
  for (float l : logits) {
    if (l > max_logit) max_logit = l;
  }
  double sum = 0;
  for (float l : logits) {
    if (l > kMinusInfinity) sum += std::exp(static_cast<double>(l) - max_logit);
  }
  const double log_sum = std::log(sum) + max_logit;
  TokenLogprobs out;
  out.id = token;
  out.logprob = static_cast<float>(logits[static_cast<size_t>(token)] - log_sum);
  std::vector<int32_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  const size_t n = std::min<size_t>(static_cast<size_t>(std::max(top, 0)), order.size());
  auto key = [&](int32_t id) {
    const float l = logits[static_cast<size_t>(id)];
    return l == l ? l : kMinusInfinity;
  };
  std::partial_sort(
      order.begin(), order.begin() + static_cast<ptrdiff_t>(n), order.end(),
      [&](int32_t a, int32_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  for (size_t i = 0; i < n; ++i) {
    out.top.emplace_back(order[i], static_cast<float>(key(order[i]) - log_sum));
  }
  return out;
}

}  // namespace mx8
