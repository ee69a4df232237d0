// The table through which one instruction set offers its matrix kernels for one packed layout.
//
// Files compiled for an instruction set include this, so it holds plain structs only.
#pragma once

#include <cstdint>

#include "kernels/linear_args.h"

namespace mx8::cpu {

enum class WeightCode : uint8_t { kMxE4m3, kBf16, kF16, kF32 };

// A packed weight in the layout that the table is for.
struct WeightRef {
  const void* data;
  int64_t n;
  int64_t k;
  WeightCode code;
};

// A piece of work: packed rows [n0, n1) of the weight for input rows [m0, m1), which are the strips
// [strip0, strip1). Sum (m, n) goes to sums[(m - m0) * ld + n - n0]; ld is a multiple of the
// table's n_step, and the columns up to it may be written.
struct LinearTile {
  int64_t strip0;
  int64_t strip1;
  int64_t m0;
  int64_t m1;
  int64_t n0;
  int64_t n1;
  float* sums;
  int64_t ld;
};

struct LinearKernels {
  const char* name;
  // Input rows are taken in strips of at most this many, (m + strip_rows - 1) / strip_rows of them.
  int64_t strip_rows;
  // Columns are cut at multiples of this.
  int64_t n_step;
  // The first row of a strip among m rows; m for the strip after the last.
  int64_t (*first_row)(int64_t m, int64_t strip);
  // Floats of workspace: for the prepared form of all m input rows, and for one thread.
  int64_t (*prepared_floats)(int64_t m, int64_t k);
  int64_t (*scratch_floats)(int64_t m, int64_t k);
  // Prepares the strips [strip0, strip1) of the input.
  void (*prepare)(const LinearInput& in, int64_t strip0, int64_t strip1, float* prepared);
  void (*sums)(const WeightRef& w, const LinearInput& in, const float* prepared,
               const LinearTile& tile, float* scratch);
  // Adds the bias, applies the epilogue, stores rows [m0, m1) of the output.
  void (*epilogue)(const LinearTile& tile, const LinearOutput& out);
  // For the size of chunks: billions of multiply-adds and gigabytes of weights a second and thread.
  double gmacs;
  double gbytes;
};

}  // namespace mx8::cpu
