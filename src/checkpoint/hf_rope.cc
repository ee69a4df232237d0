#include "checkpoint/hf_rope.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/strings.h"
#include "checkpoint/json.h"

namespace mx8 {

namespace {

using json::Fields;
using json::Json;

constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;
constexpr int64_t kMaxPositions = int64_t{1} << 40;

struct RopeTypeName {
  std::string_view name;
  RopeType type;
};

constexpr RopeTypeName kTypes[] = {
    {"default", RopeType::kDefault}, {"linear", RopeType::kLinear},
    {"dynamic", RopeType::kDynamic}, {"llama3", RopeType::kLlama3},
    {"yarn", RopeType::kYarn},       {"longrope", RopeType::kLongRope},
    {"su", RopeType::kLongRope},  // the older name
};

std::string known_types() {
  std::vector<std::string> names;
  for (const RopeTypeName& row : kTypes) names.emplace_back(row.name);
  return join(names, ", ");
}

// transformers 5 may nest one object for each layer type; they must not differ.
Result<std::optional<Fields>> flat_parameters(const Fields& config) {
  MX8_TRY(const std::optional<Fields> outer, config.object("rope_parameters"));
  if (!outer || outer->json().empty() || !outer->json().begin()->is_object()) return outer;
  const std::string first = outer->json().begin().key();
  for (const auto& [key, value] : outer->json().items()) {
    if (value != outer->json().at(first)) {
      return unsupported(str_cat(config.path(), ": \"rope_parameters\" differ between \"", first,
                                 "\" and \"", key,
                                 "\" layers; mx8 runs one rotary embedding for all layers"));
    }
  }
  return outer->object(first);
}

// Fields that some type has; those of other types than the one in use are harmless left-overs.
constexpr std::string_view kFields[] = {"type",
                                        "rope_type",
                                        "rope_theta",
                                        "partial_rotary_factor",
                                        "factor",
                                        "finetuned",
                                        "original_max_position_embeddings",
                                        "low_freq_factor",
                                        "high_freq_factor",
                                        "beta_fast",
                                        "beta_slow",
                                        "truncate",
                                        "attention_factor",
                                        "mscale",
                                        "mscale_all_dim",
                                        "short_factor",
                                        "long_factor"};

// A field that is not read could change every number, so an unknown one is refused.
Result<void> check_fields(const Fields& f) {
  for (const auto& [key, value] : f.json().items()) {
    if (value.is_null()) continue;
    if (std::find(std::begin(kFields), std::end(kFields), key) == std::end(kFields)) {
      return unsupported(str_cat(f.path(), ": \"", f.name(key), "\" is ", json::shown(value),
                                 "; mx8 does not know this field of rotary embeddings"));
    }
  }
  return {};
}

Result<RopeType> read_type(const Fields& f) {
  std::string name = "default";
  MX8_RETURN_IF_ERROR(f.string("type", name));
  MX8_RETURN_IF_ERROR(f.string("rope_type", name));
  for (const RopeTypeName& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return unsupported(str_cat(f.path(), ": \"", f.name("rope_type"), "\" is \"", name,
                             "\", which mx8 does not know; known: ", known_types()));
}

Result<void> read_factors(const Fields& f, std::string_view key, int64_t count,
                          std::vector<double>& out) {
  const std::string must = str_cat("a list of head_dim / 2 = ", count, " positive numbers");
  if (f.find(key) == nullptr) return f.missing(key, must);
  MX8_RETURN_IF_ERROR(f.numbers(key, 1e-6, kMaxFactor, out));
  if (static_cast<int64_t>(out.size()) != count) return f.wrong(key, must);
  return {};
}

Result<void> read_yarn(const Fields& f, RopeScaling& r) {
  MX8_RETURN_IF_ERROR(f.number("beta_fast", 0, kMaxFactor, r.beta_fast));
  MX8_RETURN_IF_ERROR(f.number("beta_slow", 0, kMaxFactor, r.beta_slow));
  MX8_RETURN_IF_ERROR(f.boolean("truncate", r.truncate));
  MX8_RETURN_IF_ERROR(f.number("mscale", 0, kMaxFactor, r.mscale));
  return f.number("mscale_all_dim", 0, kMaxFactor, r.mscale_all_dim);
}

Result<void> read_llama3(const Fields& f, RopeScaling& r) {
  MX8_RETURN_IF_ERROR(f.required_number("low_freq_factor", 1e-6, kMaxFactor, r.low_freq_factor));
  MX8_RETURN_IF_ERROR(f.required_number("high_freq_factor", 1e-6, kMaxFactor, r.high_freq_factor));
  if (r.high_freq_factor <= r.low_freq_factor) {
    return f.wrong("high_freq_factor", str_cat("above low_freq_factor, ", r.low_freq_factor));
  }
  return {};
}

Result<void> read_scaling(const Fields& f, HfConfig& out) {
  RopeScaling& r = out.rope_scaling;
  MX8_TRY(r.type, read_type(f));
  MX8_RETURN_IF_ERROR(check_fields(f));
  if (r.type == RopeType::kDefault) return {};
  MX8_RETURN_IF_ERROR(f.integer("original_max_position_embeddings", 1, kMaxPositions,
                                r.original_max_position_embeddings));
  if (r.type == RopeType::kLongRope) {
    r.factor = static_cast<double>(out.max_position_embeddings) /
               static_cast<double>(r.original_max_position_embeddings);
    MX8_RETURN_IF_ERROR(f.number("factor", 1, kMaxFactor, r.factor));
  } else {
    MX8_RETURN_IF_ERROR(f.required_number("factor", 1, kMaxFactor, r.factor));
  }
  MX8_RETURN_IF_ERROR(f.number("attention_factor", 0, kMaxFactor, r.attention_factor));
  if (r.type == RopeType::kLlama3) return read_llama3(f, r);
  if (r.type == RopeType::kYarn) return read_yarn(f, r);
  if (r.type != RopeType::kLongRope) return {};
  MX8_RETURN_IF_ERROR(read_factors(f, "short_factor", out.head_dim / 2, r.short_factor));
  return read_factors(f, "long_factor", out.head_dim / 2, r.long_factor);
}

}  // namespace

std::string_view rope_type_name(RopeType type) {
  for (const RopeTypeName& row : kTypes) {
    if (row.type == type) return row.name;
  }
  return "default";
}

Result<void> read_rope(const Fields& config, HfConfig& out) {
  MX8_RETURN_IF_ERROR(config.number("rope_theta", 1, kMaxTheta, out.rope_theta));
  MX8_RETURN_IF_ERROR(config.number("partial_rotary_factor", 1e-6, 1, out.partial_rotary_factor));
  RopeScaling& r = out.rope_scaling;
  r.original_max_position_embeddings = out.max_position_embeddings;
  MX8_RETURN_IF_ERROR(config.integer("original_max_position_embeddings", 1, kMaxPositions,
                                     r.original_max_position_embeddings));
  MX8_TRY(const std::optional<Fields> parameters, flat_parameters(config));
  MX8_TRY(const std::optional<Fields> scaling, config.object("rope_scaling"));
  if (parameters && scaling && parameters->json() != scaling->json()) {
    MX8_TRY(const RopeType a, read_type(*parameters));
    MX8_TRY(const RopeType b, read_type(*scaling));
    if (a != b) {
      return invalid_argument(str_cat(config.path(), ": \"rope_parameters\" has type ",
                                      rope_type_name(a), " and \"rope_scaling\" ",
                                      rope_type_name(b), "; they must agree"));
    }
  }
  if (parameters) {
    MX8_RETURN_IF_ERROR(parameters->number("rope_theta", 1, kMaxTheta, out.rope_theta));
    MX8_RETURN_IF_ERROR(
        parameters->number("partial_rotary_factor", 1e-6, 1, out.partial_rotary_factor));
    return read_scaling(*parameters, out);
  }
  return scaling ? read_scaling(*scaling, out) : Result<void>();
}

}  // namespace mx8
