#include "runtime/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace mx8 {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// From here on a buffer starts at a huge page of its own; smaller ones would waste too much.
constexpr size_t kMapThreshold = size_t{8} << 20;
constexpr size_t kArenaBlock = size_t{1} << 20;

size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

Buffer::Buffer(size_t size) : size_(size) {
  if (size == 0) return;
  if (size < kMapThreshold) {
    data_ = static_cast<std::byte*>(std::aligned_alloc(kCacheLine, round_up(size, kCacheLine)));
    MX8_CHECK(data_ != nullptr, "out of memory", size);
    return;
  }
  // Map one huge page more, then cut the ends, so that the start is aligned to a huge page.
  const size_t length = round_up(size, 4096);
  void* map = ::mmap(nullptr, length + kHugePage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MX8_CHECK(map != MAP_FAILED, "out of memory", size);
  const uintptr_t start = reinterpret_cast<uintptr_t>(map);
  const uintptr_t aligned = round_up(start, kHugePage);
  if (aligned > start) ::munmap(map, aligned - start);
  const size_t tail = start + length + kHugePage - (aligned + length);
  if (tail > 0) ::munmap(reinterpret_cast<void*>(aligned + length), tail);
  data_ = reinterpret_cast<std::byte*>(aligned);
  mapped_ = length;
  ::madvise(data_, length, MADV_HUGEPAGE);
}

Buffer::~Buffer() {
  if (mapped_ > 0) {
    ::munmap(data_, mapped_);
  } else {
    std::free(data_);
  }
}

size_t Arena::capacity() const {
  size_t total = 0;
  for (const Buffer& b : blocks_) total += b.size();
  return total;
}

std::byte* Arena::alloc_bytes(size_t size) {
  size = round_up(std::max<size_t>(size, 1), kCacheLine);
  while (block_ < blocks_.size() && used_ + size > blocks_[block_].size()) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    blocks_.emplace_back(std::max({size, kArenaBlock, capacity()}));
    used_ = 0;
  }
  std::byte* out = blocks_[block_].data() + used_;
  used_ += size;
  return out;
}

void Arena::rewind(size_t block, size_t used) {
  block_ = block;
  used_ = used;
  // Empty again after growing: keep one block that holds it all, so that the next step fits.
  if (block == 0 && used == 0 && blocks_.size() > 1) {
    const size_t total = capacity();
    blocks_.clear();
    blocks_.emplace_back(total);
  }
}

}  // namespace mx8
