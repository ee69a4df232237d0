// Checkpoints whose tensors carry one prefix before the names that models ask for, such as
// "language_model." in a text model that was taken out of a multimodal one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_source.h"

namespace mx8 {

// What stands before `name` in the one tensor that ends with it: "language_model.". "" where the
// source has `name` itself, or no tensor or several end with it. Every model has the embedding.
std::string prefix_before(const TensorSource& source,
                          std::string_view name = "model.embed_tokens.weight");

// `source`, which must outlive this, under names without the prefix. unused() gives the names of
// the files, those outside the prefix too.
class PrefixedSource final : public TensorSource {
 public:
  PrefixedSource(TensorSource& source, std::string prefix)
      : source_(source), prefix_(std::move(prefix)) {}

  bool has(std::string_view name, bool expected) const override;
  const TensorInfo* find(std::string_view name) const override;
  Result<TensorData> load(const TensorRequest& request) override;
  void release(std::string_view name) override;
  void mark_used(std::string_view name) override;
  std::vector<std::string> unused() const override;

 private:
  std::string stored(std::string_view name) const;

  TensorSource& source_;
  std::string prefix_;
};

}  // namespace mx8
