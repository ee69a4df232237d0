// Sequence: one request while it is in the engine.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/kv_pool.h"
#include "engine/request.h"

namespace mx8 {

struct Sequence {
  uint64_t id = 0;
  std::vector<int32_t> tokens;  // the prompt, then what was generated
  int64_t prompt_tokens = 0;
  int64_t max_tokens = 0;  // of output, resolved
  // Keys and values of the first `computed` tokens are in the cache. Preemption sets it back to 0.
  int64_t computed = 0;
  BlockTable blocks;
  int preemptions = 0;

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  int64_t output_tokens() const { return length() - prompt_tokens; }
};

}  // namespace mx8
