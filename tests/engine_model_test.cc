// The engine on real kernels: whatever shares the batch, however the prompt was cut, and through
// preemption, a sequence gets the tokens and the log-probabilities that it gets alone, bit for bit.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/strings.h"
#include "engine/engine.h"
#include "engine/open_model.h"

namespace mx8 {
namespace {

struct Trace {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  bool operator==(const Trace&) const = default;
};

OpenedModel open_tiny(const std::string& name, int threads) {
  OpenOptions options;
  options.text = false;
  options.threads = threads;
  return open_model(MX8_SOURCE_DIR "/tests/data/tiny/" + name, options).value();
}

std::vector<Request> random_requests(std::mt19937& rng, int64_t vocab) {
  std::vector<Request> requests;
  for (uint64_t id = 0; id < 32; ++id) {
    Request r;
    r.id = id;
    r.prompt.resize(1 + rng() % 50);
    for (auto& t : r.prompt) t = static_cast<int32_t>(rng() % static_cast<uint64_t>(vocab));
    r.sampling.max_tokens = static_cast<int64_t>(1 + rng() % 24);
    r.sampling.temperature = id % 4 == 3 ? 1.0f : 0.0f;
    r.sampling.seed = id;
    r.sampling.logprobs = 0;
    r.sampling.ignore_eos = true;
    requests.push_back(r);
  }
  return requests;
}

void collect(Engine& engine, std::map<uint64_t, Trace>& traces) {
  std::vector<Engine::Failure> failed;
  for (const RequestOutput& o : engine.step(&failed)) {
    Trace& t = traces[o.id];
    t.tokens.insert(t.tokens.end(), o.token_ids.begin(), o.token_ids.end());
    for (const TokenLogprobs& lp : o.logprobs) t.logprobs.push_back(lp.logprob);
  }
  ASSERT_TRUE(failed.empty());
}

std::map<uint64_t, Trace> run_alone(OpenedModel& m, const std::vector<Request>& requests,
                                    DType kv) {
  EngineConfig config;
  config.max_model_len = 96;
  config.kv_dtype = kv;
  config.scheduler.max_sequences = 1;
  auto engine = Engine::create(*m.model, nullptr, config, m.exec()).value();
  std::map<uint64_t, Trace> traces;
  for (const Request& r : requests) {
    EXPECT_TRUE(engine->submit(r).ok());
    while (!engine->idle()) collect(*engine, traces);
  }
  return traces;
}

class EngineOnModel : public testing::TestWithParam<const char*> {};

TEST_P(EngineOnModel, BatchesChunksAndPreemptionChangeNoBit) {
  OpenedModel one_thread = open_tiny(GetParam(), 1);
  OpenedModel two_threads = open_tiny(GetParam(), 2);
  int64_t preemptions = 0;
  for (DType kv : {DType::kBF16, DType::kF32}) {
    std::mt19937 rng(kv == DType::kF32 ? 11 : 12);
    const std::vector<Request> requests = random_requests(rng, one_thread.model->shape().vocab);
    const auto want = run_alone(one_thread, requests, kv);
    EngineConfig config;
    config.max_model_len = 96;
    config.kv_dtype = kv;
    config.scheduler = {static_cast<int64_t>(20 + rng() % 20), static_cast<int64_t>(3 + rng() % 20),
                        10};
    config.kv_memory = KvPool::page_bytes(two_threads.model->shape(), kv, config.page_size) * 14;
    auto engine = Engine::create(*two_threads.model, nullptr, config, two_threads.exec()).value();
    std::map<uint64_t, Trace> got;
    size_t next = 0;
    while (next < requests.size() || !engine->idle()) {
      while (next < requests.size() && rng() % 3 == 0) {
        ASSERT_TRUE(engine->submit(requests[next++]).ok());
      }
      collect(*engine, got);
    }
    for (const Request& r : requests) EXPECT_EQ(got[r.id], want.at(r.id)) << r.id;
    EXPECT_EQ(engine->stats().kv_pages_free, engine->stats().kv_pages);
    preemptions += engine->stats().preemptions;

    Request large = requests[0];
    large.prompt.resize(90, 1);
    large.sampling.max_tokens = 6;
    EngineConfig small = config;
    small.kv_memory = KvPool::page_bytes(two_threads.model->shape(), kv, config.page_size) * 5;
    auto tight = Engine::create(*two_threads.model, nullptr, small, two_threads.exec()).value();
    EXPECT_EQ(tight->submit(large).error().code, ErrorCode::kResourceExhausted);
  }
  EXPECT_GT(preemptions, 0);
}

// Dense with grouped-query attention, a window shorter than the texts, routed experts with and
// without a shared one; quantised and plain.
INSTANTIATE_TEST_SUITE_P(Tiny, EngineOnModel,
                         testing::Values("llama", "llama_mxfp8", "mistral_window", "qwen3_mxfp8",
                                         "qwen2_moe_mxfp8", "mixtral_mxfp8"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace mx8
