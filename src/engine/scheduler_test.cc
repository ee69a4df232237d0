#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "engine/fake_model.h"

namespace mx8 {
namespace {

KvPool make_pool(int64_t pages, int page_size = 4) {
  FakeModel model;
  return KvPool::create(model.shape(), {DType::kF32, page_size, pages}).value();
}

std::unique_ptr<Sequence> sequence(uint64_t id, int64_t prompt, int64_t max_tokens = 4) {
  auto s = std::make_unique<Sequence>();
  s->id = id;
  s->tokens.assign(static_cast<size_t>(prompt), 1);
  s->prompt_tokens = prompt;
  s->max_tokens = max_tokens;
  return s;
}

// Runs a step: commits every part and appends a token where one is sampled.
void advance(Scheduler& scheduler, const ScheduledBatch& batch, int64_t* produced) {
  std::vector<uint64_t> done;
  for (const ScheduledSequence& part : batch.parts) {
    const bool samples = part.samples();
    scheduler.commit(part);
    if (!samples) continue;
    part.sequence->tokens.push_back(2);
    ++*produced;
    if (part.sequence->output_tokens() == part.sequence->max_tokens)
      done.push_back(part.sequence->id);
  }
  for (uint64_t id : done) EXPECT_TRUE(scheduler.finish(id));
}

TEST(KvPool, HandsOutEachPageOnceAndRefusesNone) {
  KvPool pool = make_pool(3);
  std::set<int32_t> pages = {pool.take(), pool.take(), pool.take()};
  EXPECT_EQ(pages, (std::set<int32_t>{0, 1, 2}));
  EXPECT_EQ(pool.take(), -1);
  pool.give_back(1);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.token_capacity(), 12);
  EXPECT_EQ(pool.pages_for(5), 2);
  FakeModel model;
  EXPECT_EQ(pool.bytes(), 3 * KvPool::page_bytes(model.shape(), DType::kF32, 4));
  const auto none = KvPool::create(model.shape(), {DType::kBF16, 16, 0});
  EXPECT_NE(none.error().message.find("--kv-memory"), std::string::npos);
}

TEST(BlockTable, GrowsAllOrNothing) {
  KvPool pool = make_pool(4);
  BlockTable table;
  EXPECT_TRUE(table.grow(pool, 9));
  EXPECT_EQ(table.pages().size(), 3u);
  EXPECT_EQ(table.slot(8, 4), table.pages()[2] * 4);
  EXPECT_FALSE(table.grow(pool, 17));
  EXPECT_EQ(table.pages().size(), 3u);
  EXPECT_EQ(pool.free_pages(), 1);
  EXPECT_TRUE(table.grow(pool, 12));
  table.release(pool);
  EXPECT_EQ(pool.free_pages(), 4);
}

TEST(Scheduler, ChunksPrefillAndMixesItWithDecode) {
  KvPool pool = make_pool(64);
  Scheduler scheduler({.max_tokens_per_step = 8, .max_chunk = 6, .max_sequences = 4}, pool);
  scheduler.admit(sequence(1, 3));
  const ScheduledBatch& first = scheduler.schedule();
  ASSERT_EQ(first.parts.size(), 1u);
  int64_t produced = 0;
  advance(scheduler, first, &produced);
  scheduler.admit(sequence(2, 20));
  const ScheduledBatch& second = scheduler.schedule();
  ASSERT_EQ(second.parts.size(), 2u);
  EXPECT_EQ(second.parts[0].count, 1);  // decode of 1 first
  EXPECT_EQ(second.parts[1].count, 6);  // a chunk of 2
  EXPECT_FALSE(second.parts[1].samples());
  EXPECT_EQ(second.tokens, 7);
}

TEST(Scheduler, PreemptsTheYoungestAndPutsItFirstInLine) {
  KvPool pool = make_pool(4);  // 16 tokens
  Scheduler scheduler({.max_tokens_per_step = 64, .max_chunk = 64, .max_sequences = 4}, pool);
  scheduler.admit(sequence(1, 7, 8));
  scheduler.admit(sequence(2, 8, 8));
  scheduler.admit(sequence(3, 8, 8));
  int64_t produced = 0;
  advance(scheduler, scheduler.schedule(), &produced);
  EXPECT_EQ(scheduler.running(), 2u);  // 3 did not fit
  advance(scheduler, scheduler.schedule(),
          &produced);  // 2 needs a third page and is the youngest itself
  EXPECT_EQ(scheduler.preemptions(), 1);
  EXPECT_EQ(scheduler.running(), 1u);
  EXPECT_EQ(scheduler.waiting(), 2u);
  while (!scheduler.idle()) advance(scheduler, scheduler.schedule(), &produced);
  EXPECT_EQ(produced, 24);
  EXPECT_EQ(pool.free_pages(), 4);
}

TEST(Scheduler, RandomLoadsAlwaysFinishAndGiveBackEveryPage) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 rng(seed);
    auto pick = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
    };
    const int64_t pages = pick(8, 20);
    KvPool pool = make_pool(pages);
    Scheduler scheduler({.max_tokens_per_step = pick(1, 40),
                         .max_chunk = pick(1, 40),
                         .max_sequences = static_cast<int>(pick(1, 8))},
                        pool);
    int64_t produced = 0, wanted = 0;
    uint64_t next_id = 1;
    for (int step = 0; step < 5000 && (next_id <= 32 || !scheduler.idle()); ++step) {
      while (next_id <= 32 && pick(0, 2) == 0) {
        const int64_t prompt = pick(1, 20), output = pick(1, 12);
        wanted += output;
        scheduler.admit(sequence(next_id++, prompt, output));
      }
      const ScheduledBatch& batch = scheduler.schedule();
      std::set<const Sequence*> once;
      for (const auto& part : batch.parts) {
        ASSERT_TRUE(once.insert(part.sequence).second);
        ASSERT_GE(part.count, 1);
        ASSERT_LE(part.first + part.count, part.sequence->length());
        ASSERT_EQ(part.first, part.sequence->computed);
      }
      if (!scheduler.idle()) {
        ASSERT_FALSE(batch.parts.empty()) << seed;
      }
      advance(scheduler, batch, &produced);
    }
    EXPECT_TRUE(scheduler.idle()) << seed;
    EXPECT_EQ(produced, wanted) << seed;
    EXPECT_EQ(pool.free_pages(), pages) << seed;
  }
}

}  // namespace
}  // namespace mx8
