#include "model/vocabulary.h"

#include "ops/elementwise.h"

namespace mx8 {

void Vocabulary::embed(const Exec& exec, std::span<const int32_t> ids, const Mat& out) const {
  if (table_.size() > 0) {
    // The op only reads through the pointer.
    void* data = const_cast<std::byte*>(table_.data());
    embedding(exec, Mat{data, table_dtype_, head_.n(), head_.k(), head_.k()}, ids, out);
    return;
  }
  const Linear& rows = quantised_ ? *quantised_ : head_;
  exec.pool->for_range(static_cast<int64_t>(ids.size()), 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t m = begin; m < end; ++m) {
      rows.decode_row(ids[static_cast<size_t>(m)], out.f32_row(m));
    }
  });
}

}  // namespace mx8
