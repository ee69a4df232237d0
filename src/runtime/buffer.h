// Owned memory: aligned buffers for weights and caches, and a bump arena for a step's workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"

namespace mx8 {

inline constexpr size_t kCacheLine = 64;

// 64-byte aligned bytes, not initialised. Large ones ask for huge pages. Movable.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  void swap(Buffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
  }
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t mapped_ = 0;  // bytes of the mapping, 0 when from the heap
};

// A stack of temporary arrays. Allocating is a pointer increment; memory is kept between steps, so a
// step of a size seen before allocates nothing.
class Arena {
 public:
  // `count` elements of T, 64-byte aligned, not initialised; valid until the enclosing Scope ends.
  template <class T>
  T* alloc(int64_t count) {
    MX8_DCHECK(count >= 0, count);
    return reinterpret_cast<T*>(alloc_bytes(static_cast<size_t>(count) * sizeof(T)));
  }

  // Gives back at its end what was allocated since its start.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), block_(arena.block_), used_(arena.used_) {}
    ~Scope() { arena_.rewind(block_, used_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    size_t block_;
    size_t used_;
  };

  size_t capacity() const;  // bytes held

 private:
  std::byte* alloc_bytes(size_t size);
  void rewind(size_t block, size_t used);

  std::vector<Buffer> blocks_;
  size_t block_ = 0;  // the block in use
  size_t used_ = 0;   // bytes used of it
};

}  // namespace mx8
