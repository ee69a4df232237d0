// Exec: where an op runs and what it may use. Every op takes one.
#pragma once

#include "runtime/buffer.h"
#include "runtime/device_caps.h"
#include "runtime/thread_pool.h"

namespace mx8 {

struct Exec {
  DeviceKind device = DeviceKind::kCpu;
  CpuIsa isa = CpuIsa::kScalar;   // CPU: the row of kernels to use
  ThreadPool* pool = nullptr;     // CPU
  Arena* workspace = nullptr;     // temporaries; ops open a Scope
  void* stream = nullptr;         // GPU: cudaStream_t
};

}  // namespace mx8
