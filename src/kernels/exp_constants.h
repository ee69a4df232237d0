// exp(x) in FP32, the same steps in every instruction set, so that scalar and vector kernels agree
// bit for bit:
//   t = fma(x, log2(e), 1.5 * 2^23)      the integer n = round(x / ln 2) in the low bits of t
//   r = fma(-n, ln2_low, fma(-n, ln2_high, x))          |r| <= ln(2) / 2
//   p = 1 + r + r^2 * (degree 5 polynomial in r)
//   result = p with n added to its exponent
// Below kMin the result is 0 (no subnormals come out), above kMax infinity, NaN stays NaN, exp(0)
// is exactly 1. The error is below 1.1 ulp (tested against FP64). The polynomial is that of Cephes'
// expf.
#pragma once

namespace mx8::exp_f32 {

inline constexpr float kLog2E = 1.44269504088896341f;
inline constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
inline constexpr float kLn2High = 0.693359375f;
inline constexpr float kLn2Low = -2.12194440e-4f;
inline constexpr float kP0 = 1.9875691500e-4f;
inline constexpr float kP1 = 1.3981999507e-3f;
inline constexpr float kP2 = 8.3334519073e-3f;
inline constexpr float kP3 = 4.1665795894e-2f;
inline constexpr float kP4 = 1.6666665459e-1f;
inline constexpr float kP5 = 5.0000001201e-1f;
inline constexpr float kMin = -87.336544f;  // ln(2^-126), rounded towards zero
inline constexpr float kMax = 88.7228317f;   // ln(FLT_MAX), rounded towards zero

}  // namespace mx8::exp_f32
