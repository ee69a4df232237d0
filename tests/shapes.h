// The shapes over which every backend's matrix kernels are tested.
#pragma once

#include <cstdint>
#include <vector>

namespace mx8::shapes {

struct LinearShape {
  int64_t n;  // output features
  int64_t k;  // input features
};

// Token counts around every change of kernel: 1, 2 (matrix-vector), small, the strips of 6 and 12
// rows of the tile kernels, and their tails.
inline std::vector<int64_t> token_counts() { return {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 31, 64, 129}; }

// Widths and depths that have broken kernels elsewhere: fewer rows than a panel, rows around a
// multiple of a tile, depths that are one block, an odd number of blocks, not a multiple of 128 or
// 256, rows > columns and columns > rows, and the shapes of real models' shards.
inline std::vector<LinearShape> linear_shapes() {
  return {{1, 32},   {7, 32},    {8, 64},    {9, 96},    {15, 256},  {16, 288},   {17, 320},
          {31, 576}, {63, 32},   {64, 256},  {65, 96},   {33, 1056}, {576, 576},  {3, 4096},
          {256, 32}, {48, 2688}, {176, 928}, {232, 448}, {464, 224}, {360, 2880}, {2, 160},
          {4, 352},  {5, 416},   {6, 480},   {12, 544}, {200, 256}, {256, 224}};
}

// Layers that other engines' public bug reports name, for plans: selection and look-up cost nothing
// for any size. Routers, narrow KV projections, tensor parallel shards of 1856, 2304, 2688, 2816
// and 2880, turned shapes.
inline std::vector<LinearShape> awkward_shapes() {
  std::vector<LinearShape> shapes = {
      {1, 32},      {8, 32},      {8, 4096},    {16, 2048},   {31, 96},     {32, 576},
      {33, 64},     {96, 32},     {96, 160},    {128, 96},    {200, 256},   {256, 224},
      {2304, 576},  {2304, 640},  {336, 2688},  {2688, 352},  {704, 2816},  {2816, 352},
      {176, 2816},  {352, 704},   {2880, 288},  {288, 2880},  {5760, 2880}, {2880, 2880},
      {8192, 128},  {2112, 7168}, {576, 7168},  {151936, 64}, {64, 28672},  {5120, 96}};
  for (const int64_t n : {232, 464, 928, 1856, 2688}) {
    for (const int64_t k : {928, 1856, 2688}) shapes.push_back({n, k});
  }
  return shapes;
}

}  // namespace mx8::shapes
