// Whole plain matrices to MXFP8, in parallel.
#pragma once

#include "mx/block.h"
#include "runtime/thread_pool.h"
#include "tensor/quant.h"

namespace mx8 {

// Sums over the elements of what was quantised: (dequantised - source)^2 and source^2.
struct QuantError {
  double error = 0;
  double norm = 0;
};

// Quantises a plain matrix; its columns are whole blocks. Neither the bytes nor the sums depend on
// the number of threads. `error`, if given, is added to.
MxMatrix quantize_matrix(const QuantView& plain, ScaleRule rule, ThreadPool& pool,
                         QuantError* error = nullptr);

}  // namespace mx8
