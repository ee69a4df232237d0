// Sampler: from the logits of one row to the next token of one sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request.h"

namespace mx8 {

// What a sequence's draws depend on, besides the logits.
struct SamplerState {
  SamplingParams params;
  uint64_t seed = 0;                   // params.seed, or the engine's choice
  std::vector<int32_t> seen;           // distinct tokens of prompt and output
  std::vector<int32_t> output_ids;     // distinct tokens of the output...
  std::vector<int32_t> output_counts;  // ...and how often each occurred
  int64_t position = 0;                // of the next output token, from 0

  SamplerState(const SamplingParams& params, uint64_t seed, std::span<const int32_t> prompt);
  // Records a chosen token.
  void push(int32_t token);

 private:
  std::vector<uint64_t> seen_bits_;
};

// A uniform number in [0, 1) that depends on the seed and the position alone (SplitMix64 finaliser
// over both; Steele, Lea and Flood 2014), so that a draw does not depend on the batch.
double uniform_at(uint64_t seed, uint64_t position);

class Sampler {
 public:
  // Chooses a token. `logits` [vocab] is changed. `banned` ids get probability 0 (end tokens before
  // min_tokens). Logits that are NaN count as minus infinity; if nothing is left above that, the
  // result is -1.
  int32_t sample(const SamplerState& state, std::span<float> logits,
                 std::span<const int32_t> banned = {});

  // Log-probabilities of `token` and of the `top` most likely tokens under softmax(logits).
  static TokenLogprobs logprobs(std::span<const float> logits, int32_t token, int top);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  int32_t draw(const SamplerState& state, std::span<const float> logits);
  std::vector<Candidate> candidates_;
};

// Applies bias and penalties of `state` to the logits, in place.
void apply_penalties(const SamplerState& state, std::span<float> logits);

}  // namespace mx8
