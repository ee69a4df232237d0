// DummySource: seeded random weights of any shape, for `--load-format dummy` and `make-dummy`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_source.h"

namespace mx8 {

// Makes whatever it is asked for, the same for the same name, seed, dtype and shape, whatever the
// order of the calls and the sharding. Weights are normal with standard deviation near 0.02 (MXFP8:
// scale bytes 118 to 120, so all powers of two and finite), norms 1, biases small.
class DummySource final : public TensorSource {
 public:
  explicit DummySource(uint64_t seed) : seed_(seed) {}

  bool has(std::string_view name, bool expected) const override { return expected; }
  const TensorInfo* find(std::string_view name) const override { return nullptr; }
  Result<TensorData> load(const TensorRequest& request) override;
  void release(std::string_view name) override {}
  void mark_used(std::string_view name) override {}
  std::vector<std::string> unused() const override { return {}; }

 private:
  uint64_t seed_;
};

}  // namespace mx8
