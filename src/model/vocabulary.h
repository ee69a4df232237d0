// Vocabulary: the two ends of a model, token ids to vectors and vectors to logits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ops/linear.h"
#include "runtime/buffer.h"
#include "runtime/exec.h"
#include "tensor/matrix.h"

namespace mx8 {

class Vocabulary {
 public:
  Vocabulary() = default;
  // A tied head of the same bytes: its rows are the table.
  explicit Vocabulary(Linear head) : head_(std::move(head)) {}
  // A plain table [vocab, hidden] of its own.
  Vocabulary(Linear head, Buffer table, DType dtype)
      : head_(std::move(head)), table_(std::move(table)), table_dtype_(dtype) {}
  // A quantised table of its own.
  Vocabulary(Linear head, Linear table) : head_(std::move(head)), quantised_(std::move(table)) {}

  // out[m] = row ids[m] of the table; out [M, hidden] F32.
  void embed(const Exec& exec, std::span<const int32_t> ids, const Mat& out) const;
  // logits [L, vocab] F32 of hidden states [L, hidden].
  void logits(const Exec& exec, const Mat& hidden, const Mat& logits) const {
    head_.apply(exec, hidden, logits);
  }

 private:
  Linear head_;
  Buffer table_;
  DType table_dtype_ = DType::kBF16;
  std::optional<Linear> quantised_;
};

}  // namespace mx8
