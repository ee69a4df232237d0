// The scalar exp of kernels/exp_constants.h, and what is made of it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/exp_constants.h"

namespace mx8::reference {

inline float exp(float x) {
  namespace c = exp_f32;
  if (x != x) return x;
  if (x < c::kMin) return 0;
  if (x > c::kMax) return std::numeric_limits<float>::infinity();
  const float t = std::fma(x, c::kLog2E, c::kRound);
  const float n = t - c::kRound;
  const float r = std::fma(-n, c::kLn2Low, std::fma(-n, c::kLn2High, x));
  float p = std::fma(c::kP0, r, c::kP1);
  p = std::fma(p, r, c::kP2);
  p = std::fma(p, r, c::kP3);
  p = std::fma(p, r, c::kP4);
  p = std::fma(p, r, c::kP5);
  p = std::fma(p, r * r, r) + 1.0f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (std::bit_cast<uint32_t>(t) << 23));
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

// The sum of eight partial sums, as vector kernels reduce a register: halves, then pairs.
inline float sum8(const float* v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

}  // namespace mx8::reference
