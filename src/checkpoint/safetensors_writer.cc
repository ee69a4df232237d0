#include "checkpoint/safetensors_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "checkpoint/file_io.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shard_index.h"
#include "checkpoint/tensor_source.h"

namespace mx8 {

namespace {

constexpr const char* kPartial = ".partial";

struct Shard {
  std::string name;
  std::vector<size_t> tensors;  // in the order of their bytes
};

struct Place {
  size_t shard = 0;
  uint64_t offset = 0;  // in the file
  uint64_t size = 0;
  uint64_t written = 0;
};

// Fills shards in the declared order.
std::vector<Shard> assign_shards(const std::vector<uint64_t>& sizes, uint64_t max_bytes) {
  std::vector<Shard> shards(1);
  uint64_t filled = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (filled > 0 && filled + sizes[i] > max_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().tensors.push_back(i);
    filled += sizes[i];
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    shards[i].name = shards.size() == 1 ? kSingleFileName : name;
  }
  return shards;
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string metadata_json(const SafetensorsMetadata& metadata) {
  std::string text = "\"__metadata__\":{";
  for (size_t i = 0; i < metadata.size(); ++i) {
    text += str_cat(i > 0 ? "," : "", quoted(metadata[i].first), ":", quoted(metadata[i].second));
  }
  return text + "}";
}

std::string tensor_json(const TensorDecl& tensor, uint64_t begin, uint64_t end) {
  std::string shape;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    shape += str_cat(i > 0 ? "," : "", tensor.shape[i]);
  }
  return str_cat(quoted(tensor.name), ":{\"dtype\":\"", dtype_name(tensor.dtype), "\",\"shape\":[",
                 shape, "],\"data_offsets\":[", begin, ",", end, "]}");
}

// The length and the header, padded so that the data starts at a multiple of 8.
std::string file_front(std::string header) {
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string front;
  for (int i = 0; i < 8; ++i) {
    front.push_back(static_cast<char>((static_cast<uint64_t>(header.size()) >> (8 * i)) & 0xFF));
  }
  return front + header;
}

}  // namespace

struct SafetensorsWriter::State {
  std::string folder;
  std::vector<TensorDecl> tensors;
  std::vector<uint64_t> sizes;
  std::vector<Shard> shards;
  std::vector<std::string> file_names;
  std::map<std::string, Place, std::less<>> places;
  OutputFile open_file;  // of open_shard
  size_t open_shard = 0;
  bool finished = false;

  std::string path(size_t shard) const { return folder + "/" + shards[shard].name; }

  ~State() {
    if (finished) return;
    for (size_t i = 0; i < shards.size(); ++i) ::unlink((path(i) + kPartial).c_str());
  }

  Result<void> declare() {
    for (const TensorDecl& tensor : tensors) {
      const std::optional<uint64_t> size = tensor_bytes(tensor.dtype, tensor.shape);
      MX8_CHECK(size.has_value(), tensor.name, describe_shape(tensor.shape));
      sizes.push_back(*size);
      if (!places.emplace(tensor.name, Place{}).second || tensor.name == "__metadata__") {
        return invalid_argument(
            str_cat("tensor \"", tensor.name, "\" cannot be written twice or under this name"));
      }
    }
    return {};
  }

  Result<void> start_shard(size_t i, const SafetensorsMetadata& metadata) {
    Shard& shard = shards[i];
    std::stable_sort(shard.tensors.begin(), shard.tensors.end(), [this](size_t a, size_t b) {
      return dtype_size(tensors[a].dtype) > dtype_size(tensors[b].dtype);
    });
    std::string header = str_cat("{", metadata_json(metadata));
    uint64_t at = 0;
    for (const size_t t : shard.tensors) {
      header += str_cat(",", tensor_json(tensors[t], at, at + sizes[t]));
      at += sizes[t];
    }
    const std::string front = file_front(header + "}");
    if (front.size() > kSafetensorsMaxHeader) {
      return unsupported(str_cat(path(i), ": a header of ", front.size(),
                                 " bytes is above the format's limit; use smaller shards"));
    }
    uint64_t offset = front.size();
    for (const size_t t : shard.tensors) {
      places.find(tensors[t].name)->second = {i, offset, sizes[t], 0};
      offset += sizes[t];
    }
    MX8_TRY(const OutputFile file, OutputFile::create(path(i) + kPartial));
    MX8_RETURN_IF_ERROR(file.write(0, std::as_bytes(std::span(front))));
    return file.resize(offset);
  }

  uint64_t total_bytes() const {
    uint64_t total = 0;
    for (const uint64_t size : sizes) total += size;
    return total;
  }

  std::string index_json() const {
    std::string text = str_cat("{\n  \"metadata\": {\n    \"total_size\": ", total_bytes(),
                               "\n  },\n  \"weight_map\": {");
    const char* separator = "\n";
    for (const auto& [name, place] : places) {
      text += str_cat(separator, "    ", quoted(name), ": ", quoted(shards[place.shard].name));
      separator = ",\n";
    }
    return text + "\n  }\n}\n";
  }
};

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& folder,
                                                    std::vector<TensorDecl> tensors,
                                                    uint64_t max_shard_bytes,
                                                    const SafetensorsMetadata& metadata) {
  auto state = std::make_unique<State>();
  state->folder = folder;
  state->tensors = std::move(tensors);
  MX8_RETURN_IF_ERROR(state->declare());
  state->shards = assign_shards(state->sizes, max_shard_bytes);
  for (size_t i = 0; i < state->shards.size(); ++i) {
    MX8_RETURN_IF_ERROR(state->start_shard(i, metadata));
    state->file_names.push_back(state->shards[i].name);
  }
  return SafetensorsWriter(std::move(state));
}

Result<void> SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  const auto at = state_->places.find(name);
  MX8_CHECK(at != state_->places.end() && !state_->finished, name);
  Place& place = at->second;
  MX8_CHECK(bytes.size() <= place.size - place.written, name, bytes.size(), place.written,
            place.size);
  if (!state_->open_file.is_open() || state_->open_shard != place.shard) {
    MX8_TRY(state_->open_file, OutputFile::reopen(state_->path(place.shard) + kPartial));
    state_->open_shard = place.shard;
  }
  MX8_RETURN_IF_ERROR(state_->open_file.write(place.offset + place.written, bytes));
  place.written += bytes.size();
  return {};
}

Result<void> SafetensorsWriter::finish() {
  for (const auto& [name, place] : state_->places) {
    MX8_CHECK(place.written == place.size, name, place.written, place.size);
  }
  state_->open_file = OutputFile();
  for (size_t i = 0; i < state_->shards.size(); ++i) {
    MX8_TRY(const OutputFile file, OutputFile::reopen(state_->path(i) + kPartial));
    MX8_RETURN_IF_ERROR(file.sync());
  }
  for (size_t i = 0; i < state_->shards.size(); ++i) {
    MX8_RETURN_IF_ERROR(rename_synced(state_->path(i) + kPartial, state_->path(i)));
  }
  state_->finished = true;
  if (state_->shards.size() == 1) return {};
  return write_file_atomic(state_->folder + "/" + kShardIndexName, state_->index_json());
}

const std::vector<std::string>& SafetensorsWriter::files() const { return state_->file_names; }

uint64_t SafetensorsWriter::total_bytes() const { return state_->total_bytes(); }

}  // namespace mx8
