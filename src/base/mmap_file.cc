#include "base/mmap_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace mx8 {

namespace {

// Opens a regular file for reading; returns its descriptor and size.
Result<std::pair<int, uint64_t>> open_regular(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer. Regular files do not heed it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const std::string message = str_cat("cannot open ", path, ": ", std::strerror(errno));
    if (errno != ENOENT) return io_error(message);
    struct stat entry;
    if (::lstat(path.c_str(), &entry) == 0 && S_ISLNK(entry.st_mode)) {
      return io_error(str_cat("cannot open ", path, ": it is a link to a file that is not there"));
    }
    return not_found(message);
  }
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return io_error(str_cat("cannot read ", path, ": it is not a regular file"));
  }
  return std::pair<int, uint64_t>{fd, static_cast<uint64_t>(info.st_size)};
}

}  // namespace

Result<MmapFile> MmapFile::open(const std::string& path) {
  MX8_TRY(auto opened, open_regular(path));
  const auto [fd, size] = opened;
  MmapFile file;
  file.path_ = path;
  file.size_ = size;
  if (size > 0) {
    void* map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
      const std::string reason = std::strerror(errno);
      ::close(fd);
      return io_error(str_cat("cannot map ", path, ": ", reason, "; try --load read"));
    }
    file.data_ = static_cast<const std::byte*>(map);
  }
  ::close(fd);
  return file;
}

MmapFile::MmapFile(MmapFile&& other) noexcept { *this = std::move(other); }

MmapFile& MmapFile::operator=(MmapFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

MmapFile::~MmapFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MmapFile::release(size_t offset, size_t length) const {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t end = std::min(offset + length, size_);
  const size_t first = (offset + page - 1) / page * page;
  const size_t last = end == size_ ? (end + page - 1) / page * page : end / page * page;
  if (first < last) ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

Result<ReadFile> ReadFile::open(const std::string& path) {
  MX8_TRY(auto opened, open_regular(path));
  ReadFile file;
  file.fd_ = opened.first;
  // Weights are read from front to back; network file systems read ahead further when told so.
  ::posix_fadvise(file.fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  file.size_ = opened.second;
  file.path_ = path;
  return file;
}

ReadFile::ReadFile(ReadFile&& other) noexcept { *this = std::move(other); }

ReadFile& ReadFile::operator=(ReadFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

ReadFile::~ReadFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> ReadFile::read(uint64_t offset, std::span<std::byte> out) const {
  constexpr size_t kMaxRead = size_t{64} << 20;
  size_t done = 0;
  while (done < out.size()) {
    const size_t want = std::min(out.size() - done, kMaxRead);
    const ssize_t got = ::pread(fd_, out.data() + done, want, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(str_cat("cannot read ", path_, ": ", std::strerror(errno)));
    if (got == 0) {
      return corrupt(
          str_cat(path_, " ends at byte ", offset + done, ", ", out.size() - done, " bytes short"));
    }
    done += static_cast<size_t>(got);
  }
  return {};
}

void ReadFile::drop_cache(uint64_t offset, uint64_t length) const {
  ::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_DONTNEED);
}

}  // namespace mx8
