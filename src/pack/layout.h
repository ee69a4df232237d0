// Packed layouts: how the bytes of a weight matrix lie in memory for a family of kernels.
//
// A layout is a type with pure functions from checkpoint bytes to packed bytes and back; a kernel
// takes Packed<Layout>, so a matrix in another layout cannot reach it. PackedWeight erases the type
// and owns the bytes. docs/layouts.md draws each one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "mx/block.h"
#include "runtime/buffer.h"
#include "tensor/quant.h"

namespace mx8 {

enum class LayoutId : uint8_t {
  kRowMajor,     // as in the file: codes [N, K], then scales [N, K/32] (none for plain weights)
  kCpuPanel8,    // AVX2: panels of 8 rows
  kCpuPanel16,   // AVX-512 and AMX: panels of 16 rows
  kMmaFragment,  // SM80..SM90: tensor-core fragments
  kSm100Mx,      // SM100 and later: codes row-major, scales in the 128x4 order of block-scaled MMA
};

std::string_view layout_name(LayoutId id);  // "row-major", "cpu-panel8", ...

// In which order the rows of two stacked matrices (gate above up) enter the packed matrix.
enum class RowOrder : uint8_t {
  kPlain,
  kGateUpInterleaved,  // 8 gate rows, then the 8 up rows with the same indices, and so on
};

// Row `packed_row` of a matrix of 2 * half rows in the given order is row `source_row(...)` of the
// stacked one. half must be a multiple of 8 for the interleaved order unless the tail is short, in
// which case the last group holds fewer rows of each.
int64_t source_row(RowOrder order, int64_t packed_row, int64_t rows);

// A weight in a known layout, not owned. n and k are the true extents; the layout knows its padding.
template <class Layout>
struct Packed {
  const std::byte* data = nullptr;
  int64_t n = 0;
  int64_t k = 0;
  RowOrder order = RowOrder::kPlain;
  DType code_type = DType::kF8E4M3;
};

// The layout of checkpoint files.
struct RowMajor {
  static constexpr LayoutId kId = LayoutId::kRowMajor;
  static size_t bytes(int64_t n, int64_t k, const QuantScheme& scheme);
};

// An owned packed weight.
class PackedWeight {
 public:
  PackedWeight() = default;
  PackedWeight(LayoutId layout, RowOrder order, const QuantScheme& scheme, int64_t n, int64_t k,
               Buffer bytes)
      : layout_(layout), order_(order), scheme_(scheme), n_(n), k_(k), bytes_(std::move(bytes)) {}

  LayoutId layout() const { return layout_; }
  RowOrder order() const { return order_; }
  const QuantScheme& scheme() const { return scheme_; }
  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  size_t size() const { return bytes_.size(); }
  const std::byte* data() const { return bytes_.data(); }

  template <class Layout>
  Packed<Layout> as() const {
    MX8_CHECK(layout_ == Layout::kId, layout_name(layout_), layout_name(Layout::kId));
    return {bytes_.data(), n_, k_, order_, scheme_.code_type};
  }

 private:
  LayoutId layout_ = LayoutId::kRowMajor;
  RowOrder order_ = RowOrder::kPlain;
  QuantScheme scheme_;
  int64_t n_ = 0;
  int64_t k_ = 0;
  Buffer bytes_;
};

}  // namespace mx8
