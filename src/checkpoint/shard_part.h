// Which elements of a tensor a shard covers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/quant.h"

namespace mx8 {

// The half-open range of one axis that a shard covers.
struct ShardRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// An error, naming the tensor, where world * multiple does not divide the extent.
Result<ShardRange> shard_range(const std::string& name, int64_t extent, const ShardSpec& shard);

// A tensor [.., rows, cols] as `outer` matrices, of which the shard takes some rows or columns. A
// vector is a matrix with one column.
struct ShardPart {
  int64_t outer = 1;
  int64_t rows = 1;
  int64_t cols = 1;
  ShardRange row_range;
  ShardRange col_range;
  std::vector<int64_t> shape;  // of the part

  bool whole_rows() const { return col_range.size() == cols; }
  // One run of bytes of the tensor.
  bool contiguous() const { return whole_rows() && (outer == 1 || row_range.size() == rows); }
};

Result<ShardPart> shard_part(const std::string& name, const std::vector<int64_t>& shape,
                             const ShardSpec& shard);

}  // namespace mx8
