// DeviceCaps: what the selector knows of a device. It can be forced, so that selection for any
// device is testable on any machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/cpu_info.h"

namespace mx8 {

enum class DeviceKind : uint8_t { kCpu, kCuda };

struct DeviceCaps {
  DeviceKind kind = DeviceKind::kCpu;
  std::string name;                 // for people
  CpuIsa isa = CpuIsa::kScalar;     // CPU: the best row allowed
  int ordinal = 0;                  // GPU: its number, as CUDA counts
  int sm = 0;                       // GPU: compute capability, 10 * major + minor (90, 103, 121)
  int multiprocessors = 0;          // GPU
  int shared_memory_per_block = 0;  // GPU: bytes a block may opt in to
  uint64_t memory_bytes = 0;        // GPU
  std::string cublaslt_missing;     // GPU: why cuBLASLt cannot be opened, "" where it can
  bool forced = false;              // made from a name, not read off a device
};

// This machine's CPU (its GPUs: cuda_device.h). MX8_ISA (scalar, avx2, avx512, amx) lowers the row;
// a row that the processor lacks is an error.
Result<DeviceCaps> detect_cpu_caps();

// The record of a named device: cpu-scalar, cpu-avx2, cpu-avx512, cpu-amx, or smNN for a known
// compute capability (sm75, sm80, sm86, sm87, sm89, sm90, sm100, sm103, sm110, sm120, sm121).
Result<DeviceCaps> forced_caps(std::string_view name);
std::vector<std::string> forcible_caps();

// MX8_FORCE_CAPS if set, else the CPU.
Result<DeviceCaps> cpu_caps_from_environment();

}  // namespace mx8
