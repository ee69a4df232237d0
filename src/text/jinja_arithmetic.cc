// Python's arithmetic on 64-bit integers and doubles. Integers that outgrow 64 bits are an error:
// templates have no use for them.
#include <cmath>

#include "base/strings.h"
#include "text/jinja_interpreter.h"

namespace mx8::jinja {
namespace {

[[noreturn]] void overflow() { fail("an integer outgrows 64 bits"); }

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) fail("integer division or modulo by zero");
  if (b == -1) {
    if (a == INT64_MIN) overflow();
    return -a;
  }
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t modulo(int64_t a, int64_t b) {
  if (b == 0) fail("integer division or modulo by zero");
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// a mod b with the sign of b.
double modulo(double a, double b) {
  if (b == 0) fail("float modulo by zero");
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

double floor_divide(double a, double b) {
  if (b == 0) fail("float floor division by zero");
  double quotient = (a - modulo(a, b)) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  if (base == 0 || base == 1 || base == -1) {
    return Value::integer(exponent == 0 ? 1 : base == -1 && exponent % 2 == 0 ? 1 : base);
  }
  for (int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) overflow();
  }
  return Value::integer(result);
}

Value power(double base, double exponent) {
  if (base == 0 && exponent < 0) fail("0.0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(exponent) && exponent != std::floor(exponent)) {
    fail("complex numbers are not supported");
  }
  double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) {
    fail("result too large");
  }
  return Value::real(result);
}

Value integers(Op op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &r)) overflow();
      return Value::integer(r);
    case Op::kSub:
      if (__builtin_sub_overflow(a, b, &r)) overflow();
      return Value::integer(r);
    case Op::kMul:
      if (__builtin_mul_overflow(a, b, &r)) overflow();
      return Value::integer(r);
    case Op::kDiv:
      if (b == 0) fail("division by zero");
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case Op::kFloorDiv:
      return Value::integer(floor_divide(a, b));
    case Op::kMod:
      return Value::integer(modulo(a, b));
    default:
      return power(a, b);
  }
}

Value reals(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return Value::real(a + b);
    case Op::kSub:
      return Value::real(a - b);
    case Op::kMul:
      return Value::real(a * b);
    case Op::kDiv:
      if (b == 0) fail("float division by zero");
      return Value::real(a / b);
    case Op::kFloorDiv:
      return Value::real(floor_divide(a, b));
    case Op::kMod:
      return Value::real(modulo(a, b));
    default:
      return power(a, b);
  }
}

}  // namespace

Value arithmetic(Op op, const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return integers(op, a.as_int(), b.as_int());
  return reals(op, a.as_double(), b.as_double());
}

}  // namespace mx8::jinja
