// WeightLoader: the one place where checkpoint tensors become the layers of a model. Families ask
// it for layers by the names of their modules; it looks up how each is stored, reads it, quantises
// it where the plan says so, hands it to ops and lets the source's pages go. It is strict: a
// parameter that is missing, a tensor that nothing used, and parts of a fused layer that differ are
// errors with their names.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/quant_config.h"
#include "checkpoint/quant_weight.h"
#include "checkpoint/tensor_source.h"
#include "model/vocabulary.h"
#include "mx/block.h"
#include "ops/linear.h"
#include "runtime/device_caps.h"
#include "runtime/thread_pool.h"

namespace mx8 {

struct LoadOptions {
  DeviceCaps caps;
  Preference preference;
  int64_t max_step_tokens = 8192;            // the most rows of one forward()
  int64_t max_context = 0;                   // tokens; 0: max_position_embeddings
  ThreadPool* pool = nullptr;                // for quantisation at load; must be given
  ScaleRule scale_rule = ScaleRule::kRceil;  // of quantisation at load
  // Only ask the source for the tensors; the layers that come of it are empty (see list_tensors).
  bool list_only = false;
};

// One module of the checkpoint that becomes a part of a layer: `rows` of its output features.
struct WeightPart {
  std::string module;  // "model.layers.0.self_attn.q_proj"
  int64_t rows = 0;
};

// How a layer is built from its parts.
struct LayerSpec {
  std::string name;  // for messages; the module's where there is one part
  int64_t cols = 0;  // K
  ModuleKind kind = ModuleKind::kLinear;
  RowOrder order = RowOrder::kPlain;
  bool bias = false;  // every part has <module>.bias
};

class WeightLoader {
 public:
  WeightLoader(TensorSource& source, const QuantPlan& plan, const LoadOptions& options)
      : source_(source), plan_(plan), options_(options) {}

  Result<Linear> linear(const LayerSpec& spec, const std::vector<WeightPart>& parts);
  Result<Linear> linear(const LayerSpec& spec, int64_t rows) {
    return linear(spec, {{spec.name, rows}});
  }
  // One matrix an expert, stacked from `parts` with every "{}" replaced by the expert's number.
  Result<GroupedLinear> experts(const LayerSpec& spec, int experts,
                                const std::vector<WeightPart>& parts);
  // A vector in FP32: a norm's weight or a bias.
  Result<std::vector<float>> vector(const std::string& tensor, TensorKind kind, int64_t size);
  // model.embed_tokens and lm_head, which may be one matrix.
  Result<Vocabulary> vocabulary(int64_t vocab, int64_t hidden, bool tied);

  // Every tensor of the source must have been used by now.
  Result<void> finish();

  size_t resident_bytes() const { return resident_bytes_; }
  // "210 linears mxfp8 (w8a16) on cpu-avx2", a line for each scheme and backend; then what of the
  // checkpoint had no effect.
  std::vector<std::string> summary() const;

 private:
  // A stored weight, or what quantisation at load made of it.
  struct Ready {
    LoadedWeight stored;
    MxMatrix quantised;
    QuantView view() const;
  };

  Result<Ready> load(const std::string& module, ModuleKind kind, int64_t rows, int64_t cols);
  Result<void> check_agreement(const LayerSpec& spec, const std::vector<WeightPart>& parts,
                               std::span<const QuantView> views) const;
  LinearSpec linear_spec(const LayerSpec& spec) const;
  MxMatrix quantise(const QuantView& plain) const;
  bool stored_head_is_copy(int64_t vocab, int64_t hidden);
  void count(const LayerSpec& spec, const QuantScheme& scheme, const LinearPlan& plan, size_t parts,
             size_t bytes);
  void mark_known_extras();

  TensorSource& source_;
  const QuantPlan& plan_;
  LoadOptions options_;
  size_t resident_bytes_ = 0;
  std::map<std::string, size_t> counts_;  // by the summary line without its number
  std::vector<std::string> notes_;
};

}  // namespace mx8
