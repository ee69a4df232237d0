// A whole safetensors file: what is accepted must hold together.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  const auto length = mx8::safetensors_header_length(file, size, "f");
  if (!length.ok()) return 0;
  const std::string_view json(reinterpret_cast<const char*>(data) + 8, *length);
  const auto header = mx8::parse_safetensors_header(json, size, "f");
  if (!header.ok()) return 0;
  uint64_t at = header->data_begin;
  for (const mx8::TensorInfo& tensor : header->tensors) {
    if (tensor.begin != at || tensor.end < tensor.begin) std::abort();
    at = tensor.end;
  }
  if (at != size) std::abort();
  return 0;
}
