// Small string helpers that the standard library of C++20 in gcc 12 lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace mx8 {

template <class... Args>
std::string str_cat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);

// The entry of `candidates` with the smallest edit distance to `word`, or "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// "1.5 GiB", "512 B".
std::string format_bytes(uint64_t bytes);

// The environment variable, or nothing when unset or empty.
std::optional<std::string> env(const char* name);

}  // namespace mx8
