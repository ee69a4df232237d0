#include "checkpoint/json.h"

#include <cmath>

#include "base/strings.h"

namespace mx8::json {

namespace {

constexpr size_t kMaxDepth = 64;

// Builds the value from the parser's events and stops at the first repeated key.
class StrictBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit StrictBuilder(Json& root) : root_(root) {}

  const std::string& failure() const { return failure_; }

  bool null() override { return put(nullptr) != nullptr; }
  bool boolean(bool value) override { return put(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return put(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return put(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override {
    return put(value) != nullptr;
  }
  bool string(string_t& value) override { return put(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const auto [at, fresh] = stack_.back()->get_ref<Json::object_t&>().emplace(name, nullptr);
    if (!fresh) {
      failure_ = str_cat("the key \"", name, "\" appears twice in one object");
      return false;
    }
    slot_ = &at->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception&) override {
    failure_ = str_cat("it is not valid JSON at byte ", position);
    return false;
  }

 private:
  Json* put(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (stack_.back()->is_array()) {
      auto& items = stack_.back()->get_ref<Json::array_t&>();
      return &items.emplace_back(std::move(value));
    }
    *slot_ = std::move(value);
    return slot_;
  }

  bool open(Json container) {
    if (stack_.size() == kMaxDepth) {
      failure_ = str_cat("its nesting is deeper than ", kMaxDepth);
      return false;
    }
    stack_.push_back(put(std::move(container)));
    return true;
  }

  bool close() {
    stack_.pop_back();
    return true;
  }

  Json& root_;
  std::vector<Json*> stack_;
  Json* slot_ = nullptr;
  std::string failure_;
};

bool is_whole(const Json& value, int64_t low, int64_t high, int64_t& out) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return false;
  }
  if (!value.is_number_integer()) return false;
  out = value.get<int64_t>();
  return out >= low && out <= high;
}

bool is_number(const Json& value, double low, double high, double& out) {
  if (!value.is_number()) return false;
  out = value.get<double>();
  return std::isfinite(out) && out >= low && out <= high;
}

std::string whole_range(int64_t low, int64_t high) {
  return str_cat("a whole number from ", low, " to ", high);
}

std::string number_range(double low, double high) {
  return str_cat("a number from ", low, " to ", high);
}

}  // namespace

Result<Json> parse(std::string_view text, const std::string& path) {
  Json root;
  StrictBuilder builder(root);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    return corrupt(str_cat(path, ": ", builder.failure()));
  }
  return root;
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

Fields::Fields(const Json& object, std::string path, std::string prefix)
    : object_(&object), path_(std::move(path)), prefix_(std::move(prefix)) {
  MX8_CHECK(object.is_object(), path_, prefix_);
}

std::string Fields::name(std::string_view key) const {
  return prefix_.empty() ? std::string(key) : str_cat(prefix_, ".", key);
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_->items()) {
    if (!read_.contains(key)) keys.push_back(key);
  }
  return keys;
}

const Json* Fields::find(std::string_view key) const {
  if (!read_.contains(key)) read_.emplace(key);
  const auto at = object_->find(key);
  return at == object_->end() || at->is_null() ? nullptr : &*at;
}

Error Fields::wrong(std::string_view key, const std::string& must) const {
  const Json* value = find(key);
  return invalid_argument(str_cat(path_, ": \"", name(key), "\" is ",
                                  value == nullptr ? "null" : shown(*value), "; it must be ",
                                  must));
}

Error Fields::missing(std::string_view key, const std::string& must) const {
  return invalid_argument(str_cat(path_, ": \"", name(key), "\" is missing; it must be ", must));
}

Result<void> Fields::integer(std::string_view key, int64_t low, int64_t high, int64_t& out) const {
  const Json* value = find(key);
  if (value != nullptr && !is_whole(*value, low, high, out)) {
    return wrong(key, whole_range(low, high));
  }
  return {};
}

Result<void> Fields::integer(std::string_view key, int64_t low, int64_t high,
                             std::optional<int64_t>& out) const {
  if (find(key) == nullptr) return {};
  return integer(key, low, high, out.emplace());
}

Result<void> Fields::required_integer(std::string_view key, int64_t low, int64_t high,
                                      int64_t& out) const {
  if (find(key) == nullptr) return missing(key, whole_range(low, high));
  return integer(key, low, high, out);
}

Result<void> Fields::number(std::string_view key, double low, double high, double& out) const {
  const Json* value = find(key);
  if (value != nullptr && !is_number(*value, low, high, out)) {
    return wrong(key, number_range(low, high));
  }
  return {};
}

Result<void> Fields::number(std::string_view key, double low, double high,
                            std::optional<double>& out) const {
  if (find(key) == nullptr) return {};
  return number(key, low, high, out.emplace());
}

Result<void> Fields::required_number(std::string_view key, double low, double high,
                                     double& out) const {
  if (find(key) == nullptr) return missing(key, number_range(low, high));
  return number(key, low, high, out);
}

Result<void> Fields::boolean(std::string_view key, bool& out) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_boolean()) return wrong(key, "true or false");
  out = value->get<bool>();
  return {};
}

Result<void> Fields::boolean(std::string_view key, std::optional<bool>& out) const {
  if (find(key) == nullptr) return {};
  return boolean(key, out.emplace());
}

Result<void> Fields::string(std::string_view key, std::string& out) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_string()) return wrong(key, "a string");
  out = value->get<std::string>();
  return {};
}

Result<void> Fields::strings(std::string_view key, std::vector<std::string>& out) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) return wrong(key, "a list of strings");
  out.clear();
  for (const Json& item : *value) {
    if (!item.is_string()) return wrong(key, "a list of strings");
    out.push_back(item.get<std::string>());
  }
  return {};
}

Result<void> Fields::integers(std::string_view key, int64_t low, int64_t high,
                              std::vector<int64_t>& out) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  out.clear();
  for (const Json& item : value->is_array() ? *value : Json::array({*value})) {
    int64_t number = 0;
    if (!is_whole(item, low, high, number)) {
      return wrong(key, "a list of whole numbers from " + std::to_string(low) + " to " +
                            std::to_string(high));
    }
    out.push_back(number);
  }
  return {};
}

Result<void> Fields::numbers(std::string_view key, double low, double high,
                             std::vector<double>& out) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  const std::string must = str_cat("a list of numbers from ", low, " to ", high);
  if (!value->is_array()) return wrong(key, must);
  out.clear();
  for (const Json& item : *value) {
    double number = 0;
    if (!is_number(item, low, high, number)) return wrong(key, must);
    out.push_back(number);
  }
  return {};
}

Result<std::optional<Fields>> Fields::object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::optional<Fields>();
  if (!value->is_object()) return wrong(key, "an object");
  return std::optional<Fields>(Fields(*value, path_, name(key)));
}

}  // namespace mx8::json
