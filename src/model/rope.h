// Rotary frequencies for every type of rope scaling that the families use.
#pragma once

#include <vector>

#include "base/result.h"
#include "checkpoint/hf_config.h"

namespace mx8 {

struct RopeParameters {
  std::vector<float> inv_freq;  // one a pair: head_dim / 2
  float magnitude = 1;          // factor of cos and sin (YaRN, LongRoPE)
};

// The longest context that the config's rotary embedding is made for, in tokens.
int64_t rope_max_context(const HfConfig& config);

// The frequencies for contexts of up to `max_context` tokens, which must not exceed
// rope_max_context. They are fixed at load, so a key in the cache stays valid as its sequence
// grows; of the two types that Transformers changes while a sequence grows, `dynamic` has no effect
// up to max_position_embeddings, and `longrope` takes its long factors for every sequence if
// max_context is above the original context, its short ones otherwise.
Result<RopeParameters> rope_parameters(const HfConfig& config, int64_t max_context);

}  // namespace mx8
