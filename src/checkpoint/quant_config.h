// QuantPlan: how each linear layer of a checkpoint is stored, whatever dialect its config speaks.
//
//   compressed-tensors   config.json quantization_config, config_groups     compressed_tensors.cc
//   ModelOpt             hf_quant_config.json, quantization_config, or both modelopt.cc
//   quant_method: mxfp8  quantization_config, 1x32 blocks                   mxfp8_plain.cc
//   AutoRound            quantization_config, data_type mx_fp               auto_round.cc
//
// Every other format is refused by name here, before any weight is read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/quant_rules.h"
#include "tensor/quant.h"

namespace mx8 {

// What a module is: lists by class ("Linear") and the defaults of quantisation at load go by it.
enum class ModuleKind : uint8_t {
  kLinear,  // attention and MLP projections, experts
  kRouter,  // gates of mixtures of experts and of shared experts
  kLmHead,
  kEmbedding,
  kNorm,
};

// The decision about one module. For plain modules the stored dtype (BF16, FP16, FP32) decides and
// scheme.code_type is only a place holder.
struct ModuleQuant {
  QuantScheme scheme;
  bool quantize_at_load = false;  // stored plain; `scheme` is what to make of it
  // True if the module was not named, only meant by its class or by a default. A router may then be
  // stored plain although the config would quantise it: producers count it among neither.
  bool by_default = false;
  std::string reason;  // the entry that decided: `ignore "lm_head"`
};

// How the checkpoint would have the KV cache stored.
enum class KvCacheScheme : uint8_t { kNone, kFp8 };

// Quantisation of a plain checkpoint at load (`--quantization mxfp8`). Entries are module names,
// parts of them ("mlp.down_proj") or "re:" patterns. All linears are quantised but for those in
// `ignore`; routers, lm_head and embeddings stay plain unless `include` names them.
struct OnlineQuant {
  bool enabled = false;
  ActivationScheme activations = ActivationScheme::kNone;
  std::vector<std::string> include;
  std::vector<std::string> ignore;
};

// Names of modules inside the model against names in the config: where a module's name begins with
// `checkpoint`, the name with `config` in its place is looked up too.
struct NamePrefix {
  std::string checkpoint;  // "language_model.model."
  std::string config;      // "model."
};

// What the reader of a dialect makes of a config.
struct QuantPlanParts {
  std::string dialect = "none";
  KvCacheScheme kv_cache = KvCacheScheme::kNone;
  QuantRules ignore;   // modules that stay plain
  QuantRules targets;  // modules with a scheme
  // Of linears that no rule matches; of routers too unless `online`, of lm_head if so said.
  std::optional<QuantScheme> default_scheme;
  bool default_covers_head = true;
  bool online = false;  // schemes are what to make of plain weights
};

// Not safe for use from several threads at once: it records which entries matched.
class QuantPlan {
 public:
  // Nothing is quantised.
  QuantPlan() = default;
  explicit QuantPlan(QuantPlanParts parts) : parts_(std::move(parts)) {}

  // "none", "compressed-tensors", "modelopt", "mxfp8", "auto-round", "online mxfp8"
  const std::string& dialect() const { return parts_.dialect; }
  bool quantised() const { return parts_.dialect != "none"; }
  KvCacheScheme kv_cache() const { return parts_.kv_cache; }

  // How a module is stored. `name` is the checkpoint's, without ".weight":
  // "model.layers.0.self_attn.q_proj".
  Result<ModuleQuant> module(std::string_view name, ModuleKind kind = ModuleKind::kLinear) const;
  // The one scheme of modules that run as one (q, k, v; gate, up; the experts of a layer); an error
  // naming two that differ.
  Result<ModuleQuant> fused(std::span<const std::string> names,
                            ModuleKind kind = ModuleKind::kLinear) const;

  // Entries that no module() call has matched so far, ready to print: `ignore "model.layer.0"`.
  std::vector<std::string> unmatched() const;

  void add_name_prefix(NamePrefix prefix) { prefixes_.push_back(std::move(prefix)); }

 private:
  ModuleNames names_of(std::string_view name, ModuleKind kind) const;

  QuantPlanParts parts_;
  std::vector<NamePrefix> prefixes_;
};

// The plan of a checkpoint: config.json's quantization_config (already in `config`) and
// `folder`/hf_quant_config.json where present. With `online.enabled`, the checkpoint must be plain.
Result<QuantPlan> read_quant_plan(const std::string& folder, const HfConfig& config,
                                  const OnlineQuant& online = {});
// The same from texts; "" for those that are absent.
Result<QuantPlan> parse_quant_plan(std::string_view quantization_config,
                                   const std::string& config_path, std::string_view side_file,
                                   const std::string& side_path, const OnlineQuant& online = {});

}  // namespace mx8
