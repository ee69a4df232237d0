// ModelRunner: turns a scheduled batch into the model's input and runs it. It owns the arrays of a
// step, which are reused from step to step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/scheduler.h"
#include "model/model.h"
#include "runtime/exec.h"

namespace mx8 {

class ModelRunner {
 public:
  ModelRunner(Model& model, KvPool& pool, const Exec& exec)
      : model_(model), pool_(pool), exec_(exec) {}

  // Runs the batch. Returns the logits [L, vocab] of its sampling parts, in the order of the parts;
  // valid until the next call.
  Mat execute(const ScheduledBatch& batch);

 private:
  Model& model_;
  KvPool& pool_;
  Exec exec_;
  std::vector<int32_t> ids_, positions_, q_start_, context_, pages_, slots_, logit_rows_;
  std::vector<float> logits_;
};

}  // namespace mx8
