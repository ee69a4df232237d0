#include <algorithm>
#include <cstdio>
#include <fstream>

#include "base/strings.h"
#include "common.h"
#include "kernels/select.h"
#include "model/registry.h"

namespace mx8 {

namespace {

struct DoctorFlags {
  std::string model;
  std::string kv_dtype = "bf16";
  int64_t max_model_len = 0;
  std::string kv_memory;
  std::string linear_backend;
  bool json = false;
};

struct Shape {
  const char* what;
  int64_t n, k;
  int experts;
};

// Layers that show the selector's rules: ordinary, tiny, and the experts of an MoE layer.
constexpr Shape kShapes[] = {
    {"linear 4096 x 4096", 4096, 4096, 0},
    {"linear 576 x 1536", 576, 1536, 0},
    {"linear 8 x 64", 8, 64, 0},
    {"128 experts of 1536 x 2048", 1536, 2048, 128},
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

Result<LinearPlan> select_for(const DeviceCaps& caps, const Shape& shape,
                              const Preference& preference) {
  LinearProblem p;
  p.n = shape.n;
  p.k = shape.k;
  p.experts = shape.experts;
  p.weight = QuantScheme::mxfp8();
  p.activation = caps.kind == DeviceKind::kCpu ? DType::kF32 : DType::kBF16;
  return shape.experts > 0 ? select_mxfp8_moe_backend(caps, p, preference)
                           : select_mxfp8_linear_backend(caps, p, preference);
}

void print_selection_json(const DeviceCaps& caps, const Preference& preference) {
  std::printf(", \"selection\": [");
  bool first = true;
  for (const Shape& shape : kShapes) {
    const auto plan = select_for(caps, shape, preference);
    std::printf("%s{\"problem\": \"%s\", ", first ? "" : ", ", shape.what);
    first = false;
    if (!plan.ok()) {
      std::printf("\"error\": %s}", json_string(plan.error().message).c_str());
      continue;
    }
    std::printf("\"backend\": \"%s\", \"kernel\": \"%s\", \"layout\": \"%s\", \"refused\": [",
                std::string(backend_name(plan->backend)).c_str(),
                plan->buckets.front().kernel->name, std::string(layout_name(plan->layout)).c_str());
    for (size_t i = 0; i < plan->refused.size(); ++i) {
      std::printf("%s{\"kernel\": \"%s\", \"reason\": %s}", i > 0 ? ", " : "",
                  plan->refused[i].kernel.c_str(), json_string(plan->refused[i].reason).c_str());
    }
    std::printf("]}");
  }
  std::printf("]");
}

void print_selection(const DeviceCaps& caps, const Preference& preference) {
  for (const Shape& shape : kShapes) {
    const auto plan = select_for(caps, shape, preference);
    if (!plan.ok()) {
      std::printf("%-28s none: %s\n", shape.what, plan.error().message.c_str());
      continue;
    }
    std::printf("%-28s %s (%s), weights in %s\n", shape.what,
                std::string(backend_name(plan->backend)).c_str(),
                plan->buckets.front().kernel->name, std::string(layout_name(plan->layout)).c_str());
  }
  const auto plan = select_for(caps, kShapes[0], preference);
  if (plan.ok() && !plan->refused.empty()) {
    std::printf("not chosen for the first:\n");
    for (const Refusal& r : plan->refused) {
      std::printf("  %-26s %s\n", r.kernel.c_str(), r.reason.c_str());
    }
  }
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
  std::optional<HfConfig> config;
  std::optional<KvReport> kv;
  if (!f.model.empty()) {
    MX8_TRY(HfConfig read, read_hf_config(f.model, supported_architectures()));
    MX8_TRY(const KvReport report, kv_report(f, read));
    config.emplace(std::move(read));
    kv = report;
  }
  if (f.json) {
    std::printf(
        "{\"version\": \"%s\", \"device\": %s, \"forced\": %s, \"isa\": \"%s\", \"sm\": %d, "
        "\"threads\": %d, \"memory_available_bytes\": %llu, \"architectures\": [",
        version_string(), json_string(caps.name).c_str(), caps.forced ? "true" : "false",
        std::string(cpu_isa_name(caps.isa)).c_str(), caps.sm, available_processors(),
        static_cast<unsigned long long>(memory_available()));
    for (size_t i = 0; i < supported_architectures().size(); ++i) {
      std::printf("%s\"%s\"", i > 0 ? ", " : "", supported_architectures()[i].c_str());
    }
    std::printf("]");
    print_selection_json(caps, preference);
    if (kv) {
      std::printf(
          ", \"kv_cache\": {\"max_model_len\": %lld, \"pages\": %lld, \"bytes_per_token\": %llu, "
          "\"bytes\": %llu}",
          static_cast<long long>(kv->max_model_len), static_cast<long long>(kv->pages),
          static_cast<unsigned long long>(kv->bytes_per_token),
          static_cast<unsigned long long>(kv->bytes));
    }
    std::printf("}\n");
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
  std::printf("architectures   %s\n\n", join(supported_architectures(), ", ").c_str());
  print_selection(caps, preference);
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
  app.add_flag("--json", f->json, "Machine-readable");
  return [f]() -> Result<void> { return run(*f); };
}

}  // namespace mx8
