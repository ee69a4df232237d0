// How ops spread over the pool. Waking the other threads costs about as much as 1 us of work, so
// what is small runs on the calling thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/exec.h"

namespace mx8 {

inline int exec_threads(const Exec& exec) { return exec.pool == nullptr ? 1 : exec.pool->size(); }

// body(chunk, thread) for every chunk in [0, chunks); on the calling thread unless `parallel`.
template <class Body>
void for_each_chunk(const Exec& exec, int64_t chunks, bool parallel, Body&& body) {
  if (parallel && chunks > 1 && exec_threads(exec) > 1) {
    exec.pool->for_each(chunks, body);
    return;
  }
  for (int64_t c = 0; c < chunks; ++c) body(c, 0);
}

// body(row) for every row in [0, rows), where a row touches about `row_floats` floats.
template <class Body>
void for_each_row(const Exec& exec, int64_t rows, int64_t row_floats, Body&& body) {
  constexpr int64_t kFloatsWorthAThread = 32 * 1024;
  const int64_t grain =
      std::max<int64_t>(1, kFloatsWorthAThread / 4 / std::max<int64_t>(1, row_floats));
  for_each_chunk(exec, (rows + grain - 1) / grain, rows * row_floats >= kFloatsWorthAThread,
                 [&](int64_t chunk, int) {
                   const int64_t end = std::min(rows, (chunk + 1) * grain);
                   for (int64_t r = chunk * grain; r < end; ++r) body(r);
                 });
}

}  // namespace mx8
