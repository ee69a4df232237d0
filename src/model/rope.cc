#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/strings.h"

namespace mx8 {
namespace {

// 1 / base^(2i / d), with the roundings of Transformers (FP32 throughout).
std::vector<float> plain_frequencies(double theta, int64_t dim) {
  std::vector<float> inv_freq(static_cast<size_t>(dim / 2));
  const float base = static_cast<float>(theta);
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
    inv_freq[i] = 1.0f / std::pow(base, exponent);
  }
  return inv_freq;
}

// Llama 3.1: long waves are stretched by `factor`, short ones stay, and those between are blended.
void scale_llama3(const RopeScaling& s, std::vector<float>& inv_freq) {
  const float context = static_cast<float>(s.original_max_position_embeddings);
  const float factor = static_cast<float>(s.factor);
  const float low = static_cast<float>(s.low_freq_factor);
  const float high = static_cast<float>(s.high_freq_factor);
  const float longest = context / low;
  const float shortest = context / high;
  for (float& f : inv_freq) {
    const float wave = 2 * std::numbers::pi_v<float> / f;
    if (wave < shortest) continue;
    if (wave > longest) {
      f /= factor;
      continue;
    }
    const float smooth = (context / wave - low) / (high - low);
    f = (1 - smooth) * f / factor + smooth * f;
  }
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

// YaRN (Peng et al. 2023): pairs that turn more than beta_fast times over the original context
// stay, those that turn less than beta_slow times are stretched, with a ramp between.
void scale_yarn(const RopeScaling& s, double theta, int64_t dim, RopeParameters& out) {
  const double context = static_cast<double>(s.original_max_position_embeddings);
  const auto dimension_of = [&](double turns) {
    return static_cast<double>(dim) * std::log(context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = dimension_of(s.beta_fast);
  double high = dimension_of(s.beta_slow);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;

  const float factor = static_cast<float>(s.factor);
  for (size_t i = 0; i < out.inv_freq.size(); ++i) {
    const float ramp = std::clamp(
        (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0f,
        1.0f);
    const float kept = 1 - ramp;
    const float extrapolated = out.inv_freq[i];
    const float interpolated = 1.0f / (factor * (1.0f / extrapolated));
    out.inv_freq[i] = interpolated * (1 - kept) + extrapolated * kept;
  }

  double magnitude = yarn_mscale(s.factor, 1);
  if (s.attention_factor) {
    magnitude = *s.attention_factor;
  } else if (s.mscale.value_or(0) != 0 && s.mscale_all_dim.value_or(0) != 0) {
    magnitude = yarn_mscale(s.factor, *s.mscale) / yarn_mscale(s.factor, *s.mscale_all_dim);
  }
  out.magnitude = static_cast<float>(magnitude);
}

// LongRoPE (Ding et al. 2024): a searched factor for each pair.
void scale_longrope(const RopeScaling& s, double theta, int64_t dim, int64_t max_context,
                    RopeParameters& out) {
  const bool is_long = max_context > s.original_max_position_embeddings;
  const std::vector<double>& factors = is_long ? s.long_factor : s.short_factor;
  const float base = static_cast<float>(theta);
  for (size_t i = 0; i < out.inv_freq.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
    out.inv_freq[i] = 1.0f / (static_cast<float>(factors[i]) * std::pow(base, exponent));
  }
  const double original = static_cast<double>(s.original_max_position_embeddings);
  double magnitude = s.factor <= 1 ? 1.0 : std::sqrt(1 + std::log(s.factor) / std::log(original));
  out.magnitude = static_cast<float>(s.attention_factor.value_or(magnitude));
}

Result<void> check_scaling(const HfConfig& config) {
  const RopeScaling& s = config.rope_scaling;
  const auto refuse = [&](const std::string& what) {
    return invalid_argument(
        str_cat(config.path, ": rope_scaling (", rope_type_name(s.type), "): ", what));
  };
  const bool stretches = s.type != RopeType::kDefault && s.type != RopeType::kLongRope;
  if (stretches && !(s.factor >= 1)) {
    return refuse(str_cat("factor is ", s.factor, ", must be 1 or more"));
  }
  const bool has_original =
      s.type == RopeType::kLlama3 || s.type == RopeType::kYarn || s.type == RopeType::kLongRope;
  if (has_original && s.original_max_position_embeddings < 2) {
    return refuse(str_cat("original_max_position_embeddings is ",
                          s.original_max_position_embeddings, ", must be 2 or more"));
  }
  if (s.type == RopeType::kLlama3 &&
      !(s.low_freq_factor > 0 && s.high_freq_factor > s.low_freq_factor)) {
    return refuse(str_cat("low_freq_factor ", s.low_freq_factor,
                          " must be positive and below high_freq_factor ", s.high_freq_factor));
  }
  if (s.type == RopeType::kYarn && !(s.beta_slow > 0 && s.beta_fast > s.beta_slow)) {
    return refuse(
        str_cat("beta_slow ", s.beta_slow, " must be positive and below beta_fast ", s.beta_fast));
  }
  if (s.type == RopeType::kLongRope) {
    const size_t pairs = static_cast<size_t>(config.head_dim / 2);
    if (s.short_factor.size() != pairs || s.long_factor.size() != pairs) {
      return refuse(str_cat("short_factor and long_factor have ", s.short_factor.size(), " and ",
                            s.long_factor.size(), " values, must have head_dim / 2 = ", pairs));
    }
    const auto positive = [](double f) { return f > 0; };
    if (!std::all_of(s.short_factor.begin(), s.short_factor.end(), positive) ||
        !std::all_of(s.long_factor.begin(), s.long_factor.end(), positive)) {
      return refuse("every short_factor and long_factor must be positive");
    }
  }
  return {};
}

}  // namespace

int64_t rope_max_context(const HfConfig& config) {
  const RopeScaling& s = config.rope_scaling;
  const int64_t trained = config.max_position_embeddings;
  switch (s.type) {
    case RopeType::kLinear:
      return static_cast<int64_t>(s.factor * static_cast<double>(trained));
    case RopeType::kYarn:
      return std::max(
          trained,
          static_cast<int64_t>(s.factor * static_cast<double>(s.original_max_position_embeddings)));
    default:
      return trained;
  }
}

Result<RopeParameters> rope_parameters(const HfConfig& config, int64_t max_context) {
  const RopeScaling& s = config.rope_scaling;
  if (!(config.rope_theta > 1)) {
    return invalid_argument(
        str_cat(config.path, ": rope_theta is ", config.rope_theta, ", must be above 1"));
  }
  if (config.head_dim % 2 != 0) {
    return invalid_argument(str_cat(config.path, ": head_dim is ", config.head_dim,
                                    "; rotary embedding needs an even one"));
  }
  MX8_RETURN_IF_ERROR(check_scaling(config));

  RopeParameters out;
  out.inv_freq = plain_frequencies(config.rope_theta, config.head_dim);
  switch (s.type) {
    case RopeType::kDefault:
    case RopeType::kDynamic:
      break;
    case RopeType::kLinear:
      for (float& f : out.inv_freq) f /= static_cast<float>(s.factor);
      break;
    case RopeType::kLlama3:
      scale_llama3(s, out.inv_freq);
      break;
    case RopeType::kYarn:
      scale_yarn(s, config.rope_theta, config.head_dim, out);
      break;
    case RopeType::kLongRope:
      scale_longrope(s, config.rope_theta, config.head_dim, max_context, out);
      break;
  }
  return out;
}

}  // namespace mx8
