#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "base/clock.h"
#include "base/strings.h"
#include "common.h"

namespace mx8 {

namespace {

struct GenerateFlags {
  ModelFlags model;
  KvFlags kv;
  std::string prompt;
  std::string prompt_file;
  std::string system;
  bool raw = false;
  int64_t max_tokens = -1;
  SamplingParams sampling;
  CLI::Option* temperature = nullptr;
  CLI::Option* top_k = nullptr;
  CLI::Option* top_p = nullptr;
  CLI::Option* min_p = nullptr;
  CLI::Option* repetition_penalty = nullptr;
  CLI::Option* seed_option = nullptr;
  uint64_t seed = 0;
  bool json = false;
};

// What the user did not give comes from generation_config.json. Without a wish for sampling there,
// the answer is greedy.
SamplingParams resolve_sampling(const GenerateFlags& flags, const HfConfig& config) {
  SamplingParams p = flags.sampling;
  const GenerationDefaults& d = config.generation;
  const bool sample = d.do_sample.value_or(false);
  if (flags.temperature->count() == 0) {
    p.temperature = sample ? static_cast<float>(d.temperature.value_or(1.0)) : 0.0f;
  }
  if (flags.top_k->count() == 0 && sample) p.top_k = static_cast<int>(d.top_k.value_or(0));
  if (flags.top_p->count() == 0 && sample) p.top_p = static_cast<float>(d.top_p.value_or(1.0));
  if (flags.min_p->count() == 0 && sample) p.min_p = static_cast<float>(d.min_p.value_or(0.0));
  if (flags.repetition_penalty->count() == 0) {
    p.repetition_penalty = static_cast<float>(d.repetition_penalty.value_or(1.0));
  }
  p.max_tokens = flags.max_tokens;
  p.seed = flags.seed_option->count() > 0
               ? flags.seed
               : (uint64_t{std::random_device{}()} << 32) ^ std::random_device{}();
  return p;
}

Result<std::vector<int32_t>> encode_prompt(const GenerateFlags& flags, const OpenedModel& model,
                                           const std::string& prompt) {
  if (flags.raw) return model.tokenizer->encode(prompt, {.add_special_tokens = true});
  if (!model.chat_template) {
    return unsupported(str_cat(model.no_chat_template, "; pass --raw to complete plain text"));
  }
  ChatInput input;
  if (!flags.system.empty())
    input.messages.push_back({{"role", "system"}, {"content", flags.system}});
  input.messages.push_back({{"role", "user"}, {"content", prompt}});
  MX8_TRY(const std::vector<TextSpan> spans, model.chat_template->render(input));
  return model.tokenizer->encode_segments(spans);
}

std::string logprobs_json(const std::vector<TokenLogprobs>& all, const Tokenizer& tokenizer) {
  auto entry = [&](int32_t id, float logprob) {
    return str_cat("{\"id\": ", id, ", \"token\": ", json_string(tokenizer.decode({{id}}, false)),
                   ", \"logprob\": ", json_number(logprob));
  };
  std::string out = "[";
  for (const TokenLogprobs& lp : all) {
    out += (out.size() > 1 ? ", " : "") + entry(lp.id, lp.logprob) + ", \"top\": [";
    for (size_t i = 0; i < lp.top.size(); ++i) {
      out += (i > 0 ? ", " : "") + entry(lp.top[i].first, lp.top[i].second) + "}";
    }
    out += "]}";
  }
  return out + "]";
}

struct Answer {
  std::string text;
  std::vector<int32_t> ids;
  std::vector<TokenLogprobs> logprobs;
  FinishReason finish = FinishReason::kNone;
  double first_token_s = 0;
  double total_s = 0;
};

Result<Answer> run_request(Engine& engine, Request request, bool stream) {
  Answer answer;
  const double start = now_seconds();
  MX8_RETURN_IF_ERROR(engine.submit(std::move(request)));
  std::vector<Engine::Failure> failed;
  while (!engine.idle()) {
    for (RequestOutput& o : engine.step(&failed)) {
      if (answer.ids.empty()) answer.first_token_s = now_seconds() - start;
      answer.ids.insert(answer.ids.end(), o.token_ids.begin(), o.token_ids.end());
      answer.text += o.text;
      for (TokenLogprobs& lp : o.logprobs) answer.logprobs.push_back(std::move(lp));
      answer.finish = o.finish;
      if (stream) MX8_RETURN_IF_ERROR(write_stdout(o.text));
    }
    if (!failed.empty()) return failed.front().error;
  }
  answer.total_s = now_seconds() - start;
  return answer;
}

Result<void> generate(const GenerateFlags& flags) {
  std::string prompt = flags.prompt;
  if (!flags.prompt_file.empty()) {
    MX8_TRY(prompt, read_prompt_file(flags.prompt_file));
  }
  MX8_RETURN_IF_ERROR(
      check_utf8(prompt, flags.prompt_file.empty() ? "the prompt" : flags.prompt_file));
  EngineConfig config;
  config.scheduler.max_sequences = 1;
  MX8_TRY(OpenedModel model,
          flags.model.open({.max_step_tokens = config.scheduler.max_tokens_per_step,
                            .max_model_len = flags.kv.max_model_len,
                            .default_model_len = kDefaultModelLen,
                            .quiet = flags.json}));
  MX8_RETURN_IF_ERROR(flags.kv.apply(config, model));
  MX8_TRY(std::unique_ptr<Engine> engine,
          Engine::create(*model.model, &*model.tokenizer, config, model.exec()));
  Request request;
  MX8_TRY(request.prompt, encode_prompt(flags, model, prompt));
  request.sampling = resolve_sampling(flags, model.config);
  const size_t prompt_tokens = request.prompt.size();
  MX8_TRY(const Answer answer, run_request(*engine, std::move(request), !flags.json));

  const double decode_s = answer.total_s - answer.first_token_s;
  const double prompt_rate = static_cast<double>(prompt_tokens) / answer.first_token_s;
  const double decode_rate =
      answer.ids.size() > 1 ? static_cast<double>(answer.ids.size() - 1) / decode_s : NAN;
  if (!flags.json) {
    if (answer.text.empty() || answer.text.back() != '\n') {
      MX8_RETURN_IF_ERROR(write_stdout("\n"));
    }
    std::fprintf(stderr, "%zu prompt tokens at %.1f/s, %zu generated at %.1f/s, ended by %s\n",
                 prompt_tokens, prompt_rate, answer.ids.size(),
                 std::isnan(decode_rate) ? 0 : decode_rate,
                 answer.finish == FinishReason::kStop ? "the model" : "the token limit");
    return {};
  }
  std::string ids;
  for (int32_t id : answer.ids) ids += str_cat(ids.empty() ? "" : ", ", id);
  std::printf(
      "{\"text\": %s, \"finish_reason\": \"%s\", \"prompt_tokens\": %zu, "
      "\"completion_tokens\": %zu, \"token_ids\": [%s], \"load_s\": %s, \"first_token_s\": %s, "
      "\"prompt_tokens_per_s\": %s, \"decode_tokens_per_s\": %s, \"peak_rss_bytes\": %llu",
      json_string(answer.text).c_str(), std::string(finish_reason_name(answer.finish)).c_str(),
      prompt_tokens, answer.ids.size(), ids.c_str(), json_number(model.load_seconds).c_str(),
      json_number(answer.first_token_s).c_str(), json_number(prompt_rate).c_str(),
      json_number(decode_rate).c_str(), static_cast<unsigned long long>(peak_rss_bytes()));
  if (flags.sampling.logprobs >= 0) {
    std::printf(", \"logprobs\": %s", logprobs_json(answer.logprobs, *model.tokenizer).c_str());
  }
  std::printf("}\n");
  return {};
}

}  // namespace

VerbRunner add_generate(CLI::App& app) {
  auto f = std::make_shared<GenerateFlags>();
  f->model.add_to(app);
  auto* prompt = app.add_option("--prompt", f->prompt, "The prompt");
  auto* file = app.add_option("--prompt-file", f->prompt_file, "Read the prompt from a file");
  prompt->excludes(file);
  app.add_option("--system", f->system, "A system message before the prompt");
  app.add_flag("--raw", f->raw, "Complete the text itself, without the chat template");
  app.add_option("--max-tokens", f->max_tokens, "Tokens to generate at most; without it, what fits")
      ->check(CLI::PositiveNumber);
  SamplingParams& s = f->sampling;
  f->temperature = app.add_option("--temperature", s.temperature, "0 takes the likeliest token");
  f->top_k = app.add_option("--top-k", s.top_k, "Draw from the k likeliest tokens");
  f->top_p = app.add_option("--top-p", s.top_p, "Draw from the likeliest tokens that make up p");
  f->min_p = app.add_option("--min-p", s.min_p, "Drop tokens below this share of the likeliest");
  f->repetition_penalty = app.add_option("--repetition-penalty", s.repetition_penalty,
                                         "Above 1: tokens that occurred become less likely");
  app.add_option("--presence-penalty", s.presence_penalty, "Subtracted once a token was generated");
  app.add_option("--frequency-penalty", s.frequency_penalty, "Subtracted each time it was");
  app.add_option("--min-tokens", s.min_tokens, "No end before this many tokens");
  app.add_flag("--ignore-eos", s.ignore_eos, "Go on after the end-of-sequence token");
  app.add_option("--stop", s.stop, "End at this text; may be given several times");
  app.add_option("--logprobs", s.logprobs,
                 "With --json: log-probabilities of the N likeliest tokens");
  f->seed_option = app.add_option("--seed", f->seed, "Seed of the draws");
  f->kv.add_to(app);
  app.add_flag("--json", f->json, "One JSON object instead of text");
  return [f, prompt, file]() -> Result<void> {
    if (prompt->count() + file->count() == 0) {
      return invalid_argument("there is no prompt; pass --prompt or --prompt-file");
    }
    return generate(*f);
  };
}

}  // namespace mx8
