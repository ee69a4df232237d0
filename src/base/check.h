// MX8_CHECK: programmer errors. Prints the condition, the values and the place, then aborts.
#pragma once

#include <sstream>
#include <string>

namespace mx8 {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& values);

namespace check_detail {
template <class... Args>
std::string format_values(const Args&... args) {
  std::ostringstream out;
  bool first = true;
  ((out << (first ? "" : ", ") << args, first = false), ...);
  return out.str();
}
}  // namespace check_detail

}  // namespace mx8

// MX8_CHECK(n % 32 == 0, n, name): the further arguments are printed.
#define MX8_CHECK(cond, ...)                                                                     \
  do {                                                                                           \
    if (!(cond)) [[unlikely]]                                                                    \
      ::mx8::check_failed(__FILE__, __LINE__, #cond,                                             \
                          ::mx8::check_detail::format_values(__VA_ARGS__));                      \
  } while (false)

#ifdef NDEBUG
#define MX8_DCHECK(cond, ...) \
  do {                        \
  } while (false)
#else
#define MX8_DCHECK(cond, ...) MX8_CHECK(cond, ##__VA_ARGS__)
#endif
