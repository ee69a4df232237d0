#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace mx8 {

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include)
    : stops_(std::move(stops)), include_(include) {}

std::string StopMatcher::push(std::string_view piece) {
  if (found()) return "";
  held_ += piece;
  size_t first_end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t end = at + stop.size();
    if (end < first_end || (end == first_end && stop.size() > matched_.size())) {
      first_end = end;
      matched_ = stop;
    }
  }
  if (found()) {
    std::string out = held_.substr(0, include_ ? first_end : first_end - matched_.size());
    held_.clear();
    return out;
  }
  size_t hold_from = held_.size();
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > 0; --n) {
      if (held_.compare(held_.size() - n, n, stop, 0, n) != 0) continue;
      hold_from = std::min(hold_from, held_.size() - n);
      break;
    }
  }
  std::string out = held_.substr(0, hold_from);
  held_.erase(0, hold_from);
  return out;
}

std::string StopMatcher::flush() { return std::exchange(held_, ""); }

}  // namespace mx8
