#include "checkpoint/prefixed_source.h"

#include "base/strings.h"

namespace mx8 {

std::string prefix_before(const TensorSource& source, std::string_view name) {
  if (source.has(name, true)) return "";
  const std::string ending = str_cat(".", name);
  std::string prefix;
  for (const std::string& stored : source.unused()) {
    if (!stored.ends_with(ending)) continue;
    if (!prefix.empty()) return "";
    prefix = stored.substr(0, stored.size() - name.size());
  }
  return prefix;
}

std::string PrefixedSource::stored(std::string_view name) const { return str_cat(prefix_, name); }

bool PrefixedSource::has(std::string_view name, bool expected) const {
  return source_.has(stored(name), expected);
}

const TensorInfo* PrefixedSource::find(std::string_view name) const {
  return source_.find(stored(name));
}

Result<TensorData> PrefixedSource::load(const TensorRequest& request) {
  TensorRequest prefixed = request;
  prefixed.name = stored(request.name);
  return source_.load(prefixed);
}

void PrefixedSource::release(std::string_view name) { source_.release(stored(name)); }

// A name from unused() may lie outside the prefix.
void PrefixedSource::mark_used(std::string_view name) {
  source_.mark_used(source_.find(name) != nullptr ? std::string(name) : stored(name));
}

std::vector<std::string> PrefixedSource::unused() const { return source_.unused(); }

}  // namespace mx8
