// TensorSource: where a model's tensors come from, a checkpoint folder or seeded random numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "checkpoint/safetensors.h"
#include "tensor/dtype.h"
#include "tensor/quant.h"

namespace mx8 {

// What a tensor is for; a source without files chooses its numbers by it.
enum class TensorKind : uint8_t {
  kWeight,  // matrices and embeddings
  kCodes,   // E4M3 codes of an MXFP8 matrix
  kScales,  // their E8M0 scales
  kNorm,    // weights of a norm
  kBias,
};

// What a model asks for. `dtypes` are those that it takes (the first is what a source without files
// makes); `shape` is that of the whole tensor, before sharding.
//
// ShardSpec cuts the tensor into `world` equal parts: kRows along the last but one axis (the only
// one of a vector), kCols along the last. Extents that world * multiple does not divide are errors.
struct TensorRequest {
  std::string name;
  TensorKind kind = TensorKind::kWeight;
  std::vector<DType> dtypes;
  std::vector<int64_t> shape;
  ShardSpec shard;
};

// The bytes of a tensor, or of one shard: a view into a mapped file, or an owned buffer. Aligned to
// the element size at least; row-major without padding. Movable.
class TensorData {
 public:
  TensorData() = default;
  // A view; whatever `bytes` points into must live longer.
  static TensorData view(DType dtype, std::vector<int64_t> shape, std::span<const std::byte> bytes);
  // An owned buffer of unset bytes, aligned to 64; fill it through mutable_bytes().
  static TensorData allocate(DType dtype, std::vector<int64_t> shape);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }  // of this part
  int64_t elements() const;
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<std::byte> mutable_bytes();  // owned buffers only
  bool owned() const { return buffer_ != nullptr; }

  // The elements as T, whose size must be that of dtype().
  template <class T>
  std::span<const T> as() const {
    MX8_CHECK(sizeof(T) == static_cast<size_t>(dtype_size(dtype_)), dtype_name(dtype_), sizeof(T));
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  struct FreeAligned {
    void operator()(std::byte* p) const;
  };
  DType dtype_ = DType::kF32;
  std::vector<int64_t> shape_;
  std::span<const std::byte> bytes_;
  std::unique_ptr<std::byte[], FreeAligned> buffer_;
};

// Bytes of a tensor of this shape; nothing on overflow or a negative extent.
std::optional<uint64_t> tensor_bytes(DType dtype, std::span<const int64_t> shape);

// load() and has() may be called from several threads at once.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // True if the tensor is there. A source that makes whatever it is asked for answers `expected`,
  // what the configuration leads one to expect.
  virtual bool has(std::string_view name, bool expected) const = 0;
  // What the files say about a tensor, or null where there are none.
  virtual const TensorInfo* find(std::string_view name) const = 0;

  // The tensor, or the shard of it. An error when it is missing, or its dtype or shape is not what
  // was asked for. Marks it as used.
  virtual Result<TensorData> load(const TensorRequest& request) = 0;

  // Says that the bytes of a tensor won't be read again: its pages stop counting as this process's
  // memory. Views of it stay valid, but reading them costs a read of the file.
  virtual void release(std::string_view name) = 0;

  // A tensor that is deliberately not loaded (rotary_emb.inv_freq, ...) is marked by hand.
  virtual void mark_used(std::string_view name) = 0;
  // The names that nothing has used so far, sorted.
  virtual std::vector<std::string> unused() const = 0;
};

}  // namespace mx8
