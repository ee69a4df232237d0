// Engine: runs requests on a model. submit() queues one; each step() advances all of them by one
// forward pass and returns what became known. One thread calls everything.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/model_runner.h"
#include "engine/request.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/stop_matcher.h"
#include "text/tokenizer.h"

namespace mx8 {

struct EngineConfig {
  int64_t max_model_len = 0;  // tokens of one sequence, prompt and output; 0: the model's limit
  size_t kv_memory = 0;       // bytes; 0: room for max_sequences of max_model_len tokens
  DType kv_dtype = DType::kBF16;
  int page_size = 16;
  SchedulerConfig scheduler;
  std::vector<int32_t> eos_ids;  // any of them ends a sequence
  uint64_t seed = 0;             // of requests that bring none; request ids make them differ
};

struct EngineStats {
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t kv_pages = 0;
  int64_t kv_pages_free = 0;
  int64_t preemptions = 0;
  int64_t steps = 0;
  int64_t prompt_tokens = 0;  // of finished and unfinished requests, each counted once
  int64_t generated_tokens = 0;
};

class Engine {
 public:
  // `tokenizer` may be null: then there is no text, and stop strings are refused. The model, the
  // tokenizer and what exec points to outlive the engine.
  static Result<std::unique_ptr<Engine>> create(Model& model, const Tokenizer* tokenizer,
                                                const EngineConfig& config, const Exec& exec);

  // Queues a request. Refused, with the numbers, when it cannot ever run: bad parameters, an empty
  // prompt, ids outside the vocabulary, more tokens than max_model_len or than the KV pool holds.
  Result<void> submit(Request request);

  // Ends a request wherever it is. False if the id is unknown.
  bool abort(uint64_t id);

  bool idle() const { return scheduler_->idle(); }

  // One forward pass. Requests whose logits hold no number above minus infinity are ended with an
  // error in `failed` (id and message) and do not disturb the others.
  struct Failure {
    uint64_t id;
    Error error;
  };
  std::vector<RequestOutput> step(std::vector<Failure>* failed);

  EngineStats stats() const;
  int64_t max_model_len() const { return config_.max_model_len; }
  const KvPool& kv_pool() const { return *pool_; }

 private:
  // The text side of a running request.
  struct Active {
    Sequence* sequence;
    SamplerState sampler;
    std::unique_ptr<Detokenizer> detokenizer;
    StopMatcher stop;
    std::vector<int32_t> banned_early;  // end tokens, before min_tokens
  };

  Engine(Model& model, const Tokenizer* tokenizer, const EngineConfig& config)
      : model_(model), tokenizer_(tokenizer), config_(config) {}
  bool is_end_token(const Active& active, int32_t token) const;
  // Adds a chosen token to a request; fills its output.
  void accept(Active& active, int32_t token, RequestOutput& output);

  Model& model_;
  const Tokenizer* tokenizer_;
  EngineConfig config_;
  std::unique_ptr<KvPool> pool_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<ModelRunner> runner_;
  Sampler sampler_;
  std::unordered_map<uint64_t, Active> active_;
  int64_t steps_ = 0;
  int64_t prompt_tokens_ = 0;
  int64_t generated_tokens_ = 0;
};

}  // namespace mx8
