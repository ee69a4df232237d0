// Result<T>: a value or an Error, for everything that depends on outside data (files, configuration,
// HTTP, environment). Programmer errors use MX8_CHECK (check.h) instead.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace mx8 {

enum class ErrorCode {
  kInvalidArgument,    // a value the user gave is wrong
  kNotFound,           // a file, tensor or field is missing
  kUnsupported,        // understood, but not something this build can do
  kCorrupt,            // the bytes contradict their own description
  kResourceExhausted,  // memory, disk, pool or queue too small
  kIo,                 // the operating system refused
  kInternal,           // our fault
};

// `message` is one line for a person: it names the file, tensor or field, what was found and what
// would do.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

inline Error invalid_argument(std::string m) { return {ErrorCode::kInvalidArgument, std::move(m)}; }
inline Error not_found(std::string m) { return {ErrorCode::kNotFound, std::move(m)}; }
inline Error unsupported(std::string m) { return {ErrorCode::kUnsupported, std::move(m)}; }
inline Error corrupt(std::string m) { return {ErrorCode::kCorrupt, std::move(m)}; }
inline Error resource_exhausted(std::string m) {
  return {ErrorCode::kResourceExhausted, std::move(m)};
}
inline Error io_error(std::string m) { return {ErrorCode::kIo, std::move(m)}; }
inline Error internal_error(std::string m) { return {ErrorCode::kInternal, std::move(m)}; }

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}     // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {} // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    MX8_CHECK(ok(), error_message());
    return std::get<0>(state_);
  }
  const T& value() const& {
    MX8_CHECK(ok(), error_message());
    return std::get<0>(state_);
  }
  T&& value() && {
    MX8_CHECK(ok(), error_message());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    MX8_CHECK(!ok(), "error() of a Result that holds a value");
    return std::get<1>(state_);
  }

 private:
  std::string error_message() const { return ok() ? std::string() : std::get<1>(state_).message; }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}  // NOLINT: implicit

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    MX8_CHECK(failed_, "error() of a Result that succeeded");
    return error_;
  }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace mx8

#define MX8_CONCAT_INNER(a, b) a##b
#define MX8_CONCAT(a, b) MX8_CONCAT_INNER(a, b)

// MX8_TRY(auto x, f()): declares x from a Result, or returns its error from the enclosing function.
#define MX8_TRY(decl, expr) MX8_TRY_INNER(decl, expr, MX8_CONCAT(mx8_try_, __LINE__))
#define MX8_TRY_INNER(decl, expr, tmp)  \
  auto tmp = (expr);                    \
  if (!tmp.ok()) return tmp.error();    \
  decl = std::move(tmp).value()

// MX8_RETURN_IF_ERROR(f()): returns the error of a Result<void> (or of any Result, dropping its value).
#define MX8_RETURN_IF_ERROR(expr)                    \
  do {                                               \
    auto mx8_status = (expr);                        \
    if (!mx8_status.ok()) return mx8_status.error(); \
  } while (false)
