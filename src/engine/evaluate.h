// Perplexity of a token sequence under a model, and the divergence of one model from another.
//
// The ids are cut into windows of `context` tokens without overlap; a last partial window is
// dropped. Each window is a sequence of its own, scored from its second token. Means are over all
// scored positions; logarithms are natural.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/kv_pool.h"
#include "model/model.h"
#include "runtime/exec.h"

namespace mx8 {

struct EvalOptions {
  int64_t context = 512;
  int64_t max_windows = 0;  // 0: all
  DType kv_dtype = DType::kBF16;
  int64_t chunk = 64;                                         // rows of logits held at once
  std::function<void(int64_t done, int64_t total)> progress;  // windows
};

struct EvalScore {
  int64_t windows = 0;
  int64_t tokens = 0;  // scored
  double nll = 0;      // mean negative log-likelihood
  double perplexity() const;
};

// How a model's predictions differ from those of a reference, at the same positions.
struct EvalComparison {
  EvalScore reference;
  double kl = 0;    // mean of KL(reference || model)
  double top1 = 0;  // share of positions with the same most likely token
};

struct EvalResult {
  EvalScore score;
  std::optional<EvalComparison> against;
};

// `reference` may be null. Both models must have the same vocabulary size. Errors: fewer ids than
// one window, a context that a model cannot take, logits that are not finite (with the position).
Result<EvalResult> evaluate(Model& model, const Exec& exec, Model* reference,
                            const Exec& reference_exec, std::span<const int32_t> ids,
                            const EvalOptions& options);

}  // namespace mx8
