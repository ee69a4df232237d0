#include <algorithm>
#include <cstdio>
#include <fstream>

#include "base/strings.h"
#include "common.h"
#include "config.h"
#include "doctor_selection.h"
#include "model/registry.h"
#include "runtime/cuda_device.h"

namespace mx8 {

namespace {

using Json = nlohmann::ordered_json;

struct DoctorFlags {
  std::string model;
  std::string kv_dtype = "bf16";
  int64_t max_model_len = 0;
  std::string kv_memory;
  std::string linear_backend;
  std::string activations = "auto";
  bool json = false;
};

uint64_t memory_available() {
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  uint64_t kib = 0;
  while (info >> key >> kib) {
    std::getline(info, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

struct UnreadableGpu {
  int ordinal;
  std::string reason;
};

// What there is of CUDA here: libraries with the reason why not ("" where they opened), and GPUs,
// or why none are counted.
struct CudaReport {
  std::string driver;
  std::string cublaslt;
  std::string no_gpus;
  std::vector<DeviceCaps> gpus;
  std::vector<UnreadableGpu> unreadable;
};

CudaReport cuda_report() {
  CudaReport out;
  const auto driver = cuda_driver();
  if (!driver.ok()) out.driver = driver.error().message;
  const auto cublaslt = cublaslt_library();
  if (!cublaslt.ok()) out.cublaslt = cublaslt.error().message;
  const auto count = cuda_device_count();
  if (!count.ok()) {
    out.no_gpus = count.error().message;
    return out;
  }
  for (int i = 0; i < *count; ++i) {
    const auto caps = detect_cuda_caps(i);
    if (caps.ok()) {
      out.gpus.push_back(*caps);
    } else {
      out.unreadable.push_back({i, caps.error().message});
    }
  }
  return out;
}

void print_cuda(const CudaReport& r) {
  if (!MX8_BUILT_WITH_CUDA) {
    std::printf("CUDA            %s\n", r.no_gpus.c_str());
    return;
  }
  std::printf("libcuda         %s\n", r.driver.empty() ? "opened" : r.driver.c_str());
  std::printf("cuBLASLt        %s\n", r.cublaslt.empty() ? "opened" : r.cublaslt.c_str());
  for (const DeviceCaps& gpu : r.gpus) {
    std::printf("GPU %-2d          %s, SM%d, %d multiprocessors, %s\n", gpu.ordinal,
                gpu.name.c_str(), gpu.sm, gpu.multiprocessors,
                format_bytes(gpu.memory_bytes).c_str());
  }
  for (const UnreadableGpu& gpu : r.unreadable) {
    std::printf("GPU %-2d          cannot be used: %s\n", gpu.ordinal, gpu.reason.c_str());
  }
  if (!r.no_gpus.empty()) {
    std::printf("GPUs            none%s\n", r.driver.empty() ? (": " + r.no_gpus).c_str() : "");
  }
}

Json cuda_json(const CudaReport& r, const Preference& preference) {
  Json out;
  out["built"] = MX8_BUILT_WITH_CUDA != 0;
  out["libcuda"] = r.driver.empty() ? "opened" : r.driver;
  out["cublaslt"] = r.cublaslt.empty() ? "opened" : r.cublaslt;
  out["no_gpus"] = r.no_gpus;
  out["gpus"] = Json::array();
  for (const DeviceCaps& gpu : r.gpus) {
    out["gpus"].push_back({{"ordinal", gpu.ordinal},
                           {"name", gpu.name},
                           {"sm", gpu.sm},
                           {"multiprocessors", gpu.multiprocessors},
                           {"memory_bytes", gpu.memory_bytes},
                           {"selection", selections_json(gpu, shown_selections(gpu, preference))}});
  }
  out["unreadable_gpus"] = Json::array();
  for (const UnreadableGpu& gpu : r.unreadable) {
    out["unreadable_gpus"].push_back({{"ordinal", gpu.ordinal}, {"reason", gpu.reason}});
  }
  return out;
}

// The size of the KV cache that a model would get.
struct KvReport {
  int64_t max_model_len = 0;
  int64_t pages = 0;
  uint64_t bytes_per_token = 0;
  uint64_t bytes = 0;
};

Result<KvReport> kv_report(const DoctorFlags& f, const HfConfig& c) {
  const DType dtype = f.kv_dtype == "f32" ? DType::kF32 : DType::kBF16;
  ModelShape shape;
  shape.layers = static_cast<int>(c.num_hidden_layers);
  shape.kv_heads = static_cast<int>(c.num_key_value_heads);
  shape.head_dim = static_cast<int>(c.head_dim);
  const int page = EngineConfig{}.page_size;
  KvReport report;
  report.max_model_len =
      f.max_model_len > 0 ? f.max_model_len : std::min(kDefaultModelLen, c.max_position_embeddings);
  const uint64_t page_bytes = KvPool::page_bytes(shape, dtype, page);
  report.bytes_per_token = page_bytes / static_cast<uint64_t>(page);
  report.pages = (report.max_model_len + page - 1) / page;
  if (!f.kv_memory.empty()) {
    MX8_TRY(const uint64_t memory, parse_bytes(f.kv_memory, "--kv-memory"));
    report.pages = static_cast<int64_t>(memory / page_bytes);
  }
  report.bytes = page_bytes * static_cast<uint64_t>(report.pages);
  return report;
}

Result<void> run(const DoctorFlags& f) {
  MX8_TRY(const DeviceCaps caps, cpu_caps_from_environment());
  Preference preference;
  preference.backend = f.linear_backend;
  preference.activations = parse_activations(f.activations);
  std::optional<HfConfig> config;
  std::optional<KvReport> kv;
  if (!f.model.empty()) {
    MX8_TRY(HfConfig read, read_hf_config(f.model, supported_architectures()));
    MX8_TRY(const KvReport report, kv_report(f, read));
    config.emplace(std::move(read));
    kv = report;
  }
  const CudaReport cuda = cuda_report();
  const std::vector<ShownSelection> selections = shown_selections(caps, preference);
  if (f.json) {
    Json out;
    out["version"] = version_string();
    out["device"] = caps.name;
    out["forced"] = caps.forced;
    out["isa"] = cpu_isa_name(caps.isa);
    out["sm"] = caps.sm;
    out["threads"] = available_processors();
    out["memory_available_bytes"] = memory_available();
    out["architectures"] = supported_architectures();
    out["selection"] = selections_json(caps, selections);
    out["cuda"] = cuda_json(cuda, preference);
    if (kv) {
      out["kv_cache"] = {{"max_model_len", kv->max_model_len},
                         {"pages", kv->pages},
                         {"bytes_per_token", kv->bytes_per_token},
                         {"bytes", kv->bytes}};
    }
    std::printf("%s\n", out.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    return {};
  }
  std::printf("mx8 %s\ndevice          %s%s\n", version_string(), caps.name.c_str(),
              caps.forced ? " (forced by MX8_FORCE_CAPS)" : "");
  if (caps.kind == DeviceKind::kCpu) {
    std::printf("kernels         %s\n", std::string(cpu_isa_name(caps.isa)).c_str());
  } else {
    std::printf("capability      SM%d\n", caps.sm);
  }
  std::printf("threads         %d\nmemory          %s available\n", available_processors(),
              format_bytes(memory_available()).c_str());
  print_cuda(cuda);
  std::printf("architectures   %s\n\n", join(supported_architectures(), ", ").c_str());
  print_selections(caps, selections);
  for (const DeviceCaps& gpu : cuda.gpus) {
    std::printf("\nGPU %d, %s, in programs that link the kernels (models run on CPUs):\n",
                gpu.ordinal, gpu.name.c_str());
    print_selections(gpu, shown_selections(gpu, preference));
  }
  if (kv) {
    std::printf("\n%s\nKV cache        %s a token, %lld pages, %s for %lld tokens of context\n",
                f.model.c_str(), format_bytes(kv->bytes_per_token).c_str(),
                static_cast<long long>(kv->pages), format_bytes(kv->bytes).c_str(),
                static_cast<long long>(kv->max_model_len));
  }
  return {};
}

}  // namespace

VerbRunner add_doctor(CLI::App& app) {
  auto f = std::make_shared<DoctorFlags>();
  app.add_option("model", f->model, "Also show the KV cache that this model would get");
  app.add_option("--kv-cache-dtype", f->kv_dtype, "bf16 or f32")
      ->check(CLI::IsMember({"bf16", "f32"}));
  app.add_option("--max-model-len", f->max_model_len, "Tokens of a sequence")
      ->check(CLI::PositiveNumber);
  app.add_option("--kv-memory", f->kv_memory, "Memory for the KV cache");
  app.add_option("--linear-backend", f->linear_backend, "As if this backend were demanded")
      ->envname("MX8_LINEAR_BACKEND");
  add_activations_option(app, f->activations);
  app.add_flag("--json", f->json, "Machine-readable");
  return [f]() -> Result<void> { return run(*f); };
}

}  // namespace mx8
