// A program built without CUDA.
#include "kernels/cuda/device_linear.h"
#include "runtime/cuda_device.h"

namespace mx8::cuda {

struct DeviceLinear::Impl {};

DeviceLinear::DeviceLinear() = default;
DeviceLinear::DeviceLinear(DeviceLinear&&) noexcept = default;
DeviceLinear& DeviceLinear::operator=(DeviceLinear&&) noexcept = default;
DeviceLinear::~DeviceLinear() = default;

Result<DeviceLinear> DeviceLinear::load(const DeviceCaps&, const LinearProblem&, const LinearPlan&,
                                        std::span<const QuantView>, std::span<const float>) {
  return cuda_driver().error();
}
size_t DeviceLinear::resident_bytes() const { return 0; }
size_t DeviceLinear::workspace_bytes() const { return 0; }
Result<void> DeviceLinear::launch(const DeviceLinearCall&, void*, void*) const {
  return internal_error("no layer was loaded");
}

}  // namespace mx8::cuda
