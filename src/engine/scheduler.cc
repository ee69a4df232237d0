#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace mx8 {

Scheduler::~Scheduler() {
  for (auto& s : running_) s->blocks.release(pool_);
}

void Scheduler::admit(std::unique_ptr<Sequence> sequence) {
  waiting_.push_back(std::move(sequence));
}

void Scheduler::preempt_youngest() {
  std::unique_ptr<Sequence> victim = std::move(running_.back());
  running_.pop_back();
  victim->blocks.release(pool_);
  victim->computed = 0;
  ++victim->preemptions;
  ++preemptions_;
  // Sequences are scheduled oldest first, so the youngest can only be the last part.
  if (!batch_.parts.empty() && batch_.parts.back().sequence == victim.get()) {
    batch_.tokens -= batch_.parts.back().count;
    batch_.parts.pop_back();
  }
  waiting_.push_front(std::move(victim));
}

bool Scheduler::schedule_pending(Sequence& s) {
  const int64_t count = std::min(
      {s.length() - s.computed, config_.max_chunk, config_.max_tokens_per_step - batch_.tokens});
  if (!s.blocks.grow(pool_, s.computed + count)) return false;
  batch_.parts.push_back({&s, s.computed, count});
  batch_.tokens += count;
  return true;
}

const ScheduledBatch& Scheduler::schedule() {
  batch_.parts.clear();
  batch_.tokens = 0;
  const int64_t preempted_before = preemptions_;
  for (size_t i = 0; i < running_.size() && batch_.tokens < config_.max_tokens_per_step; ++i) {
    Sequence* s = running_[i].get();
    while (!schedule_pending(*s)) {
      const bool itself = running_.back().get() == s;
      MX8_CHECK(running_.size() > 1 || !itself, "a sequence alone does not fit the KV pool", s->id,
                s->length(), pool_.pages());
      preempt_youngest();
      if (itself) break;
    }
  }
  // A step that had to preempt admits nobody: the pages it freed belong to older sequences.
  while (preemptions_ == preempted_before && !waiting_.empty() &&
         static_cast<int>(running_.size()) < config_.max_sequences &&
         batch_.tokens < config_.max_tokens_per_step) {
    if (!schedule_pending(*waiting_.front())) break;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return batch_;
}

void Scheduler::commit(const ScheduledSequence& part) {
  MX8_CHECK(part.sequence->computed == part.first, part.sequence->computed, part.first);
  part.sequence->computed += part.count;
}

bool Scheduler::finish(uint64_t id) {
  auto same = [id](const std::unique_ptr<Sequence>& s) { return s->id == id; };
  if (auto it = std::find_if(running_.begin(), running_.end(), same); it != running_.end()) {
    (*it)->blocks.release(pool_);
    running_.erase(it);
    return true;
  }
  if (auto it = std::find_if(waiting_.begin(), waiting_.end(), same); it != waiting_.end()) {
    waiting_.erase(it);
    return true;
  }
  return false;
}

}  // namespace mx8
