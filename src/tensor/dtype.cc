#include "tensor/dtype.h"

namespace mx8 {

namespace {

struct DTypeRow {
  DType dtype;
  int size;
  std::string_view name;
};

// In the order of the enum.
constexpr DTypeRow kRows[] = {
    {DType::kF64, 8, "F64"},         {DType::kF32, 4, "F32"},         {DType::kF16, 2, "F16"},
    {DType::kBF16, 2, "BF16"},       {DType::kF8E4M3, 1, "F8_E4M3"},  {DType::kF8E5M2, 1, "F8_E5M2"},
    {DType::kF8E8M0, 1, "F8_E8M0"},  {DType::kI64, 8, "I64"},         {DType::kI32, 4, "I32"},
    {DType::kI16, 2, "I16"},         {DType::kI8, 1, "I8"},           {DType::kU8, 1, "U8"},
    {DType::kU16, 2, "U16"},         {DType::kU32, 4, "U32"},         {DType::kU64, 8, "U64"},
    {DType::kBool, 1, "BOOL"},
};

}  // namespace

int dtype_size(DType dtype) { return kRows[static_cast<int>(dtype)].size; }

std::string_view dtype_name(DType dtype) { return kRows[static_cast<int>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view safetensors_name) {
  for (const DTypeRow& row : kRows) {
    if (row.name == safetensors_name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace mx8
