#include "checkpoint/dummy_source.h"

#include <array>
#include <cmath>
#include <cstring>

#include "base/strings.h"
#include "checkpoint/shard_part.h"
#include "mx/bf16.h"
#include "mx/e4m3.h"

namespace mx8 {

namespace {

constexpr float kWeightSd = 0.02f;
constexpr uint8_t kMiddleScale = 119;  // 2^-8; one less and one more are as frequent

uint64_t mix(uint64_t x) {  // the finaliser of splitmix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t key_of(std::string_view name, uint64_t seed) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return mix(hash ^ mix(seed));
}

// Eight random bytes for the elements from 8 * group on, whatever was asked for before.
uint64_t random_group(uint64_t key, uint64_t group) {
  return mix(key + (group + 1) * 0x9E3779B97F4A7C15u);
}

// The 256 midpoints of equal shares of a standard normal distribution, by bisection of erfc.
std::array<float, 256> normal_quantiles() {
  std::array<float, 256> table;
  for (int i = 0; i < 256; ++i) {
    const double share = (i + 0.5) / 256;
    double low = -8, high = 8;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      (0.5 * std::erfc(-middle / std::sqrt(2.0)) < share ? low : high) = middle;
    }
    table[i] = static_cast<float>(low);
  }
  return table;
}

// The bytes of the element that each random byte stands for.
struct ElementTable {
  size_t size = 1;
  std::array<std::array<std::byte, 8>, 256> bytes{};
};

template <class T>
void put(ElementTable& table, int i, T value) {
  table.size = sizeof(T);
  std::memcpy(table.bytes[i].data(), &value, sizeof(T));
}

bool put_float(ElementTable& table, int i, DType dtype, float value) {
  switch (dtype) {
    case DType::kF64:
      put(table, i, static_cast<double>(value));
      return true;
    case DType::kF32:
      put(table, i, value);
      return true;
    case DType::kF16:
      put(table, i, f32_to_f16(value));
      return true;
    case DType::kBF16:
      put(table, i, f32_to_bf16(value));
      return true;
    case DType::kF8E4M3:
      put(table, i, e4m3_encode(value));
      return true;
    default:
      return false;
  }
}

// False where no such tensor can be made.
bool fill_table(ElementTable& table, TensorKind kind, DType dtype) {
  static const std::array<float, 256> normal = normal_quantiles();
  // The mean square of the scales 2^-9, 2^-8 and 2^-7 is 7/4 of 2^-16.
  const float code_sd = kWeightSd * 0x1p8f / std::sqrt(1.75f);
  for (int i = 0; i < 256; ++i) {
    bool known = true;
    switch (kind) {
      case TensorKind::kWeight:
      case TensorKind::kBias:
        known = put_float(table, i, dtype, normal[i] * kWeightSd);
        break;
      case TensorKind::kNorm:
        known = put_float(table, i, dtype, 1.0f);
        break;
      case TensorKind::kCodes:
        known = dtype == DType::kF8E4M3 && put_float(table, i, dtype, normal[i] * code_sd);
        break;
      case TensorKind::kScales:
        known = dtype == DType::kU8 || dtype == DType::kF8E8M0;
        put(table, i, static_cast<uint8_t>(kMiddleScale - 1 + i * 3 / 256));
        break;
    }
    if (!known) return false;
  }
  return true;
}

// Fills the elements [begin, end) of a tensor, counted over the whole of it; returns the place
// after the last.
template <size_t kSize>
std::byte* fill(const ElementTable& table, uint64_t key, uint64_t begin, uint64_t end,
                std::byte* out) {
  uint64_t bytes = random_group(key, begin / 8) >> (8 * (begin % 8));
  for (uint64_t i = begin; i < end; ++i, bytes >>= 8, out += kSize) {
    if (i % 8 == 0) bytes = random_group(key, i / 8);
    std::memcpy(out, table.bytes[bytes & 0xFF].data(), kSize);
  }
  return out;
}

using Fill = std::byte* (*)(const ElementTable&, uint64_t, uint64_t, uint64_t, std::byte*);

Fill fill_for(size_t size) {
  switch (size) {
    case 1:
      return fill<1>;
    case 2:
      return fill<2>;
    case 4:
      return fill<4>;
    default:
      return fill<8>;
  }
}

}  // namespace

Result<TensorData> DummySource::load(const TensorRequest& request) {
  MX8_CHECK(!request.dtypes.empty(), request.name);
  const DType dtype = request.dtypes.front();
  ElementTable table;
  if (!fill_table(table, request.kind, dtype)) {
    return unsupported(str_cat("no dummy numbers of dtype ", dtype_name(dtype), " for tensor \"",
                               request.name, "\""));
  }
  MX8_TRY(const ShardPart part, shard_part(request.name, request.shape, request.shard));
  TensorData data = TensorData::allocate(dtype, part.shape);
  const uint64_t key = key_of(request.name, seed_);
  const Fill fill_row = fill_for(table.size);
  std::byte* out = data.mutable_bytes().data();
  for (int64_t o = 0; o < part.outer; ++o) {
    for (int64_t r = part.row_range.begin; r < part.row_range.end; ++r) {
      const uint64_t row = static_cast<uint64_t>((o * part.rows + r) * part.cols);
      out = fill_row(table, key, row + static_cast<uint64_t>(part.col_range.begin),
                     row + static_cast<uint64_t>(part.col_range.end), out);
    }
  }
  return data;
}

}  // namespace mx8
