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
  // GPU: temporaries of the ops of one stream, as many bytes as the largest of them needs
  // (Linear::workspace_bytes). All 0 before the first op; then the kernels keep the order.
  void* device_workspace = nullptr;
  size_t device_workspace_bytes = 0;
};

}  // namespace mx8
