// KvPool: the memory of keys and values of all layers, in pages that sequences borrow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "ops/attention.h"
#include "runtime/buffer.h"

namespace mx8 {

struct KvPoolConfig {
  DType dtype = DType::kBF16;  // BF16 or F32
  int page_size = 16;          // tokens a page
  int64_t pages = 0;
};

class KvPool {
 public:
  // Memory is reserved here and becomes resident as pages are first written.
  static Result<KvPool> create(const ModelShape& shape, const KvPoolConfig& config);

  // Bytes of one page over all layers, keys and values.
  static size_t page_bytes(const ModelShape& shape, DType dtype, int page_size);

  int64_t pages() const { return config_.pages; }
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }
  int page_size() const { return config_.page_size; }
  int64_t token_capacity() const { return config_.pages * config_.page_size; }
  int64_t pages_for(int64_t tokens) const {
    return (tokens + config_.page_size - 1) / config_.page_size;
  }
  size_t bytes() const { return keys_.size() + values_.size(); }
  std::span<const KvLayer> layers() const { return layers_; }

  // One page, or -1 when all are taken.
  int32_t take();
  void give_back(int32_t page);

 private:
  KvPoolConfig config_;
  Buffer keys_;
  Buffer values_;
  std::vector<KvLayer> layers_;
  std::vector<int32_t> free_;
};

// The pages of one sequence, in the order of its tokens.
class BlockTable {
 public:
  // Takes pages until `tokens` tokens have room; takes none and returns false if they are short.
  bool grow(KvPool& pool, int64_t tokens);
  // Gives every page back.
  void release(KvPool& pool);

  std::span<const int32_t> pages() const { return pages_; }
  int32_t slot(int64_t token, int page_size) const {
    return pages_[static_cast<size_t>(token / page_size)] * page_size +
           static_cast<int32_t>(token % page_size);
  }

 private:
  std::vector<int32_t> pages_;
};

}  // namespace mx8
