#include "engine/request.h"

#include <cmath>

#include "base/strings.h"

namespace mx8 {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAborted:
      return "abort";
  }
  return "?";
}

Result<void> SamplingParams::check(int64_t vocab) const {
  auto bad = [](const char* field, auto value, const char* want) {
    return invalid_argument(str_cat(field, " is ", value, "; it must be ", want));
  };
  // Written so that NaN fails.
  if (!(temperature >= 0 && std::isfinite(temperature))) {
    return bad("temperature", temperature, "a finite number of at least 0");
  }
  if (top_k < -1) return bad("top_k", top_k, "-1 or 0 (off) or a positive number");
  if (!(top_p > 0 && top_p <= 1)) return bad("top_p", top_p, "above 0 and at most 1");
  if (!(min_p >= 0 && min_p <= 1)) return bad("min_p", min_p, "between 0 and 1");
  if (!(repetition_penalty > 0 && std::isfinite(repetition_penalty))) {
    return bad("repetition_penalty", repetition_penalty, "a finite number above 0");
  }
  if (!(presence_penalty >= -2 && presence_penalty <= 2)) {
    return bad("presence_penalty", presence_penalty, "between -2 and 2");
  }
  if (!(frequency_penalty >= -2 && frequency_penalty <= 2)) {
    return bad("frequency_penalty", frequency_penalty, "between -2 and 2");
  }
  for (const auto& [token, bias] : logit_bias) {
    if (token < 0 || token >= vocab) {
      return invalid_argument(
          str_cat("logit_bias names token ", token, "; ids go from 0 to ", vocab - 1));
    }
    if (!(bias >= -100 && bias <= 100)) return bad("logit_bias", bias, "between -100 and 100");
  }
  if (max_tokens < -1 || max_tokens == 0) return bad("max_tokens", max_tokens, "at least 1");
  if (min_tokens < 0) return bad("min_tokens", min_tokens, "at least 0");
  if (max_tokens > 0 && min_tokens > max_tokens) {
    return invalid_argument(
        str_cat("min_tokens is ", min_tokens, ", above max_tokens, ", max_tokens));
  }
  for (int32_t token : stop_token_ids) {
    if (token < 0 || token >= vocab) {
      return invalid_argument(
          str_cat("stop_token_ids names token ", token, "; ids go from 0 to ", vocab - 1));
    }
  }
  for (const std::string& s : stop) {
    if (s.empty()) return invalid_argument("stop holds an empty string");
  }
  if (logprobs < -1 || logprobs > vocab)
    return bad("logprobs", logprobs, "between 0 and the vocabulary size");
  return {};
}

}  // namespace mx8
