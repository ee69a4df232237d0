#include "engine/engine.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace mx8 {

Result<std::unique_ptr<Engine>> Engine::create(Model& model, const Tokenizer* tokenizer,
                                               const EngineConfig& config, const Exec& exec) {
  std::unique_ptr<Engine> engine(new Engine(model, tokenizer, config));
  EngineConfig& c = engine->config_;
  const ModelShape& shape = model.shape();
  if (c.max_model_len == 0) c.max_model_len = shape.max_positions;
  if (c.max_model_len < 1 || c.max_model_len > shape.max_positions) {
    return invalid_argument(str_cat("--max-model-len is ", c.max_model_len,
                                    "; this model can be run with 1 to ", shape.max_positions));
  }
  const size_t page = KvPool::page_bytes(shape, c.kv_dtype, c.page_size);
  const int64_t pages_each = (c.max_model_len + c.page_size - 1) / c.page_size;
  KvPoolConfig pool;
  pool.dtype = c.kv_dtype;
  pool.page_size = c.page_size;
  pool.pages = c.kv_memory > 0 ? static_cast<int64_t>(c.kv_memory / page)
                               : pages_each * c.scheduler.max_sequences;
  MX8_TRY(KvPool created, KvPool::create(shape, pool));
  engine->pool_ = std::make_unique<KvPool>(std::move(created));
  engine->scheduler_ = std::make_unique<Scheduler>(c.scheduler, *engine->pool_);
  engine->runner_ = std::make_unique<ModelRunner>(model, *engine->pool_, exec);
  return engine;
}

Result<void> Engine::submit(Request request) {
  const int64_t vocab = model_.shape().vocab;
  MX8_RETURN_IF_ERROR(request.sampling.check(vocab));
  if (request.prompt.empty()) return invalid_argument("the prompt is empty: it holds no token");
  for (int32_t id : request.prompt) {
    if (id < 0 || id >= vocab) {
      return invalid_argument(
          str_cat("the prompt holds token ", id, "; this model's ids go from 0 to ", vocab - 1));
    }
  }
  if (active_.count(request.id) > 0) {
    return invalid_argument(str_cat("request id ", request.id, " is in use"));
  }
  if (tokenizer_ == nullptr && !request.sampling.stop.empty()) {
    return invalid_argument("stop strings need a tokenizer, and this engine has none");
  }
  const int64_t prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t room = config_.max_model_len - prompt;
  const int64_t wanted = request.sampling.max_tokens;
  if (room < 1 || wanted > room) {
    return invalid_argument(
        str_cat("the prompt has ", prompt, " tokens",
                wanted > 0 ? str_cat(" and max_tokens asks for ", wanted, " more") : std::string(),
                ", but the context holds ", config_.max_model_len, " tokens"));
  }
  const int64_t max_tokens = wanted > 0 ? wanted : std::min(room, pool_->token_capacity() - prompt);
  if (max_tokens < 1 || prompt + max_tokens > pool_->token_capacity()) {
    return resource_exhausted(str_cat("the request needs room for ",
                                      prompt + std::max<int64_t>(max_tokens, 1),
                                      " tokens, but the KV cache holds ", pool_->token_capacity(),
                                      "; raise --kv-memory or lower max_tokens"));
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->id = request.id;
  sequence->prompt_tokens = prompt;
  sequence->max_tokens = max_tokens;
  sequence->tokens = std::move(request.prompt);
  const SamplingParams& params = request.sampling;
  const uint64_t seed = params.seed.value_or(config_.seed ^ (request.id * 0x9E3779B97F4A7C15ull));
  Active active{sequence.get(),
                SamplerState(params, seed, sequence->tokens),
                nullptr,
                StopMatcher(params.stop, params.include_stop_text),
                {}};
  if (tokenizer_ != nullptr) {
    active.detokenizer = std::make_unique<Detokenizer>(*tokenizer_, params.skip_special_tokens);
  }
  if (params.min_tokens > 0) {
    active.banned_early = params.stop_token_ids;
    active.banned_early.insert(active.banned_early.end(), config_.eos_ids.begin(),
                               config_.eos_ids.end());
  }
  active_.emplace(sequence->id, std::move(active));
  prompt_tokens_ += prompt;
  scheduler_->admit(std::move(sequence));
  return {};
}

bool Engine::abort(uint64_t id) {
  if (active_.erase(id) == 0) return false;
  scheduler_->finish(id);
  return true;
}

bool Engine::is_end_token(const Active& active, int32_t token) const {
  const SamplingParams& p = active.sampler.params;
  auto holds = [token](const std::vector<int32_t>& ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  return holds(p.stop_token_ids) || (!p.ignore_eos && holds(config_.eos_ids));
}

void Engine::accept(Active& active, int32_t token, RequestOutput& output) {
  Sequence& s = *active.sequence;
  s.tokens.push_back(token);
  active.sampler.push(token);
  ++generated_tokens_;
  output.token_ids.push_back(token);
  const bool ended = is_end_token(active, token);
  if (ended) {
    output.finish = FinishReason::kStop;
  } else if (s.output_tokens() >= s.max_tokens) {
    output.finish = FinishReason::kLength;
  }
  if (active.detokenizer == nullptr) return;
  // The token that ends a text is not part of it.
  if (!ended) output.text += active.stop.push(active.detokenizer->push(token));
  if (output.finish != FinishReason::kNone && !active.stop.found()) {
    output.text += active.stop.push(active.detokenizer->flush());
    output.text += active.stop.flush();
  }
  if (active.stop.found()) {
    output.finish = FinishReason::kStop;
    output.stop_text = active.stop.matched();
  }
}

std::vector<RequestOutput> Engine::step(std::vector<Failure>* failed) {
  std::vector<RequestOutput> outputs;
  const ScheduledBatch& batch = scheduler_->schedule();
  if (batch.parts.empty()) return outputs;
  ++steps_;
  const Mat logits = runner_->execute(batch);
  std::vector<uint64_t> done;
  int64_t row = 0;
  for (const ScheduledSequence& part : batch.parts) {
    // Asked before the commit and the new token change the sequence's length.
    const bool samples = part.samples();
    scheduler_->commit(part);
    if (!samples) continue;
    const std::span<float> row_logits(logits.f32_row(row++), static_cast<size_t>(logits.cols));
    Active& active = active_.at(part.sequence->id);
    const SamplingParams& params = active.sampler.params;
    std::vector<float> raw;
    if (params.logprobs >= 0) raw.assign(row_logits.begin(), row_logits.end());
    const bool early = part.sequence->output_tokens() < params.min_tokens;
    const int32_t token = sampler_.sample(active.sampler, row_logits,
                                          early ? active.banned_early : std::vector<int32_t>{});
    RequestOutput output;
    output.id = part.sequence->id;
    if (token < 0) {
      done.push_back(output.id);
      failed->push_back({output.id, internal_error("the model's output holds no number to choose "
                                                   "from: every logit is NaN or minus infinity")});
      continue;
    }
    if (params.logprobs >= 0) {
      output.logprobs.push_back(Sampler::logprobs(raw, token, params.logprobs));
    }
    accept(active, token, output);
    if (output.finish != FinishReason::kNone) done.push_back(output.id);
    outputs.push_back(std::move(output));
  }
  for (uint64_t id : done) {
    active_.erase(id);
    scheduler_->finish(id);
  }
  return outputs;
}

EngineStats Engine::stats() const {
  EngineStats stats;
  stats.running = static_cast<int64_t>(scheduler_->running());
  stats.waiting = static_cast<int64_t>(scheduler_->waiting());
  stats.kv_pages = pool_->pages();
  stats.kv_pages_free = pool_->free_pages();
  stats.preemptions = scheduler_->preemptions();
  stats.steps = steps_;
  stats.prompt_tokens = prompt_tokens_;
  stats.generated_tokens = generated_tokens_;
  return stats;
}

}  // namespace mx8
