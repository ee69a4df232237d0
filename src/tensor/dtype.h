// Element types of tensors in files and memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mx8 {

enum class DType : uint8_t {
  kF64, kF32, kF16, kBF16, kF8E4M3, kF8E5M2, kF8E8M0, kI64, kI32, kI16, kI8, kU8, kU16, kU32, kU64,
  kBool,
};

// Bytes of one element.
int dtype_size(DType dtype);
// The name used in safetensors headers: "F32", "BF16", "F8_E4M3", "F8_E8M0", "U8", ...
std::string_view dtype_name(DType dtype);
std::optional<DType> parse_dtype(std::string_view safetensors_name);

}  // namespace mx8
