// What a caller asks of the engine, and what comes back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace mx8 {

// How the next token is chosen. The order of operations is: logit_bias, repetition penalty,
// presence and frequency penalties, temperature, top-k, top-p, min-p, draw.
struct SamplingParams {
  float temperature = 1;                // 0: the token with the largest logit (ties: the lower id)
  int top_k = 0;                        // 0 or -1: off
  float top_p = 1;                      // in (0, 1]
  float min_p = 0;                      // in [0, 1]
  float repetition_penalty = 1;         // > 0; over prompt and output: l > 0 ? l / p : l * p
  float presence_penalty = 0;           // -2..2; over the output
  float frequency_penalty = 0;          // -2..2; times the count in the output
  std::map<int32_t, float> logit_bias;  // token id to -100..100
  // Without a seed the engine draws one. The same seed and prompt give the same tokens whatever
  // else is in the batch.
  std::optional<uint64_t> seed;
  int64_t max_tokens = -1;  // -1: as many as the context has room for
  int64_t min_tokens = 0;   // no end-of-sequence or stop token before this many
  bool ignore_eos = false;
  std::vector<int32_t> stop_token_ids;
  std::vector<std::string> stop;  // not part of the returned text unless include_stop_text
  bool include_stop_text = false;
  bool skip_special_tokens = true;
  int logprobs = -1;  // -1: none; n >= 0: of the chosen token and of the n most likely

  // One line naming the first field out of range; `vocab` bounds token ids and logprobs.
  Result<void> check(int64_t vocab) const;
};

struct Request {
  uint64_t id = 0;              // unique among the requests in the engine
  std::vector<int32_t> prompt;  // token ids, at least one
  SamplingParams sampling;
};

enum class FinishReason : uint8_t { kNone, kStop, kLength, kAborted };

std::string_view finish_reason_name(FinishReason reason);  // "", "stop", "length", "abort"

// Natural logarithms of the model's own distribution (before bias, penalties and temperature).
struct TokenLogprobs {
  int32_t id = 0;
  float logprob = 0;
  std::vector<std::pair<int32_t, float>> top;  // most likely first
};

// The news of one request after one step.
struct RequestOutput {
  uint64_t id = 0;
  std::vector<int32_t> token_ids;       // chosen in this step
  std::vector<TokenLogprobs> logprobs;  // one a token when asked for
  std::string text;                     // that became certain in this step
  FinishReason finish = FinishReason::kNone;
  std::string stop_text;  // the stop string that ended it, if one did
};

}  // namespace mx8
