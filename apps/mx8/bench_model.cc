// mx8 bench model: prompt and decode rates of a model, through the engine.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "base/clock.h"
#include "base/strings.h"
#include "bench_verbs.h"

namespace mx8 {

namespace {

struct BenchModelFlags {
  ModelFlags model;
  KvFlags kv;
  int64_t prompt = 256;
  int64_t generate = 64;
  int64_t batch = 1;
  int reps = 5;
  bool json = false;
};

struct Rep {
  double prompt_rate = 0;  // tokens/s
  double decode_rate = 0;  // tokens/s, all sequences together
  double first_token_s = 0;
};

struct Spread {
  double min = 0, median = 0, max = 0;
};

Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {values.front(), (values[(n - 1) / 2] + values[n / 2]) / 2, values.back()};
}

// Random prompts, all end tokens ignored: every repetition does the same amount of work.
Result<Rep> run_once(Engine& engine, const BenchModelFlags& f, int64_t vocab, uint32_t seed) {
  std::mt19937 rng(seed);
  for (int64_t b = 0; b < f.batch; ++b) {
    Request request;
    request.id = static_cast<uint64_t>(b) + 1;
    for (int64_t t = 0; t < f.prompt; ++t) {
      request.prompt.push_back(static_cast<int32_t>(rng() % static_cast<uint64_t>(vocab)));
    }
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = f.generate;
    MX8_RETURN_IF_ERROR(engine.submit(std::move(request)));
  }
  std::vector<Engine::Failure> failed;
  int64_t started = 0, tokens = 0;
  Rep rep;
  const double start = now_seconds();
  double prompts_done = start;
  std::vector<bool> seen(static_cast<size_t>(f.batch) + 1);
  int64_t tokens_at_start = 0;
  while (!engine.idle()) {
    const std::vector<RequestOutput> outputs = engine.step(&failed);
    if (!failed.empty()) return failed.front().error;
    const double now = now_seconds();
    for (const RequestOutput& o : outputs) {
      tokens += static_cast<int64_t>(o.token_ids.size());
      if (seen[o.id]) continue;
      seen[o.id] = true;
      if (started == 0) rep.first_token_s = now - start;
      if (++started == f.batch) {
        prompts_done = now;
        tokens_at_start = tokens;
      }
    }
  }
  const double end = now_seconds();
  rep.prompt_rate = static_cast<double>(f.prompt * f.batch) / (prompts_done - start);
  rep.decode_rate = tokens > tokens_at_start
                        ? static_cast<double>(tokens - tokens_at_start) / (end - prompts_done)
                        : NAN;
  return rep;
}

Result<void> run(const BenchModelFlags& f) {
  EngineConfig config;
  config.scheduler.max_sequences = static_cast<int>(f.batch);
  MX8_TRY(OpenedModel model, f.model.open({.max_step_tokens = config.scheduler.max_tokens_per_step,
                                           .max_model_len = f.kv.max_model_len,
                                           .default_model_len = f.prompt + f.generate,
                                           .text = false,
                                           .quiet = f.json}));
  MX8_RETURN_IF_ERROR(f.kv.apply(config, model));
  MX8_TRY(std::unique_ptr<Engine> engine,
          Engine::create(*model.model, nullptr, config, model.exec()));
  const int64_t vocab = model.model->shape().vocab;
  std::vector<double> prompt, decode, first;
  MX8_TRY(const Rep warm_up, run_once(*engine, f, vocab, 0));
  (void)warm_up;
  for (int r = 0; r < f.reps; ++r) {
    MX8_TRY(const Rep rep, run_once(*engine, f, vocab, static_cast<uint32_t>(r) + 1));
    prompt.push_back(rep.prompt_rate);
    decode.push_back(rep.decode_rate);
    first.push_back(rep.first_token_s);
  }
  const Spread p = spread(prompt), d = spread(decode), t = spread(first);
  if (f.json) {
    auto three = [](const Spread& s) {
      return str_cat("[", json_number(s.min), ", ", json_number(s.median), ", ", json_number(s.max),
                     "]");
    };
    std::printf(
        "{\"prompt_tokens_per_s\": %s, \"decode_tokens_per_s\": %s, \"first_token_s\": %s, "
        "\"peak_rss_bytes\": %llu, \"prompt\": %lld, \"generate\": %lld, \"batch\": %lld, "
        "\"reps\": %d, \"threads\": %d, \"prompt_spread\": %s, \"decode_spread\": %s}\n",
        json_number(p.median).c_str(), json_number(d.median).c_str(), json_number(t.median).c_str(),
        static_cast<unsigned long long>(peak_rss_bytes()), static_cast<long long>(f.prompt),
        static_cast<long long>(f.generate), static_cast<long long>(f.batch), f.reps,
        model.pool->size(), three(p).c_str(), three(d).c_str());
    return {};
  }
  std::printf("prompt   %8.1f tokens/s  (%.1f to %.1f)\n", p.median, p.min, p.max);
  std::printf("decode   %8.1f tokens/s  (%.1f to %.1f)\n", d.median, d.min, d.max);
  std::printf("first    %8.4f s\npeak RSS %s\n", t.median, format_bytes(peak_rss_bytes()).c_str());
  return {};
}

}  // namespace

VerbRunner add_bench_model(CLI::App& app) {
  auto f = std::make_shared<BenchModelFlags>();
  f->model.add_to(app);
  app.add_option("--prompt", f->prompt, "Prompt tokens of a sequence")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--generate", f->generate, "Tokens to generate")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch", f->batch, "Sequences at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--reps", f->reps, "Repetitions after one to warm up")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  f->kv.add_to(app);
  app.add_flag("--json", f->json, "Machine-readable");
  return [f]() -> Result<void> { return run(*f); };
}

}  // namespace mx8
