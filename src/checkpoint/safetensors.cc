#include "checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/strings.h"
#include "checkpoint/tensor_source.h"

namespace mx8 {

namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kSniffBytes = 512;  // enough of the front to name files of other kinds

struct ForeignFile {
  std::string_view start;
  std::string_view what;
};

// What people find in the place of a weight file.
constexpr ForeignFile kForeignFiles[] = {
    {"version https://git-lfs.github.com/spec/",
     "a Git LFS pointer, not the weights; run `git lfs pull` or download the file itself"},
    {"GGUF", "a GGUF file; mx8 reads safetensors"},
    {"PK\x03\x04", "a PyTorch archive; convert it to safetensors"},
    {"<!DOCTYPE", "a web page; the download failed, fetch the file again"},
    {"<html", "a web page; the download failed, fetch the file again"},
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Takes the parser's events and keeps one TensorInfo after the other: no tree of the header is
// built. The grammar is {name: {dtype, shape, data_offsets}, "__metadata__": {string: string}}.
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderHandler(SafetensorsHeader& header, const std::string& path)
      : header_(header), path_(path) {}

  const std::optional<Error>& error() const { return error_; }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool number_integer(number_integer_t value) override { return unexpected(value); }
  bool number_float(number_float_t, const string_t& text) override { return unexpected(text); }
  bool binary(binary_t&) override { return unexpected("bytes"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape) {
      if (value > static_cast<uint64_t>(INT64_MAX)) return unexpected(value);
      tensor_.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place_ == Place::kOffsets && offsets_ < 2) {
      (offsets_++ == 0 ? tensor_.begin : tensor_.end) = value;
      return true;
    }
    return unexpected(value);
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata.emplace_back(std::move(key_), std::move(value));
      return true;
    }
    if (place_ != Place::kTensor || key_ != "dtype") return unexpected(str_cat('"', value, '"'));
    const std::optional<DType> dtype = parse_dtype(value);
    if (!dtype) {
      return fail(unsupported(str_cat(path_, ": tensor \"", tensor_.name, "\" has dtype \"", value,
                                      "\", which mx8 does not know")));
    }
    tensor_.dtype = *dtype;
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop && key_ == "__metadata__") {
      if (std::exchange(has_metadata_, true)) return fail_twice("__metadata__");
      place_ = Place::kMetadata;
    } else if (place_ == Place::kTop) {
      place_ = Place::kTensor;
      tensor_ = TensorInfo{};
      tensor_.name = std::move(key_);
      seen_ = 0;
      offsets_ = 0;
    } else {
      return unexpected("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    key_ = std::move(name);
    if (place_ != Place::kTensor) return true;
    const int bit = key_ == "dtype" ? 1 : key_ == "shape" ? 2 : key_ == "data_offsets" ? 4 : 0;
    if (bit == 0) return bad(str_cat("has an unknown field \"", key_, '"'));
    if ((seen_ & bit) != 0) return bad(str_cat("has the field \"", key_, "\" twice"));
    seen_ |= bit;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kTensor && key_ == "shape") {
      place_ = Place::kShape;
    } else if (place_ == Place::kTensor && key_ == "data_offsets") {
      place_ = Place::kOffsets;
    } else {
      return unexpected("a list");
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::kOffsets && offsets_ != 2) return bad("needs two data_offsets");
    place_ = Place::kTensor;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      if (seen_ != 7) return bad("lacks one of dtype, shape and data_offsets");
      header_.tensors.push_back(std::move(tensor_));
    }
    place_ = place_ == Place::kTop ? Place::kStart : Place::kTop;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return fail(corrupt(str_cat(path_, ": the header is not valid JSON at its byte ", position,
                                "; the file is damaged, fetch it again")));
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets };

  bool fail(Error error) {
    error_ = std::move(error);
    return false;
  }
  bool bad(const std::string& what) {
    return fail(corrupt(str_cat(path_, ": tensor \"", tensor_.name, "\" ", what)));
  }
  bool fail_twice(std::string_view name) {
    return fail(corrupt(str_cat(path_, ": \"", name, "\" is in the header twice")));
  }
  template <class T>
  bool unexpected(const T& found) {
    switch (place_) {
      case Place::kTensor:
        return bad(str_cat("has ", found, " as its ", key_));
      case Place::kShape:
        return bad(str_cat("has ", found, " in its shape"));
      case Place::kOffsets:
        return bad(str_cat("has ", found, " in its data_offsets; two whole numbers belong there"));
      case Place::kMetadata:
        return fail(corrupt(
            str_cat(path_, ": __metadata__ \"", key_, "\" is ", found, "; it must be a string")));
      default:
        return fail(corrupt(str_cat(path_, ": the header has ", found, " where an object belongs",
                                    key_.empty() ? "" : ": ", key_)));
    }
  }

  SafetensorsHeader& header_;
  const std::string& path_;
  std::optional<Error> error_;
  Place place_ = Place::kStart;
  std::string key_;
  TensorInfo tensor_;
  int seen_ = 0;
  int offsets_ = 0;
  bool has_metadata_ = false;
};

Result<void> check_unique(const SafetensorsHeader& header, const std::string& path) {
  std::vector<std::string_view> names;
  names.reserve(header.tensors.size());
  for (const TensorInfo& tensor : header.tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    return corrupt(str_cat(path, ": tensor \"", *twice, "\" is in the header twice"));
  }
  return {};
}

// Offsets are still relative to the first byte after the header.
Result<void> check_extent(const TensorInfo& t, uint64_t data_bytes, uint64_t file_size,
                          const std::string& path) {
  const std::string who = str_cat(path, ": tensor \"", t.name, "\" ");
  if (t.begin > t.end) {
    return corrupt(str_cat(who, "begins at ", t.begin, " and ends before, at ", t.end));
  }
  if (t.end > data_bytes) {
    return corrupt(str_cat(who, "ends ", t.end - data_bytes, " bytes after the file's end (",
                           file_size, " bytes): the file is cut off, fetch it again"));
  }
  const std::optional<uint64_t> need = tensor_bytes(t.dtype, t.shape);
  if (!need || *need != t.end - t.begin) {
    return corrupt(str_cat(who, "has ", t.end - t.begin, " bytes; ", dtype_name(t.dtype), " ",
                           describe_shape(t.shape), " takes ",
                           need ? std::to_string(*need) : "more than 2^64"));
  }
  return {};
}

// Sorts the tensors by place; every data byte must belong to exactly one.
Result<void> check_layout(SafetensorsHeader& header, uint64_t file_size, const std::string& path) {
  const uint64_t data_bytes = file_size - header.data_begin;
  for (const TensorInfo& tensor : header.tensors) {
    MX8_RETURN_IF_ERROR(check_extent(tensor, data_bytes, file_size, path));
  }
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const TensorInfo& a, const TensorInfo& b) {
              return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
            });
  uint64_t at = 0;
  const TensorInfo* previous = nullptr;
  for (const TensorInfo& tensor : header.tensors) {
    if (tensor.begin < at) {
      return corrupt(
          str_cat(path, ": tensors \"", previous->name, "\" and \"", tensor.name, "\" overlap"));
    }
    if (tensor.begin > at) {
      return corrupt(str_cat(path, ": ", tensor.begin - at, " bytes before tensor \"", tensor.name,
                             "\" belong to no tensor"));
    }
    at = tensor.end;
    previous = &tensor;
  }
  if (at != data_bytes) {
    return corrupt(str_cat(path, ": ", data_bytes - at,
                           " bytes after the last tensor belong to no tensor; the file is damaged "
                           "or was written by something else"));
  }
  for (TensorInfo& tensor : header.tensors) {
    tensor.begin += header.data_begin;
    tensor.end += header.data_begin;
  }
  return {};
}

}  // namespace

int64_t TensorInfo::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

std::string describe_shape(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += str_cat(i > 0 ? ", " : "", shape[i]);
  return text + "]";
}

Result<uint64_t> safetensors_header_length(std::span<const std::byte> front, uint64_t file_size,
                                           const std::string& path) {
  for (const ForeignFile& foreign : kForeignFiles) {
    if (as_text(front).starts_with(foreign.start)) {
      return corrupt(str_cat(path, " is ", foreign.what));
    }
  }
  if (file_size == 0) return corrupt(str_cat(path, " is empty; fetch it again"));
  if (file_size < kLengthBytes) {
    return corrupt(str_cat(path, " has only ", file_size,
                           " bytes, too few for a safetensors header; fetch it again"));
  }
  MX8_CHECK(front.size() >= kLengthBytes, front.size());
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<uint64_t>(front[i]) << (8 * i);
  }
  if (length > file_size - kLengthBytes) {
    return corrupt(str_cat(path, ": the header should have ", length, " bytes, but the file has ",
                           file_size, ": it is cut off or not a safetensors file"));
  }
  if (length > kSafetensorsMaxHeader) {
    return corrupt(str_cat(path, ": the header should have ", length, " bytes; the limit is ",
                           kSafetensorsMaxHeader, ": not a safetensors file"));
  }
  return length;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t file_size,
                                                   const std::string& path) {
  MX8_CHECK(file_size >= kLengthBytes + json.size(), file_size, json.size());
  SafetensorsHeader header;
  header.data_begin = kLengthBytes + json.size();
  HeaderHandler handler(header, path);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &handler)) return *handler.error();
  MX8_RETURN_IF_ERROR(check_unique(header, path));
  MX8_RETURN_IF_ERROR(check_layout(header, file_size, path));
  return header;
}

Result<SafetensorsHeader> read_safetensors_header(const ReadFile& file) {
  std::vector<std::byte> front(std::min<uint64_t>(file.size(), kSniffBytes));
  MX8_RETURN_IF_ERROR(file.read(0, front));
  MX8_TRY(const uint64_t length, safetensors_header_length(front, file.size(), file.path()));
  std::string json(length, '\0');
  MX8_RETURN_IF_ERROR(file.read(kLengthBytes, std::as_writable_bytes(std::span(json))));
  return parse_safetensors_header(json, file.size(), file.path());
}

Result<SafetensorsHeader> read_safetensors_header(const MmapFile& file) {
  const std::span<const std::byte> all = file.bytes();
  const auto front = all.first(std::min(all.size(), kSniffBytes));
  MX8_TRY(const uint64_t length, safetensors_header_length(front, all.size(), file.path()));
  return parse_safetensors_header(as_text(all.subspan(kLengthBytes, length)), all.size(),
                                  file.path());
}

}  // namespace mx8
