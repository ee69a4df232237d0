// Whole small files: configurations, templates, prompts.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace mx8 {

enum class FileKind {
  kRegular,  // part of a folder: a pipe or device in its place is an error
  kAny,      // what a user names on the command line: a pipe will do
};

// The content of the file; more than `max_bytes` is an error.
Result<std::string> read_text_file(const std::string& path, uint64_t max_bytes,
                                   FileKind kind = FileKind::kRegular);

// True if something of that name is there, a link to nowhere included.
bool file_exists(const std::string& path);

}  // namespace mx8
