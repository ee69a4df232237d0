#include "runtime/device_caps.h"

#include "base/strings.h"

namespace mx8 {

namespace {

struct GpuRow {
  int sm;
  int multiprocessors;
  int shared_memory_per_block;
  const char* example;
};

// One well-known product a capability; sizes from NVIDIA's CUDA C++ Programming Guide, table of
// technical specifications per compute capability.
constexpr GpuRow kGpus[] = {
    {75, 40, 65536, "Tesla T4"},        {80, 108, 166912, "A100"},
    {86, 84, 101376, "RTX A6000"},      {87, 16, 166912, "Jetson AGX Orin"},
    {89, 142, 101376, "L40S"},          {90, 132, 232448, "H200"},
    {100, 148, 232448, "B200"},         {103, 148, 232448, "B300"},
    {110, 20, 232448, "Jetson Thor"},   {120, 188, 101376, "RTX PRO 6000"},
    {121, 48, 101376, "GB10"},
};

}  // namespace

Result<DeviceCaps> detect_cpu_caps() {
  const CpuFeatures features = detect_cpu_features();
  DeviceCaps caps;
  caps.name = cpu_model_name();
  for (CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAmx}) {
    if (features.has(isa)) caps.isa = isa;
  }
  if (const auto wanted = env("MX8_ISA")) {
    const auto isa = parse_cpu_isa(*wanted);
    if (!isa) {
      return invalid_argument(str_cat("MX8_ISA is '", *wanted,
                                      "'; it must be scalar, avx2, avx512 or amx"));
    }
    if (!features.has(*isa)) {
      return unsupported(str_cat("MX8_ISA is ", *wanted, ", but this processor (", caps.name,
                                 ") has at most ", cpu_isa_name(caps.isa)));
    }
    caps.isa = *isa;
  }
  return caps;
}

std::vector<std::string> forcible_caps() {
  std::vector<std::string> names = {"cpu-scalar", "cpu-avx2", "cpu-avx512", "cpu-amx"};
  for (const GpuRow& gpu : kGpus) names.push_back(str_cat("sm", gpu.sm));
  return names;
}

Result<DeviceCaps> forced_caps(std::string_view name) {
  DeviceCaps caps;
  caps.forced = true;
  if (name.substr(0, 4) == "cpu-") {
    if (const auto isa = parse_cpu_isa(name.substr(4))) {
      caps.isa = *isa;
      caps.name = str_cat("any CPU with ", cpu_isa_name(*isa));
      return caps;
    }
  }
  for (const GpuRow& gpu : kGpus) {
    if (name != str_cat("sm", gpu.sm)) continue;
    caps.kind = DeviceKind::kCuda;
    caps.name = gpu.example;
    caps.sm = gpu.sm;
    caps.multiprocessors = gpu.multiprocessors;
    caps.shared_memory_per_block = gpu.shared_memory_per_block;
    return caps;
  }
  return invalid_argument(
      str_cat("unknown device '", name, "'; known are ", join(forcible_caps(), ", ")));
}

Result<DeviceCaps> cpu_caps_from_environment() {
  if (const auto name = env("MX8_FORCE_CAPS")) return forced_caps(*name);
  return detect_cpu_caps();
}

}  // namespace mx8
