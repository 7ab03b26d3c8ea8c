#include "chat/template_arithmetic.h"

#include <fmt/format.h>

#include <cmath>

#include "chat/template_convert.h"

namespace paceline {
namespace {

using Op = BinaryOperator;
using Value = TemplateValue;

[[noreturn]] void overflow() { throw TemplateError("an integer beyond 64 bits"); }

std::string_view symbol(Op op) {
  constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
  return kSymbols[static_cast<size_t>(op)];
}

[[noreturn]] void unsupported(Op op, const Value& a, const Value& b) {
  throw TemplateError("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op),
                      a.type_name(), b.type_name());
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) overflow();
  }
  return result;
}

// Towards minus infinity.
int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) throw TemplateError("integer division or modulo by zero");
  if (a == INT64_MIN && b == -1) overflow();
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

Value integers(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Op::add:
      if (__builtin_add_overflow(a, b, &result)) overflow();
      return result;
    case Op::subtract:
      if (__builtin_sub_overflow(a, b, &result)) overflow();
      return result;
    case Op::multiply:
      if (__builtin_mul_overflow(a, b, &result)) overflow();
      return result;
    case Op::divide:
      if (b == 0) throw TemplateError("division by zero");
      // Exact integers, though they be beyond 2^53.
      return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
    case Op::floor_divide:
      return floor_quotient(a, b);
    case Op::modulo:
      if (b == -1) return int64_t{0};
      return a - floor_quotient(a, b) * b;
    default:
      if (b >= 0) return integer_power(a, b);
      if (a == 0) throw TemplateError("0.0 cannot be raised to a negative power");
      return std::pow(static_cast<double>(a), static_cast<double>(b));
  }
}

// As divmod() does: the quotient is rounded down, and the remainder has the sign of b.
struct RealDivision {
  double quotient;
  double remainder;
};
RealDivision divide_down(double a, double b) {
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder == 0) {
    remainder = std::copysign(0.0, b);
  } else if ((remainder < 0) != (b < 0)) {
    remainder += b;
    quotient -= 1;
  }
  if (quotient == 0) return {std::copysign(0.0, a / b), remainder};
  const double floor = std::floor(quotient);
  return {quotient - floor > 0.5 ? floor + 1 : floor, remainder};
}

Value reals(Op op, double a, double b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::subtract:
      return a - b;
    case Op::multiply:
      return a * b;
    case Op::divide:
      if (b == 0) throw TemplateError("float division by zero");
      return a / b;
    case Op::floor_divide:
      if (b == 0) throw TemplateError("float floor division by zero");
      return divide_down(a, b).quotient;
    case Op::modulo:
      if (b == 0) throw TemplateError("float modulo");
      return divide_down(a, b).remainder;
    default:
      if (a == 0 && b < 0) throw TemplateError("0.0 cannot be raised to a negative power");
      if (a < 0 && std::isfinite(b) && b != std::floor(b)) {
        throw TemplateError("a negative number has no real power of a fraction");
      }
      if (std::isfinite(a) && std::isfinite(b) && std::isinf(std::pow(a, b))) {
        throw TemplateError("Numerical result out of range");
      }
      return std::pow(a, b);
  }
}

Value concatenated(TemplateRuntime& runtime, const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) {
    const bool is_safe = a.is_safe() || b.is_safe();
    const auto part = [&](const Value& value) {
      return is_safe && !value.is_safe() ? html_escaped(value.text()) : value.text();
    };
    std::string joined = part(a) + part(b);
    if (!is_safe) return runtime.text(std::move(joined));
    runtime.charge(joined.size());
    return Value::safe(std::move(joined));
  }
  const bool are_alike = a.is_sequence() && b.is_sequence() && a.is_tuple() == b.is_tuple();
  if (!are_alike) unsupported(Op::add, a, b);
  TemplateValues items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  runtime.charge_items(items.size());
  return a.is_tuple() ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

Value repeated(TemplateRuntime& runtime, const Value& value, int64_t count) {
  const auto times = static_cast<size_t>(std::max<int64_t>(count, 0));
  const size_t size = value.is_string() ? value.text().size() : value.items().size();
  if (times != 0 && size > runtime.limits().made_bytes / times) runtime.charge(SIZE_MAX / 2);
  if (value.is_string()) {
    std::string all;
    all.reserve(size * times);
    for (size_t i = 0; i < times && size > 0; ++i) all += value.text();
    return runtime.text(std::move(all));
  }
  runtime.charge_items(size * times);
  TemplateValues all;
  for (size_t i = 0; i < times && size > 0; ++i)
    all.insert(all.end(), value.items().begin(), value.items().end());
  return value.is_tuple() ? TemplateValue::tuple(std::move(all))
                          : TemplateValue::list(std::move(all));
}

}  // namespace

TemplateValue arithmetic(TemplateRuntime& runtime, BinaryOperator op, const TemplateValue& a,
                         const TemplateValue& b) {
  require_defined(a);
  if (a.is_string() && op == Op::modulo) refuse_formatting("text % values");
  require_defined(b);
  if (a.is_integral() && b.is_integral()) return integers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return reals(op, a.real(), b.real());
  if (op == Op::add) return concatenated(runtime, a, b);
  if (op == Op::multiply) {
    if ((a.is_string() || a.is_sequence()) && b.is_integral())
      return repeated(runtime, a, b.integer());
    if ((b.is_string() || b.is_sequence()) && a.is_integral())
      return repeated(runtime, b, a.integer());
  }
  unsupported(op, a, b);
}

TemplateValue negated(const TemplateValue& value) {
  require_defined(value);
  if (value.is_float()) return -value.real();
  if (!value.is_integral()) {
    throw TemplateError("bad operand type for unary -: '{}'", value.type_name());
  }
  if (value.integer() == INT64_MIN) overflow();
  return -value.integer();
}

}  // namespace paceline
