// Writing files so that a name only ever stands for whole contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mx8 {

// A file open for writing. Movable; closes on destruction.
class OutputFile {
 public:
  OutputFile() = default;
  // Creates the file, or empties it.
  static Result<OutputFile> create(const std::string& path);
  // Opens an existing file without changing it.
  static Result<OutputFile> reopen(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  bool is_open() const { return fd_ >= 0; }
  Result<void> write(uint64_t offset, std::span<const std::byte> bytes) const;
  Result<void> resize(uint64_t size) const;
  // Waits until the bytes are on the disk.
  Result<void> sync() const;

 private:
  static Result<OutputFile> open(const std::string& path, int flags);
  int fd_ = -1;
  std::string path_;
};

// Gives a file its name and makes the name last.
Result<void> rename_synced(const std::string& from, const std::string& to);

}  // namespace mx8
