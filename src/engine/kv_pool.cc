#include "engine/kv_pool.h"

#include "base/check.h"
#include "base/strings.h"

namespace mx8 {

size_t KvPool::page_bytes(const ModelShape& shape, DType dtype, int page_size) {
  return size_t{2} * static_cast<size_t>(shape.layers) * static_cast<size_t>(shape.kv_heads) *
         static_cast<size_t>(shape.head_dim) * static_cast<size_t>(page_size) *
         static_cast<size_t>(dtype_size(dtype));
}

Result<KvPool> KvPool::create(const ModelShape& shape, const KvPoolConfig& config) {
  MX8_CHECK(config.dtype == DType::kBF16 || config.dtype == DType::kF32, dtype_name(config.dtype));
  MX8_CHECK(config.page_size > 0, config.page_size);
  if (config.pages < 1) {
    return resource_exhausted(
        str_cat("the KV pool has no page: one page of ", config.page_size, " tokens needs ",
                format_bytes(page_bytes(shape, config.dtype, config.page_size)),
                "; raise --kv-memory or --max-model-len"));
  }
  if (config.pages > INT32_MAX / config.page_size) {
    return invalid_argument(str_cat("a KV pool of ", config.pages, " pages is too large"));
  }
  KvPool pool;
  pool.config_ = config;
  const size_t half =
      page_bytes(shape, config.dtype, config.page_size) / 2 * static_cast<size_t>(config.pages);
  pool.keys_ = Buffer(half);
  pool.values_ = Buffer(half);
  const size_t layer = half / static_cast<size_t>(shape.layers);
  for (int l = 0; l < shape.layers; ++l) {
    pool.layers_.push_back({pool.keys_.data() + static_cast<size_t>(l) * layer,
                            pool.values_.data() + static_cast<size_t>(l) * layer, config.dtype,
                            config.page_size, shape.kv_heads, shape.head_dim});
  }
  pool.free_.resize(static_cast<size_t>(config.pages));
  // Low pages are handed out first, so that a small load touches little memory.
  for (int64_t p = 0; p < config.pages; ++p) {
    pool.free_[static_cast<size_t>(p)] = static_cast<int32_t>(config.pages - 1 - p);
  }
  return pool;
}

int32_t KvPool::take() {
  if (free_.empty()) return -1;
  const int32_t page = free_.back();
  free_.pop_back();
  return page;
}

void KvPool::give_back(int32_t page) {
  MX8_CHECK(page >= 0 && page < config_.pages && free_pages() < config_.pages, page, free_pages());
  free_.push_back(page);
}

bool BlockTable::grow(KvPool& pool, int64_t tokens) {
  const int64_t missing = pool.pages_for(tokens) - static_cast<int64_t>(pages_.size());
  if (missing > pool.free_pages()) return false;
  for (int64_t i = 0; i < missing; ++i) pages_.push_back(pool.take());
  return true;
}

void BlockTable::release(KvPool& pool) {
  // In reverse, so that the pool hands them out again in the same order.
  while (!pages_.empty()) {
    pool.give_back(pages_.back());
    pages_.pop_back();
  }
}

}  // namespace mx8
