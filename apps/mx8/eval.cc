#include <cmath>
#include <cstdio>

#include "base/clock.h"
#include "base/strings.h"
#include "common.h"
#include "engine/evaluate.h"

namespace mx8 {

namespace {

struct EvalFlags {
  ModelFlags model;
  std::string text;
  std::string against;
  std::string kv_dtype = "bf16";
  EvalOptions options;
  bool json = false;
};

// UTF-8 bytes of the tokens that are scored: all but the first of each window.
int64_t scored_bytes(const Tokenizer& tokenizer, std::span<const int32_t> ids, int64_t context,
                     int64_t windows) {
  int64_t bytes = 0;
  for (int64_t w = 0; w < windows; ++w) {
    const auto window = ids.subspan(static_cast<size_t>(w * context), static_cast<size_t>(context));
    // The first token's text is taken away from the window's, so that no character is cut apart.
    bytes += static_cast<int64_t>(tokenizer.decode(window, false).size()) -
             static_cast<int64_t>(tokenizer.decode(window.first(1), false).size());
  }
  return bytes;
}

Result<void> run(EvalFlags& f) {
  MX8_TRY(const std::string text, read_prompt_file(f.text));
  MX8_RETURN_IF_ERROR(check_utf8(text, f.text));
  f.options.kv_dtype = f.kv_dtype == "f32" ? DType::kF32 : DType::kBF16;
  ModelFlags::Wants wants = {
      .max_step_tokens = f.options.chunk, .max_model_len = f.options.context, .quiet = f.json};
  MX8_TRY(OpenedModel model, f.model.open(wants));
  std::optional<OpenedModel> other;
  if (!f.against.empty()) {
    ModelFlags flags;
    flags.model = f.against;
    flags.load = f.model.load;
    flags.threads = f.model.threads;
    wants.text = false;
    MX8_TRY(OpenedModel opened, flags.open(wants));
    other.emplace(std::move(opened));
  }
  const std::vector<int32_t> ids = model.tokenizer->encode(text, {.add_special_tokens = false});
  if (!f.json) {
    f.options.progress = [](int64_t done, int64_t total) {
      std::fprintf(stderr, "window %lld of %lld\n", static_cast<long long>(done),
                   static_cast<long long>(total));
    };
  }
  const double start = now_seconds();
  MX8_TRY(const EvalResult result,
          evaluate(*model.model, model.exec(), other ? other->model.get() : nullptr,
                   other ? other->exec() : Exec{}, ids, f.options));
  const double seconds = now_seconds() - start;
  const EvalScore& score = result.score;
  const int64_t bytes = scored_bytes(*model.tokenizer, ids, f.options.context, score.windows);
  const double bits =
      score.nll * static_cast<double>(score.tokens) / std::log(2.0) / static_cast<double>(bytes);
  if (f.json) {
    std::printf(
        "{\"perplexity\": %s, \"bits_per_byte\": %s, \"tokens\": %lld, \"windows\": %lld, "
        "\"context\": %lld, \"seconds\": %s",
        json_number(score.perplexity()).c_str(), json_number(bits).c_str(),
        static_cast<long long>(score.tokens), static_cast<long long>(score.windows),
        static_cast<long long>(f.options.context), json_number(seconds).c_str());
    if (result.against) {
      std::printf(", \"kl\": %s, \"top1\": %s, \"against\": {\"perplexity\": %s}",
                  json_number(result.against->kl).c_str(),
                  json_number(result.against->top1).c_str(),
                  json_number(result.against->reference.perplexity()).c_str());
    }
    std::printf("}\n");
    return {};
  }
  std::printf(
      "perplexity     %.4f\nbits per byte  %.4f\nscored         %lld tokens in %lld windows of "
      "%lld\n",
      score.perplexity(), bits, static_cast<long long>(score.tokens),
      static_cast<long long>(score.windows), static_cast<long long>(f.options.context));
  if (result.against) {
    std::printf("against        perplexity %.4f, KL %.5f, same top token %.2f %%\n",
                result.against->reference.perplexity(), result.against->kl,
                result.against->top1 * 100);
  }
  return {};
}

}  // namespace

VerbRunner add_eval(CLI::App& app) {
  auto f = std::make_shared<EvalFlags>();
  f->model.add_to(app);
  app.add_option("--text", f->text, "UTF-8 text file; read whole, without special tokens")
      ->required();
  app.add_option("--context", f->options.context, "Tokens of a window")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--windows", f->options.max_windows, "Score only the first windows")
      ->check(CLI::PositiveNumber);
  app.add_option("--against", f->against,
                 "Compare with this model: KL(other || model), top-1 agreement");
  app.add_option("--kv-cache-dtype", f->kv_dtype, "bf16 or f32")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  app.add_flag("--json", f->json, "Machine-readable");
  return [f]() -> Result<void> { return run(*f); };
}

}  // namespace mx8
