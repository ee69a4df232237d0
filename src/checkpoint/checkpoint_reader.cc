#include "checkpoint/checkpoint_reader.h"

#include <dirent.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/mmap_file.h"
#include "base/strings.h"
#include "base/text_file.h"
#include "checkpoint/filesystem_kind.h"
#include "checkpoint/json.h"
#include "checkpoint/shard_index.h"
#include "checkpoint/shard_part.h"

namespace mx8 {

namespace {

constexpr uint64_t kMaxIndexBytes = uint64_t{256} << 20;
constexpr uint64_t kScratchBytes = uint64_t{8} << 20;  // for column shards of files that are read

struct OpenFile {
  std::string name;
  std::string path;
  MmapFile map;     // kMmap
  ReadFile reader;  // kRead, or to drop the page cache
  SafetensorsHeader header;
};

std::vector<std::string> list_folder(const std::string& folder) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir)) names.emplace_back(entry->d_name);
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> weight_files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const std::string& name : list_folder(folder)) {
    const std::string_view n = name;
    if (n.ends_with(".safetensors") || n.ends_with(".gguf") || n.ends_with(".bin") ||
        n.ends_with(".pt") || n.ends_with(".pth")) {
      names.push_back(name);
    }
  }
  return names;
}

std::string short_list(std::vector<std::string> names) {
  constexpr size_t kShown = 4;
  if (names.empty()) return "none";
  const size_t more = names.size() > kShown ? names.size() - kShown : 0;
  names.resize(names.size() - more);
  return join(names, ", ") + (more > 0 ? str_cat(" and ", more, " more") : "");
}

// A tensor whose name is the wanted one with a prefix more or less, as a hint.
std::string near_name(std::string_view wanted, const std::vector<TensorInfo>& tensors) {
  for (const TensorInfo& t : tensors) {
    const bool longer = t.name.size() > wanted.size();
    const std::string_view whole = longer ? std::string_view(t.name) : wanted;
    const std::string_view part = longer ? wanted : std::string_view(t.name);
    if (part.size() < whole.size() && whole.ends_with(part) &&
        whole[whole.size() - part.size() - 1] == '.' && part.find('.') != std::string_view::npos) {
      return str_cat("; they hold \"", t.name, "\": tensors must be named as Transformers names",
                     " them for this architecture");
    }
  }
  return "";
}

Error no_weights(const std::string& folder) {
  return not_found(str_cat("no ", kSingleFileName, " and no ", kShardIndexName, " in ", folder,
                           " (weight files there: ", short_list(weight_files_in(folder)),
                           "); mx8 reads safetensors checkpoints"));
}

Result<void> check_shards_exist(const ShardIndex& index, const std::string& folder) {
  std::vector<std::string> missing;
  for (const std::string& name : index.files) {
    if (!file_exists(folder + "/" + name)) missing.push_back(name);
  }
  if (missing.empty()) return {};
  return not_found(str_cat(folder, "/", kShardIndexName, " names ", missing.size(), " of ",
                           index.files.size(), " files that are not there: ", short_list(missing),
                           "; present: ", short_list(weight_files_in(folder)),
                           ". The index is stale or the download incomplete: fetch both again"));
}

Error stale_index(const OpenFile& file, std::string_view tensor, const std::string& what) {
  return corrupt(str_cat(file.path, ": tensor \"", tensor, "\" ", what, " ", kShardIndexName,
                         ": the index is stale or the file damaged, fetch both again"));
}

// The index and the file must list the same tensors.
Result<void> check_against_index(const OpenFile& file, uint32_t file_id, const ShardIndex& index) {
  std::vector<std::string_view> present;
  for (const TensorInfo& tensor : file.header.tensors) {
    present.push_back(tensor.name);
    const auto at = std::lower_bound(
        index.tensors.begin(), index.tensors.end(), tensor.name,
        [](const auto& entry, const std::string& name) { return entry.first < name; });
    if (at == index.tensors.end() || at->first != tensor.name) {
      return stale_index(file, tensor.name, "is not listed in");
    }
    if (at->second != file_id) {
      return stale_index(file, tensor.name,
                         str_cat("is listed as part of ", index.files[at->second], " in"));
    }
  }
  std::sort(present.begin(), present.end());
  for (const auto& [name, id] : index.tensors) {
    if (id == file_id && !std::binary_search(present.begin(), present.end(), name)) {
      return stale_index(file, name, "is not in this file, but listed there in");
    }
  }
  return {};
}

Result<OpenFile> open_file(const std::string& folder, const std::string& name, LoadMode mode,
                           bool keep_reader) {
  OpenFile file;
  file.name = name;
  file.path = folder + "/" + name;
  if (mode == LoadMode::kMmap) {
    MX8_TRY(file.map, MmapFile::open(file.path));
    MX8_TRY(file.header, read_safetensors_header(file.map));
  }
  if (mode == LoadMode::kRead || keep_reader) {
    MX8_TRY(file.reader, ReadFile::open(file.path));
  }
  if (mode == LoadMode::kRead) {
    MX8_TRY(file.header, read_safetensors_header(file.reader));
  }
  return file;
}

// Copies the columns of a part out of `rows` whole rows at `source`.
void copy_columns(const TensorInfo& info, const ShardPart& part, const std::byte* source,
                  int64_t rows, std::byte* target) {
  const int64_t element = dtype_size(info.dtype);
  const int64_t row_bytes = part.cols * element;
  const int64_t part_bytes = part.col_range.size() * element;
  const std::byte* from = source + part.col_range.begin * element;
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(target + r * part_bytes, from + r * row_bytes, static_cast<size_t>(part_bytes));
  }
}

// Calls body(offset of the first whole row in the file, rows, place in the target) for each run of
// rows of the part; runs are at most `max_rows` long.
template <class Body>
Result<void> for_each_run(const TensorInfo& info, const ShardPart& part, int64_t max_rows,
                          Body body) {
  const uint64_t element = static_cast<uint64_t>(dtype_size(info.dtype));
  const uint64_t row_bytes = static_cast<uint64_t>(part.cols) * element;
  uint64_t at = 0;
  for (int64_t o = 0; o < part.outer; ++o) {
    for (int64_t r = part.row_range.begin; r < part.row_range.end; r += max_rows) {
      const int64_t count = std::min(max_rows, part.row_range.end - r);
      const uint64_t row = static_cast<uint64_t>(o * part.rows + r);
      Result<void> status = body(info.begin + row * row_bytes, count, at);
      if (!status.ok()) return status;
      at += static_cast<uint64_t>(count * part.col_range.size()) * element;
    }
  }
  return {};
}

Result<TensorData> load_mapped(const OpenFile& file, const TensorInfo& info,
                               const ShardPart& part) {
  const uint64_t element = static_cast<uint64_t>(dtype_size(info.dtype));
  const std::span<const std::byte> all = file.map.bytes();
  if (part.contiguous()) {
    const uint64_t row_bytes = static_cast<uint64_t>(part.cols) * element;
    const uint64_t skip = static_cast<uint64_t>(part.row_range.begin) * row_bytes;
    const auto bytes = all.subspan(info.begin + skip, *tensor_bytes(info.dtype, part.shape));
    // Old writers don't pad the header, so the data may start anywhere.
    if (reinterpret_cast<uintptr_t>(bytes.data()) % element == 0) {
      return TensorData::view(info.dtype, part.shape, bytes);
    }
  }
  TensorData data = TensorData::allocate(info.dtype, part.shape);
  std::byte* const target = data.mutable_bytes().data();
  const auto copy_rows = [&](uint64_t offset, int64_t rows, uint64_t at) -> Result<void> {
    copy_columns(info, part, all.data() + offset, rows, target + at);
    return {};
  };
  MX8_RETURN_IF_ERROR(for_each_run(info, part, part.rows, copy_rows));
  return data;
}

Result<TensorData> load_read(const OpenFile& file, const TensorInfo& info, const ShardPart& part) {
  const uint64_t row_bytes =
      static_cast<uint64_t>(part.cols) * static_cast<uint64_t>(dtype_size(info.dtype));
  TensorData data = TensorData::allocate(info.dtype, part.shape);
  const std::span<std::byte> target = data.mutable_bytes();
  if (part.whole_rows()) {
    const auto read_rows = [&](uint64_t offset, int64_t rows, uint64_t at) {
      return file.reader.read(offset, target.subspan(at, static_cast<uint64_t>(rows) * row_bytes));
    };
    MX8_RETURN_IF_ERROR(for_each_run(info, part, part.rows, read_rows));
    return data;
  }
  const int64_t max_rows = std::max<int64_t>(1, kScratchBytes / row_bytes);
  std::vector<std::byte> scratch(std::min<uint64_t>(max_rows, part.row_range.size()) * row_bytes);
  const auto read_columns = [&](uint64_t offset, int64_t rows, uint64_t at) -> Result<void> {
    const auto whole_rows = std::span(scratch).first(static_cast<uint64_t>(rows) * row_bytes);
    Result<void> status = file.reader.read(offset, whole_rows);
    if (status.ok()) copy_columns(info, part, whole_rows.data(), rows, target.data() + at);
    return status;
  };
  MX8_RETURN_IF_ERROR(for_each_run(info, part, max_rows, read_columns));
  return data;
}

Result<void> check_request(const TensorInfo& info, const TensorRequest& request,
                           const std::string& path) {
  const auto& dtypes = request.dtypes;
  if (std::find(dtypes.begin(), dtypes.end(), info.dtype) == dtypes.end()) {
    std::vector<std::string> names;
    for (const DType dtype : dtypes) names.emplace_back(dtype_name(dtype));
    return corrupt(str_cat(path, ": tensor \"", info.name, "\" is ", dtype_name(info.dtype),
                           "; the model and its quantisation config want ", join(names, " or ")));
  }
  if (info.shape != request.shape) {
    return corrupt(str_cat(path, ": tensor \"", info.name, "\" is ", describe_shape(info.shape),
                           "; config.json asks for ", describe_shape(request.shape)));
  }
  return {};
}

}  // namespace

std::string_view load_mode_name(LoadMode mode) {
  switch (mode) {
    case LoadMode::kAuto:
      return "auto";
    case LoadMode::kMmap:
      return "mmap";
    default:
      return "read";
  }
}

std::optional<LoadMode> parse_load_mode(std::string_view name) {
  for (const LoadMode mode : {LoadMode::kAuto, LoadMode::kMmap, LoadMode::kRead}) {
    if (name == load_mode_name(mode)) return mode;
  }
  return std::nullopt;
}

struct CheckpointReader::State {
  std::string folder;
  LoadMode mode = LoadMode::kMmap;
  bool drop_page_cache = false;
  std::vector<OpenFile> files;
  std::vector<TensorInfo> tensors;  // sorted by name
  std::vector<uint32_t> file_ids;   // of each tensor
  std::unique_ptr<std::atomic<bool>[]> used;

  // The place of a tensor in `tensors`, or its size.
  size_t index_of(std::string_view name) const {
    const auto at =
        std::lower_bound(tensors.begin(), tensors.end(), name,
                         [](const TensorInfo& info, std::string_view n) { return info.name < n; });
    const bool found = at != tensors.end() && at->name == name;
    return found ? static_cast<size_t>(at - tensors.begin()) : tensors.size();
  }

  // Moves the tensors out of the headers.
  void collect() {
    std::vector<std::pair<TensorInfo, uint32_t>> all;
    for (uint32_t id = 0; id < files.size(); ++id) {
      for (TensorInfo& info : files[id].header.tensors) all.emplace_back(std::move(info), id);
      files[id].header.tensors.clear();
    }
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.first.name < b.first.name; });
    for (auto& [info, id] : all) {
      tensors.push_back(std::move(info));
      file_ids.push_back(id);
    }
    used = std::make_unique<std::atomic<bool>[]>(tensors.size());
  }
};

CheckpointReader::CheckpointReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
CheckpointReader::~CheckpointReader() = default;

Result<std::unique_ptr<CheckpointReader>> CheckpointReader::open(const std::string& folder,
                                                                 const CheckpointOptions& options) {
  ShardIndex index;
  const std::string index_path = folder + "/" + kShardIndexName;
  const bool sharded = file_exists(index_path);
  if (sharded) {
    MX8_TRY(const std::string text, read_text_file(index_path, kMaxIndexBytes));
    MX8_TRY(index, parse_shard_index(text, index_path));
    MX8_RETURN_IF_ERROR(check_shards_exist(index, folder));
  } else if (file_exists(folder + "/" + kSingleFileName)) {
    index.files = {kSingleFileName};
  } else if (file_exists(folder)) {
    return no_weights(folder);
  } else {
    return not_found(str_cat("the model folder ", folder, " does not exist"));
  }

  auto state = std::make_unique<State>();
  state->folder = folder;
  state->drop_page_cache = options.drop_page_cache;
  state->mode = options.mode;
  if (state->mode == LoadMode::kAuto) {
    const std::string first = folder + "/" + index.files.front();
    state->mode = lies_on_network_filesystem(first) ? LoadMode::kRead : LoadMode::kMmap;
  }
  for (uint32_t id = 0; id < index.files.size(); ++id) {
    MX8_TRY(OpenFile file,
            open_file(folder, index.files[id], state->mode, options.drop_page_cache));
    if (sharded) MX8_RETURN_IF_ERROR(check_against_index(file, id, index));
    state->files.push_back(std::move(file));
  }
  state->collect();
  return std::unique_ptr<CheckpointReader>(new CheckpointReader(std::move(state)));
}

const std::string& CheckpointReader::folder() const { return state_->folder; }
LoadMode CheckpointReader::mode() const { return state_->mode; }
const std::vector<TensorInfo>& CheckpointReader::tensors() const { return state_->tensors; }

const std::string& CheckpointReader::file_of(std::string_view name) const {
  const size_t i = state_->index_of(name);
  MX8_CHECK(i < state_->tensors.size(), name);
  return state_->files[state_->file_ids[i]].path;
}

std::vector<std::string> CheckpointReader::files() const {
  std::vector<std::string> paths;
  for (const OpenFile& file : state_->files) paths.push_back(file.path);
  return paths;
}

uint64_t CheckpointReader::total_bytes() const {
  uint64_t total = 0;
  for (const TensorInfo& info : state_->tensors) total += info.bytes();
  return total;
}

Result<TensorData> CheckpointReader::load_whole(std::string_view name) {
  const TensorInfo* info = find(name);
  TensorRequest request;
  request.name = std::string(name);
  if (info != nullptr) {
    request.dtypes = {info->dtype};
    request.shape = info->shape;
  }
  return load(request);
}

bool CheckpointReader::has(std::string_view name, bool) const { return find(name) != nullptr; }

const TensorInfo* CheckpointReader::find(std::string_view name) const {
  const size_t i = state_->index_of(name);
  return i < state_->tensors.size() ? &state_->tensors[i] : nullptr;
}

Result<TensorData> CheckpointReader::load(const TensorRequest& request) {
  const size_t i = state_->index_of(request.name);
  if (i == state_->tensors.size()) {
    return not_found(str_cat("tensor \"", request.name, "\" is missing from the ",
                             state_->files.size(), " weight file(s) of ", state_->folder,
                             near_name(request.name, state_->tensors)));
  }
  const TensorInfo& info = state_->tensors[i];
  const OpenFile& file = state_->files[state_->file_ids[i]];
  MX8_RETURN_IF_ERROR(check_request(info, request, file.path));
  MX8_TRY(const ShardPart part, shard_part(info.name, info.shape, request.shard));
  state_->used[i].store(true, std::memory_order_relaxed);
  return state_->mode == LoadMode::kMmap ? load_mapped(file, info, part)
                                         : load_read(file, info, part);
}

void CheckpointReader::release(std::string_view name) {
  const size_t i = state_->index_of(name);
  MX8_CHECK(i < state_->tensors.size(), name);
  const TensorInfo& info = state_->tensors[i];
  const OpenFile& file = state_->files[state_->file_ids[i]];
  if (state_->mode == LoadMode::kMmap) file.map.release(info.begin, info.bytes());
  if (state_->drop_page_cache) file.reader.drop_cache(info.begin, info.bytes());
}

void CheckpointReader::mark_used(std::string_view name) {
  const size_t i = state_->index_of(name);
  MX8_CHECK(i < state_->tensors.size(), name);
  state_->used[i].store(true, std::memory_order_relaxed);
}

std::vector<std::string> CheckpointReader::unused() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < state_->tensors.size(); ++i) {
    if (!state_->used[i].load(std::memory_order_relaxed)) names.push_back(state_->tensors[i].name);
  }
  return names;
}

}  // namespace mx8
