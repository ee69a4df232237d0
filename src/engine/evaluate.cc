#include "engine/evaluate.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "engine/model_runner.h"

namespace mx8 {

double EvalScore::perplexity() const { return std::exp(nll); }

namespace {

// Feeds one window at a time through a model, a chunk of rows per step.
class WindowRunner {
 public:
  static Result<std::unique_ptr<WindowRunner>> create(Model& model, const Exec& exec,
                                                      const EvalOptions& options) {
    if (options.context < 2 || options.context > model.shape().max_positions) {
      return invalid_argument(str_cat("--context is ", options.context, "; it must be 2 to ",
                                      model.shape().max_positions, " for this model"));
    }
    KvPoolConfig config;
    config.dtype = options.kv_dtype;
    config.pages = (options.context + config.page_size - 1) / config.page_size;
    MX8_TRY(KvPool pool, KvPool::create(model.shape(), config));
    std::unique_ptr<WindowRunner> runner(new WindowRunner(model, exec, std::move(pool)));
    MX8_CHECK(runner->blocks_.grow(runner->pool_, options.context));
    return runner;
  }

  // Logits [count, vocab] of window tokens first .. first + count - 1, whose predecessors were run.
  Mat run(std::span<const int32_t> window, int64_t first, int64_t count) {
    const int32_t q_start[] = {0, static_cast<int32_t>(count)};
    const int32_t context[] = {static_cast<int32_t>(first + count)};
    positions_.clear();
    slots_.clear();
    rows_.clear();
    for (int64_t t = first; t < first + count; ++t) {
      positions_.push_back(static_cast<int32_t>(t));
      slots_.push_back(blocks_.slot(t, pool_.page_size()));
      rows_.push_back(static_cast<int32_t>(t - first));
    }
    const int64_t vocab = model_.shape().vocab;
    logits_.resize(static_cast<size_t>(count * vocab));
    const Mat logits = Mat::f32(logits_.data(), count, vocab);
    ForwardBatch batch;
    batch.token_ids = window.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
    batch.positions = positions_;
    batch.attention = {q_start, context, blocks_.pages(), static_cast<int>(blocks_.pages().size()),
                       slots_};
    batch.logit_rows = rows_;
    batch.kv = pool_.layers();
    model_.forward(exec_, batch, logits);
    return logits;
  }

 private:
  WindowRunner(Model& model, const Exec& exec, KvPool pool)
      : model_(model), exec_(exec), pool_(std::move(pool)) {}

  Model& model_;
  Exec exec_;
  KvPool pool_;
  BlockTable blocks_;
  std::vector<int32_t> positions_, slots_, rows_;
  std::vector<float> logits_;
};

// Log of the sum of exponentials, and the place of the maximum.
struct LogSum {
  double value = 0;
  int64_t argmax = 0;
};

LogSum log_sum_exp(const float* logits, int64_t vocab) {
  LogSum out;
  float best = logits[0];
  for (int64_t v = 1; v < vocab; ++v) {
    if (logits[v] > best) {
      best = logits[v];
      out.argmax = v;
    }
  }
  double sum = 0;
  for (int64_t v = 0; v < vocab; ++v) sum += std::exp(static_cast<double>(logits[v]) - best);
  out.value = std::log(sum) + best;
  return out;
}

double kl_divergence(const float* p, double p_sum, const float* q, double q_sum, int64_t vocab) {
  double kl = 0;
  for (int64_t v = 0; v < vocab; ++v) {
    const double log_p = static_cast<double>(p[v]) - p_sum;
    const double log_q = static_cast<double>(q[v]) - q_sum;
    kl += std::exp(log_p) * (log_p - log_q);
  }
  return kl;
}

struct Totals {
  double nll = 0;
  double reference_nll = 0;
  double kl = 0;
  int64_t same = 0;
};

Error not_finite(int64_t window, int64_t position) {
  return internal_error(
      str_cat("the model's output is not finite at position ", position, " of window ", window));
}

}  // namespace

Result<EvalResult> evaluate(Model& model, const Exec& exec, Model* reference,
                            const Exec& reference_exec, std::span<const int32_t> ids,
                            const EvalOptions& options) {
  const int64_t vocab = model.shape().vocab;
  if (reference != nullptr && reference->shape().vocab != vocab) {
    return invalid_argument(str_cat("the models cannot be compared: vocabularies of ", vocab,
                                    " and ", reference->shape().vocab, " tokens"));
  }
  MX8_TRY(const auto runner, WindowRunner::create(model, exec, options));
  std::unique_ptr<WindowRunner> reference_runner;
  if (reference != nullptr) {
    MX8_TRY(reference_runner, WindowRunner::create(*reference, reference_exec, options));
  }
  int64_t windows = static_cast<int64_t>(ids.size()) / options.context;
  if (windows == 0) {
    return invalid_argument(str_cat("the text has ", ids.size(),
                                    " tokens, fewer than one window of ", options.context,
                                    "; lower --context or give more text"));
  }
  if (options.max_windows > 0) windows = std::min(windows, options.max_windows);

  Totals total;
  for (int64_t w = 0; w < windows; ++w) {
    const auto window =
        ids.subspan(static_cast<size_t>(w * options.context), static_cast<size_t>(options.context));
    for (int64_t first = 0; first < options.context; first += options.chunk) {
      const int64_t count = std::min(options.chunk, options.context - first);
      const Mat logits = runner->run(window, first, count);
      const Mat other = reference_runner ? reference_runner->run(window, first, count) : Mat{};
      for (int64_t r = 0; r < count && first + r + 1 < options.context; ++r) {
        const int32_t next = window[static_cast<size_t>(first + r + 1)];
        const float* q = logits.f32_row(r);
        const LogSum q_sum = log_sum_exp(q, vocab);
        if (!std::isfinite(q_sum.value)) return not_finite(w, first + r);
        total.nll += q_sum.value - q[next];
        if (reference_runner == nullptr) continue;
        const float* p = other.f32_row(r);
        const LogSum p_sum = log_sum_exp(p, vocab);
        if (!std::isfinite(p_sum.value)) return not_finite(w, first + r);
        total.reference_nll += p_sum.value - p[next];
        total.kl += kl_divergence(p, p_sum.value, q, q_sum.value, vocab);
        total.same += p_sum.argmax == q_sum.argmax;
      }
    }
    if (options.progress) options.progress(w + 1, windows);
  }

  EvalResult result;
  const int64_t tokens = windows * (options.context - 1);
  const double n = static_cast<double>(tokens);
  result.score = {windows, tokens, total.nll / n};
  if (reference != nullptr) {
    result.against = EvalComparison{{windows, tokens, total.reference_nll / n},
                                    total.kl / n,
                                    static_cast<double>(total.same) / n};
  }
  return result;
}

}  // namespace mx8
