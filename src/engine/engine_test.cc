#include "engine/engine.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/fake_model.h"

namespace mx8 {
namespace {

EngineConfig config() {
  EngineConfig c;
  c.max_model_len = 128;
  c.kv_dtype = DType::kF32;
  c.page_size = 4;
  return c;
}

Request request(uint64_t id, std::vector<int32_t> prompt, int64_t max_tokens,
                float temperature = 0) {
  Request r;
  r.id = id;
  r.prompt = std::move(prompt);
  r.sampling.max_tokens = max_tokens;
  r.sampling.temperature = temperature;
  return r;
}

struct Finished {
  std::vector<int32_t> tokens;
  FinishReason reason = FinishReason::kNone;
};

// Steps until idle and gathers what each request got.
std::map<uint64_t, Finished> drain(Engine& engine) {
  std::map<uint64_t, Finished> out;
  std::vector<Engine::Failure> failed;
  for (int i = 0; i < 100000 && !engine.idle(); ++i) {
    for (const RequestOutput& o : engine.step(&failed)) {
      auto& f = out[o.id];
      f.tokens.insert(f.tokens.end(), o.token_ids.begin(), o.token_ids.end());
      if (o.finish != FinishReason::kNone) f.reason = o.finish;
    }
  }
  EXPECT_TRUE(engine.idle());
  EXPECT_TRUE(failed.empty());
  return out;
}

std::vector<int32_t> alone(const Request& r) {
  FakeModel model;
  auto engine = Engine::create(model, nullptr, config(), {}).value();
  EXPECT_TRUE(engine->submit(r).ok());
  return drain(*engine)[r.id].tokens;
}

TEST(Engine, BatchedWithPreemptionEqualsEachAlone) {
  int64_t preemptions = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 rng(seed);
    EngineConfig c = config();
    c.scheduler = {static_cast<int64_t>(1 + rng() % 30), static_cast<int64_t>(1 + rng() % 30), 8};
    FakeModel model;
    c.kv_memory = KvPool::page_bytes(model.shape(), c.kv_dtype, c.page_size) * 20;
    auto engine = Engine::create(model, nullptr, c, {}).value();
    std::vector<Request> requests;
    for (uint64_t id = 0; id < 32; ++id) {
      std::vector<int32_t> prompt(1 + rng() % 40);
      for (auto& t : prompt) t = static_cast<int32_t>(rng() % 97);
      requests.push_back(request(id, prompt, 1 + rng() % 30, id % 3 == 0 ? 1.0f : 0.0f));
      requests.back().sampling.seed = id;
    }
    std::map<uint64_t, Finished> got;
    std::vector<Engine::Failure> failed;
    size_t next = 0;
    while (next < requests.size() || !engine->idle()) {
      while (next < requests.size() && rng() % 3 == 0) {
        ASSERT_TRUE(engine->submit(requests[next++]).ok());
      }
      for (const RequestOutput& o : engine->step(&failed)) {
        got[o.id].tokens.insert(got[o.id].tokens.end(), o.token_ids.begin(), o.token_ids.end());
      }
    }
    for (const Request& r : requests) EXPECT_EQ(got[r.id].tokens, alone(r)) << seed << " " << r.id;
    EXPECT_EQ(engine->stats().kv_pages_free, engine->stats().kv_pages);
    EXPECT_EQ(engine->stats().kv_pages, 20);
    preemptions += engine->stats().preemptions;
  }
  EXPECT_GT(preemptions, 50);
}

TEST(Engine, RefusesWhatCanNeverRun) {
  FakeModel model;
  EngineConfig c = config();
  c.kv_memory = KvPool::page_bytes(model.shape(), c.kv_dtype, c.page_size) * 10;  // 40 tokens
  auto engine = Engine::create(model, nullptr, c, {}).value();
  auto message = [&](const Request& r) { return engine->submit(r).error().message; };
  EXPECT_NE(message(request(1, {}, 4)).find("empty"), std::string::npos);
  EXPECT_NE(message(request(1, {97}, 4)).find("96"), std::string::npos);
  EXPECT_NE(message(request(1, std::vector<int32_t>(30, 1), 11)).find("KV cache holds 40"),
            std::string::npos);
  const std::string context = message(request(1, std::vector<int32_t>(128, 1), 5));
  EXPECT_NE(context.find("128 tokens and max_tokens asks for 5"), std::string::npos) << context;
  Request stop = request(1, {1}, 4);
  stop.sampling.stop = {"x"};
  EXPECT_NE(message(stop).find("tokenizer"), std::string::npos);
  EXPECT_TRUE(engine->submit(request(1, std::vector<int32_t>(30, 1), 10)).ok());
  EXPECT_NE(message(request(1, {1}, 4)).find("in use"), std::string::npos);
  EXPECT_EQ(drain(*engine)[1].tokens.size(), 10u);
  // Without max_tokens: as many as fit.
  EXPECT_TRUE(engine->submit(request(2, std::vector<int32_t>(30, 1), -1)).ok());
  EXPECT_EQ(drain(*engine)[2].tokens.size(), 10u);

  c.max_model_len = 5000;
  EXPECT_NE(Engine::create(model, nullptr, c, {}).error().message.find("4096"), std::string::npos);
  c.max_model_len = 0;
  EXPECT_EQ(Engine::create(model, nullptr, c, {}).value()->max_model_len(), 4096);
}

TEST(Engine, EndTokensMinTokensAndLimits) {
  FakeModel model;
  EngineConfig c = config();
  const std::vector<int32_t> plain = alone(request(1, {5, 6}, 20));
  c.eos_ids = {plain[3]};
  auto engine = Engine::create(model, nullptr, c, {}).value();
  const auto first = std::find(plain.begin(), plain.end(), plain[3]) - plain.begin();
  ASSERT_TRUE(engine->submit(request(1, {5, 6}, 20)).ok());
  Finished f = drain(*engine)[1];
  EXPECT_EQ(f.reason, FinishReason::kStop);
  EXPECT_EQ(static_cast<ptrdiff_t>(f.tokens.size()), first + 1);

  Request ignore = request(2, {5, 6}, 20);
  ignore.sampling.ignore_eos = true;
  ASSERT_TRUE(engine->submit(ignore).ok());
  f = drain(*engine)[2];
  EXPECT_EQ(f.tokens, plain);
  EXPECT_EQ(f.reason, FinishReason::kLength);

  Request at_least = request(3, {5, 6}, 20);
  at_least.sampling.min_tokens = 10;
  ASSERT_TRUE(engine->submit(at_least).ok());
  f = drain(*engine)[3];
  EXPECT_GE(f.tokens.size(), 10u);
  for (size_t i = 0; i < 9; ++i) EXPECT_NE(f.tokens[i], plain[3]);

  Request one = request(4, {5, 6}, 1);
  ASSERT_TRUE(engine->submit(one).ok());
  f = drain(*engine)[4];
  EXPECT_EQ(f.tokens, std::vector<int32_t>{plain[0]});
  EXPECT_EQ(f.reason, FinishReason::kLength);
}

TEST(Engine, AbortFreesEverythingAtAnyStage) {
  FakeModel model;
  EngineConfig c = config();
  c.scheduler = {4, 4, 2};
  auto engine = Engine::create(model, nullptr, c, {}).value();
  std::vector<Engine::Failure> failed;
  for (uint64_t id = 1; id <= 4; ++id) {
    ASSERT_TRUE(engine->submit(request(id, std::vector<int32_t>(10, 3), 20)).ok());
  }
  engine->step(&failed);          // 1 is in the middle of its prefill, the others wait
  EXPECT_TRUE(engine->abort(4));  // waiting
  EXPECT_TRUE(engine->abort(1));  // prefilling
  EXPECT_FALSE(engine->abort(1));
  for (int i = 0; i < 6; ++i) engine->step(&failed);
  EXPECT_TRUE(engine->abort(2));  // decoding
  EXPECT_EQ(drain(*engine).count(3), 1u);
  EXPECT_EQ(engine->stats().kv_pages_free, engine->stats().kv_pages);
}

TEST(Engine, NanLogitsEndOneRequestOnly) {
  FakeModel model;
  auto engine = Engine::create(model, nullptr, config(), {}).value();
  ASSERT_TRUE(engine->submit(request(1, {1, 2, 3}, 5)).ok());
  ASSERT_TRUE(engine->submit(request(2, {4, 5}, 5)).ok());
  model.poison_next = true;
  std::vector<Engine::Failure> failed;
  engine->step(&failed);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].id, 1u);
  std::vector<int32_t> tokens;
  while (!engine->idle()) {
    for (const auto& o : engine->step(&failed))
      tokens.insert(tokens.end(), o.token_ids.begin(), o.token_ids.end());
  }
  const std::vector<int32_t> want = alone(request(2, {4, 5}, 5));
  EXPECT_EQ(tokens, std::vector<int32_t>(want.begin() + 1, want.end()));
  EXPECT_EQ(engine->stats().kv_pages_free, engine->stats().kv_pages);
}

TEST(Engine, LogprobsComeFromTheModelsOwnDistribution) {
  FakeModel model;
  auto engine = Engine::create(model, nullptr, config(), {}).value();
  Request r = request(1, {1, 2, 3}, 3);
  r.sampling.logprobs = 2;
  r.sampling.logit_bias = {{50, 100}};
  ASSERT_TRUE(engine->submit(r).ok());
  std::vector<Engine::Failure> failed;
  const auto outputs = engine->step(&failed);
  ASSERT_EQ(outputs.size(), 1u);
  ASSERT_EQ(outputs[0].logprobs.size(), 1u);
  const TokenLogprobs& lp = outputs[0].logprobs[0];
  EXPECT_EQ(lp.id, 50);                     // the bias forced it
  EXPECT_LT(lp.logprob, lp.top[0].second);  // but the model did not prefer it
  EXPECT_NE(lp.top[0].first, 50);
}

TEST(Engine, SeedsReproduceAndMissingSeedsDiffer) {
  FakeModel model;
  auto engine = Engine::create(model, nullptr, config(), {}).value();
  for (uint64_t id : {1, 2, 3, 4}) {
    Request r = request(id, {9}, 12, 1.0f);
    if (id <= 2) r.sampling.seed = 77;
    ASSERT_TRUE(engine->submit(r).ok());
  }
  auto out = drain(*engine);
  EXPECT_EQ(out[1].tokens, out[2].tokens);
  EXPECT_NE(out[3].tokens, out[4].tokens);
}

}  // namespace
}  // namespace mx8
