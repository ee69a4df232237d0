#include "checkpoint/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/strings.h"
#include "checkpoint/safetensors_writer.h"

namespace mx8 {

namespace {

Error cannot(const char* what, const std::string& path) {
  const std::string message = str_cat("cannot ", what, " ", path, ": ", std::strerror(errno));
  return errno == ENOSPC || errno == EDQUOT ? resource_exhausted(message) : io_error(message);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

Result<OutputFile> OutputFile::open(const std::string& path, int flags) {
  OutputFile file;
  file.fd_ = ::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, 0644);
  if (file.fd_ < 0) return cannot("write", path);
  file.path_ = path;
  return file;
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  return open(path, O_CREAT | O_TRUNC);
}

Result<OutputFile> OutputFile::reopen(const std::string& path) { return open(path, 0); }

OutputFile::OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> OutputFile::write(uint64_t offset, std::span<const std::byte> bytes) const {
  constexpr size_t kMaxWrite = size_t{64} << 20;
  while (!bytes.empty()) {
    const ssize_t done =
        ::pwrite(fd_, bytes.data(), std::min(bytes.size(), kMaxWrite), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return cannot("write", path_);
    bytes = bytes.subspan(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
  return {};
}

Result<void> OutputFile::resize(uint64_t size) const {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) return cannot("resize", path_);
  return {};
}

Result<void> OutputFile::sync() const {
  if (::fsync(fd_) != 0) return cannot("write", path_);
  return {};
}

Result<void> rename_synced(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) return cannot("rename", from);
  const int fd = ::open(folder_of(to).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return cannot("open", folder_of(to));
  ::fsync(fd);  // not all file systems can sync a folder
  ::close(fd);
  return {};
}

Result<void> write_file_atomic(const std::string& path, std::string_view text) {
  const std::string partial = path + ".partial";
  MX8_TRY(const OutputFile file, OutputFile::create(partial));
  MX8_RETURN_IF_ERROR(file.write(0, std::as_bytes(std::span(text))));
  MX8_RETURN_IF_ERROR(file.sync());
  return rename_synced(partial, path);
}

}  // namespace mx8
