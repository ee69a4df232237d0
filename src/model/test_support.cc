#include "model/test_support.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/strings.h"

namespace mx8::test {

namespace fs = std::filesystem;

std::string data_folder(const std::string& name) {
  return str_cat(MX8_SOURCE_DIR, "/tests/data/", name);
}

std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

template <class T>
T value_of(Result<T> result) {
  MX8_CHECK(result.ok(), result.error().message);
  return std::move(result).value();
}

template <class T>
std::vector<T> elements(const MmapFile& file, const SafetensorsHeader& header,
                        const std::string& name) {
  for (const TensorInfo& info : header.tensors) {
    if (info.name != name) continue;
    std::vector<T> out(static_cast<size_t>(info.elements()));
    MX8_CHECK(info.bytes() == out.size() * sizeof(T), name);
    std::memcpy(out.data(), file.bytes().data() + info.begin, info.bytes());
    return out;
  }
  return {};
}

}  // namespace

std::vector<Golden> read_goldens(const std::string& path) {
  const MmapFile file = value_of(MmapFile::open(path));
  const SafetensorsHeader header = value_of(read_safetensors_header(file));
  std::vector<Golden> goldens;
  for (int i = 0;; ++i) {
    const std::string prompt = str_cat("prompt", i, ".");
    Golden golden{elements<int32_t>(file, header, prompt + "ids"),
                  elements<float>(file, header, prompt + "logits"),
                  elements<int32_t>(file, header, prompt + "greedy")};
    if (golden.ids.empty()) return goldens;
    goldens.push_back(std::move(golden));
  }
}

Machine::Machine(int threads, const std::string& isa)
    : caps(value_of(isa.empty() ? detect_cpu_caps() : forced_caps("cpu-" + isa))), pool(threads) {
  exec = {.device = DeviceKind::kCpu, .isa = caps.isa, .pool = &pool, .workspace = &arena};
}

Result<std::unique_ptr<Model>> load_folder(const std::string& folder, Machine& machine,
                                           const ModelOptions& options) {
  MX8_TRY(const HfConfig config, read_hf_config(folder, supported_architectures()));
  MX8_TRY(const QuantPlan plan, read_quant_plan(folder, config, options.online));
  MX8_TRY(const auto reader, CheckpointReader::open(folder, {.mode = options.mode}));
  return load_model(
      *reader, config, plan,
      {.caps = machine.caps, .max_context = options.max_context, .pool = &machine.pool});
}

Session::Session(Model& model, Machine& machine, DType kv_dtype, int sequences, int page_size,
                 int max_tokens)
    : model_(model),
      machine_(machine),
      page_size_(page_size),
      max_pages_((max_tokens + page_size - 1) / page_size),
      pages_(static_cast<size_t>(sequences)),
      lengths_(static_cast<size_t>(sequences)) {
  for (int s = 0; s < sequences; ++s) {
    for (int p = 0; p < max_pages_; ++p) {
      pages_[static_cast<size_t>(s)].push_back((max_pages_ - 1 - p) * sequences + s);
    }
  }
  const ModelShape& shape = model.shape();
  const size_t bytes = static_cast<size_t>(dtype_size(kv_dtype)) *
                       static_cast<size_t>(sequences * max_pages_ * page_size) *
                       static_cast<size_t>(shape.kv_heads * shape.head_dim);
  for (int layer = 0; layer < shape.layers; ++layer) {
    KvLayer kv = {.dtype = kv_dtype,
                  .page_size = page_size,
                  .kv_heads = shape.kv_heads,
                  .head_dim = shape.head_dim};
    for (void** place : {&kv.keys, &kv.values}) {
      memory_.emplace_back(bytes);
      std::memset(memory_.back().data(), 0xFF, bytes);  // NaN: nothing unwritten may count
      *place = memory_.back().data();
    }
    layers_.push_back(kv);
  }
}

std::vector<float> Session::step(const std::vector<Feed>& feeds) {
  std::vector<int32_t> ids, positions, slots, context, pages, q_start = {0};
  for (const Feed& feed : feeds) {
    const size_t s = static_cast<size_t>(feed.sequence);
    for (const int32_t id : feed.ids) {
      const int32_t position = lengths_[s]++;
      MX8_CHECK(position < max_pages_ * page_size_, position);
      ids.push_back(id);
      positions.push_back(position);
      slots.push_back(pages_[s][static_cast<size_t>(position / page_size_)] * page_size_ +
                      position % page_size_);
    }
    q_start.push_back(static_cast<int32_t>(ids.size()));
    context.push_back(lengths_[s]);
    pages.insert(pages.end(), pages_[s].begin(), pages_[s].end());
  }
  std::vector<int32_t> rows(ids.size());
  std::iota(rows.begin(), rows.end(), 0);

  const int64_t vocab = model_.shape().vocab;
  const int64_t m = static_cast<int64_t>(ids.size());
  std::vector<float> logits(static_cast<size_t>(m * vocab));
  const ForwardBatch batch = {.token_ids = ids,
                              .positions = positions,
                              .attention = {.q_start = q_start,
                                            .context = context,
                                            .pages = pages,
                                            .max_pages = max_pages_,
                                            .slots = slots},
                              .logit_rows = rows,
                              .kv = layers_};
  model_.forward(machine_.exec, batch, Mat::f32(logits.data(), m, vocab));
  return logits;
}

std::vector<float> Session::feed(const std::vector<int32_t>& ids, size_t chunk, int sequence) {
  std::vector<float> all;
  for (size_t first = 0; first < ids.size(); first += chunk) {
    const size_t last = std::min(ids.size(), first + chunk);
    const std::vector<float> part = step({{sequence,
                                           {ids.begin() + static_cast<ptrdiff_t>(first),
                                            ids.begin() + static_cast<ptrdiff_t>(last)}}});
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace mx8::test
