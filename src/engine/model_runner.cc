#include "engine/model_runner.h"

#include <algorithm>

namespace mx8 {

Mat ModelRunner::execute(const ScheduledBatch& batch) {
  ids_.clear();
  positions_.clear();
  slots_.clear();
  context_.clear();
  logit_rows_.clear();
  q_start_.assign(1, 0);
  size_t max_pages = 1;
  for (const ScheduledSequence& part : batch.parts) {
    max_pages = std::max(max_pages, part.sequence->blocks.pages().size());
  }
  pages_.assign(batch.parts.size() * max_pages, -1);
  for (size_t s = 0; s < batch.parts.size(); ++s) {
    const ScheduledSequence& part = batch.parts[s];
    const Sequence& sequence = *part.sequence;
    for (int64_t t = part.first; t < part.first + part.count; ++t) {
      ids_.push_back(sequence.tokens[static_cast<size_t>(t)]);
      positions_.push_back(static_cast<int32_t>(t));
      slots_.push_back(sequence.blocks.slot(t, pool_.page_size()));
    }
    q_start_.push_back(static_cast<int32_t>(ids_.size()));
    context_.push_back(static_cast<int32_t>(part.first + part.count));
    std::ranges::copy(sequence.blocks.pages(),
                      pages_.begin() + static_cast<ptrdiff_t>(s * max_pages));
    if (part.samples()) logit_rows_.push_back(static_cast<int32_t>(ids_.size()) - 1);
  }
  const int64_t vocab = model_.shape().vocab;
  logits_.resize(logit_rows_.size() * static_cast<size_t>(vocab));
  const Mat logits = Mat::f32(logits_.data(), static_cast<int64_t>(logit_rows_.size()), vocab);
  ForwardBatch forward;
  forward.token_ids = ids_;
  forward.positions = positions_;
  forward.attention = {q_start_, context_, pages_, static_cast<int>(max_pages), slots_};
  forward.logit_rows = logit_rows_;
  forward.kv = pool_.layers();
  model_.forward(exec_, forward, logits);
  return logits;
}

}  // namespace mx8
