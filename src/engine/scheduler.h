// Scheduler: decides what runs in the next step. It owns the order of sequences and the pages they
// hold; it knows neither weights nor text, so it is tested without a model.
//
// Continuous batching: every running sequence gets its pending tokens (one when decoding, up to a
// chunk when prefilling), oldest first, until the step's token budget is spent; then waiting ones
// are admitted, first come first served. When a page is missing, the youngest running sequence is
// preempted: its pages go back, and it waits at the front to be computed again.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/sequence.h"

namespace mx8 {

struct SchedulerConfig {
  int64_t max_tokens_per_step = 512;
  int64_t max_chunk = 512;  // tokens of one sequence in one step
  int max_sequences = 32;   // running at once
};

// One sequence's part of a step: its tokens first .. first + count - 1.
struct ScheduledSequence {
  Sequence* sequence = nullptr;
  int64_t first = 0;
  int64_t count = 0;
  // True when the step reaches the last known token, so that the next one can be sampled.
  bool samples() const { return first + count == sequence->length(); }
};

struct ScheduledBatch {
  std::vector<ScheduledSequence> parts;
  int64_t tokens = 0;
};

class Scheduler {
 public:
  Scheduler(const SchedulerConfig& config, KvPool& pool) : config_(config), pool_(pool) {}
  ~Scheduler();

  // Puts a sequence at the end of the queue. Its prompt and output together fit the pool (the
  // caller checked), which is what guarantees progress.
  void admit(std::unique_ptr<Sequence> sequence);

  // The next step; empty only when nothing is waiting or running. Valid until the next call of any
  // method.
  const ScheduledBatch& schedule();

  // Marks a part's tokens as computed.
  void commit(const ScheduledSequence& part);

  // Removes a sequence, running or waiting, and takes its pages back. False if unknown.
  bool finish(uint64_t id);

  size_t running() const { return running_.size(); }
  size_t waiting() const { return waiting_.size(); }
  bool idle() const { return running_.empty() && waiting_.empty(); }
  int64_t preemptions() const { return preemptions_; }

 private:
  void preempt_youngest();
  // Adds up to the remaining budget of the sequence's pending tokens; false if pages are short.
  bool schedule_pending(Sequence& sequence);

  SchedulerConfig config_;
  KvPool& pool_;
  std::vector<std::unique_ptr<Sequence>> running_;  // oldest first
  std::deque<std::unique_ptr<Sequence>> waiting_;
  ScheduledBatch batch_;
  int64_t preemptions_ = 0;
};

}  // namespace mx8
