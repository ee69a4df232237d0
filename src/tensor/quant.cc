#include "tensor/quant.h"

#include "base/check.h"
#include "base/strings.h"

namespace mx8 {

std::string describe(const QuantScheme& scheme) {
  if (scheme.is_mxfp8()) {
    return scheme.activations == ActivationScheme::kNone ? "mxfp8 (w8a16)" : "mxfp8 (w8a8)";
  }
  if (scheme.is_plain()) {
    switch (scheme.code_type) {
      case DType::kBF16: return "bf16";
      case DType::kF16: return "fp16";
      case DType::kF32: return "fp32";
      default: break;
    }
  }
  return str_cat(dtype_name(scheme.code_type), " in blocks of ", scheme.block_rows, "x",
                 scheme.block_cols, " with ", dtype_name(scheme.scale_type), " scales");
}

MxView QuantView::mx() const {
  MX8_CHECK(scheme.is_mxfp8() && cols % kMxBlock == 0 && codes != nullptr && scales != nullptr,
            describe(scheme), rows, cols);
  return {static_cast<const uint8_t*>(codes), static_cast<const uint8_t*>(scales), rows, cols};
}

}  // namespace mx8
