// Read-only access to a whole file, by memory map or by positioned reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace mx8 {

// A file mapped read-only. Movable; unmaps on destruction.
class MmapFile {
 public:
  static Result<MmapFile> open(const std::string& path);
  MmapFile() = default;
  MmapFile(MmapFile&& other) noexcept;
  MmapFile& operator=(MmapFile&& other) noexcept;
  ~MmapFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  // Drops the resident pages that lie wholly inside [offset, offset + length): they no longer count
  // as this process's memory and are read again if touched.
  void release(size_t offset, size_t length) const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::string path_;
};

// A file read with large pread calls. Movable; closes on destruction.
class ReadFile {
 public:
  static Result<ReadFile> open(const std::string& path);
  ReadFile() = default;
  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&& other) noexcept;
  ~ReadFile();

  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Fills `out` from `offset`; an error when the file ends early.
  Result<void> read(uint64_t offset, std::span<std::byte> out) const;
  // Tells the system that the range will not be read again.
  void drop_cache(uint64_t offset, uint64_t length) const;

 private:
  int fd_ = -1;
  uint64_t size_ = 0;
  std::string path_;
};

}  // namespace mx8
