#pragma once

#include <chrono>

namespace mx8 {

// Seconds on a monotonic clock; only differences mean anything.
inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace mx8
