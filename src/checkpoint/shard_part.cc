#include "checkpoint/shard_part.h"

#include "base/check.h"
#include "base/strings.h"

namespace mx8 {

Result<ShardRange> shard_range(const std::string& name, int64_t extent, const ShardSpec& shard) {
  MX8_CHECK(shard.world >= 1 && shard.rank >= 0 && shard.rank < shard.world && shard.multiple >= 1,
            name, shard.rank, shard.world, shard.multiple);
  const int64_t step = int64_t{shard.world} * shard.multiple;
  if (extent % step != 0) {
    return invalid_argument(str_cat("tensor \"", name, "\": ", extent, " cannot be cut into ",
                                    shard.world, " equal parts that are multiples of ",
                                    shard.multiple, "; use fewer ranks"));
  }
  const int64_t part = extent / shard.world;
  return ShardRange{shard.rank * part, (shard.rank + 1) * part};
}

Result<ShardPart> shard_part(const std::string& name, const std::vector<int64_t>& shape,
                             const ShardSpec& shard) {
  const size_t rank = shape.size();
  ShardPart part;
  if (rank == 1) part.rows = shape[0];
  if (rank >= 2) {
    part.cols = shape[rank - 1];
    part.rows = shape[rank - 2];
    for (size_t i = 0; i + 2 < rank; ++i) part.outer *= shape[i];
  }
  part.row_range = {0, part.rows};
  part.col_range = {0, part.cols};
  part.shape = shape;
  if (shard.axis == ShardSpec::Axis::kRows) {
    MX8_CHECK(rank >= 1, name);
    MX8_TRY(part.row_range, shard_range(name, part.rows, shard));
    part.shape[rank >= 2 ? rank - 2 : 0] = part.row_range.size();
  } else if (shard.axis == ShardSpec::Axis::kCols) {
    MX8_CHECK(rank >= 2, name);
    MX8_TRY(part.col_range, shard_range(name, part.cols, shard));
    part.shape[rank - 1] = part.col_range.size();
  }
  return part;
}

}  // namespace mx8
