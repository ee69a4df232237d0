// Strict JSON for the .cc files of this layer; no header includes it.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mx8::json {

using Json = nlohmann::json;

// Refuses, beside broken JSON, keys that appear twice in an object and nesting deeper than 64.
Result<Json> parse(std::string_view text, const std::string& path);

// A value as a message shows it: at most 60 characters.
std::string shown(const Json& value);

// Typed access to the fields of an object. A field that is absent or null leaves `out` alone; any
// other type or a value out of range is an error that names the file and the field.
class Fields {
 public:
  // `object` must outlive this. `prefix` names the object inside the file: "rope_scaling".
  Fields(const Json& object, std::string path, std::string prefix = "");

  const std::string& path() const { return path_; }
  const Json& json() const { return *object_; }
  std::string name(std::string_view key) const;  // "rope_scaling.factor"

  const Json* find(std::string_view key) const;  // null if the field is absent or null
  // The keys of the object that nothing above has asked for, sorted.
  std::vector<std::string> unread() const;
  Error wrong(std::string_view key, const std::string& must) const;
  Error missing(std::string_view key, const std::string& must) const;

  Result<void> integer(std::string_view key, int64_t low, int64_t high, int64_t& out) const;
  Result<void> integer(std::string_view key, int64_t low, int64_t high,
                       std::optional<int64_t>& out) const;
  Result<void> required_integer(std::string_view key, int64_t low, int64_t high,
                                int64_t& out) const;
  Result<void> number(std::string_view key, double low, double high, double& out) const;
  Result<void> number(std::string_view key, double low, double high,
                      std::optional<double>& out) const;
  Result<void> required_number(std::string_view key, double low, double high, double& out) const;
  Result<void> boolean(std::string_view key, bool& out) const;
  Result<void> boolean(std::string_view key, std::optional<bool>& out) const;
  Result<void> string(std::string_view key, std::string& out) const;
  Result<void> strings(std::string_view key, std::vector<std::string>& out) const;
  Result<void> integers(std::string_view key, int64_t low, int64_t high,
                        std::vector<int64_t>& out) const;
  Result<void> numbers(std::string_view key, double low, double high,
                       std::vector<double>& out) const;
  Result<std::optional<Fields>> object(std::string_view key) const;

 private:
  const Json* object_;
  std::string path_;
  std::string prefix_;
  mutable std::set<std::string, std::less<>> read_;
};

}  // namespace mx8::json
