#include "base/text_file.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>

#include "base/mmap_file.h"
#include "base/strings.h"

namespace mx8 {
namespace {

Error too_large(const std::string& path, uint64_t bytes, const char* or_more, uint64_t max_bytes) {
  return corrupt(str_cat(path, " has ", bytes, " bytes", or_more, "; at most ",
                         format_bytes(max_bytes), " (", max_bytes,
                         " bytes) make sense for such a file"));
}

// Reads to the end, whatever the path names.
Result<std::string> read_stream(const std::string& path, uint64_t max_bytes) {
  const auto failed = [&] {
    return io_error(str_cat("cannot read ", path, ": ", std::strerror(errno)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) return failed();
  std::string text;
  std::array<char, 65536> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    text.append(buffer.data(), n);
    if (text.size() > max_bytes) return too_large(path, text.size(), " or more", max_bytes);
  }
  if (std::ferror(file.get()) != 0) return failed();
  return text;
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, uint64_t max_bytes, FileKind kind) {
  if (kind == FileKind::kAny) return read_stream(path, max_bytes);
  MX8_TRY(const ReadFile file, ReadFile::open(path));
  if (file.size() > max_bytes) return too_large(path, file.size(), "", max_bytes);
  std::string text(file.size(), '\0');
  MX8_RETURN_IF_ERROR(file.read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

bool file_exists(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0;
}

}  // namespace mx8
