// Operations on each element.
#include "autodiff/elementwise.h"

#include "arrays/array_state.h"
#include "autodiff/new_arrays.h"

namespace paceline::arrays {
namespace {

using Unary = autodiff::Array (*)(const autodiff::Array&);
using Binary = autodiff::Array (*)(const autodiff::Array&, const autodiff::Array&);

Array apply(std::string_view name, Unary operation, const Array& x) {
  return wrapped(operation(inner(name, x)));
}

Array apply(std::string_view name, Binary operation, const Array& a, const Array& b) {
  return wrapped(operation(inner(name, a), inner(name, b)));
}

// f of both, in the dtype of x; the number isn't rounded first.
template <class F>
Array with_number(std::string_view name, const Array& x, float number, F f) {
  const autodiff::Array& array = inner(name, x);
  const autodiff::Array other = autodiff::from_values(array_context(), {&number, 1}, {});
  return wrapped(autodiff::convert(f(array, other), array.dtype()));
}

}  // namespace

Array add(const Array& a, const Array& b) { return apply("add", autodiff::add, a, b); }
Array subtract(const Array& a, const Array& b) {
  return apply("subtract", autodiff::subtract, a, b);
}
Array multiply(const Array& a, const Array& b) {
  return apply("multiply", autodiff::multiply, a, b);
}
Array divide(const Array& a, const Array& b) { return apply("divide", autodiff::divide, a, b); }
Array maximum(const Array& a, const Array& b) { return apply("maximum", autodiff::maximum, a, b); }
Array minimum(const Array& a, const Array& b) { return apply("minimum", autodiff::minimum, a, b); }
Array equal(const Array& a, const Array& b) { return apply("equal", autodiff::equal, a, b); }
Array greater(const Array& a, const Array& b) { return apply("greater", autodiff::greater, a, b); }

Array where(const Array& mask, const Array& a, const Array& b) {
  return wrapped(autodiff::where(inner("where", mask), inner("where", a), inner("where", b)));
}

Array negate(const Array& x) { return apply("negate", autodiff::negate, x); }
Array reciprocal(const Array& x) { return apply("reciprocal", autodiff::reciprocal, x); }
Array exp(const Array& x) { return apply("exp", autodiff::exp, x); }
Array log(const Array& x) { return apply("log", autodiff::log, x); }
Array sqrt(const Array& x) { return apply("sqrt", autodiff::sqrt, x); }
Array rsqrt(const Array& x) { return apply("rsqrt", autodiff::rsqrt, x); }
Array tanh(const Array& x) { return apply("tanh", autodiff::tanh, x); }
Array erf(const Array& x) { return apply("erf", autodiff::erf, x); }
Array sigmoid(const Array& x) { return apply("sigmoid", autodiff::sigmoid, x); }
Array silu(const Array& x) { return apply("silu", autodiff::silu, x); }
Array gelu_tanh(const Array& x) { return apply("gelu_tanh", autodiff::gelu_tanh, x); }
Array gelu_erf(const Array& x) { return apply("gelu_erf", autodiff::gelu_erf, x); }

Array convert(const Array& x, DType dtype) {
  return wrapped(autodiff::convert(inner("convert", x), inner_float("convert", dtype)));
}

Array stop_gradient(const Array& x) {
  return wrapped(autodiff::stop_gradient(inner("stop_gradient", x)));
}

Array operator+(const Array& a, const Array& b) { return add(a, b); }
Array operator-(const Array& a, const Array& b) { return subtract(a, b); }
Array operator*(const Array& a, const Array& b) { return multiply(a, b); }
Array operator/(const Array& a, const Array& b) { return divide(a, b); }
Array operator-(const Array& x) { return negate(x); }

Array operator+(const Array& x, float term) {
  return wrapped(autodiff::add_scalar(inner("add", x), term));
}
Array operator+(float term, const Array& x) { return x + term; }
Array operator-(const Array& x, float term) { return x + -term; }
Array operator-(float term, const Array& x) { return wrapped(term - inner("subtract", x)); }
Array operator*(const Array& x, float factor) {
  return wrapped(autodiff::scale(inner("multiply", x), factor));
}
Array operator*(float factor, const Array& x) { return x * factor; }
Array operator/(const Array& x, float divisor) {
  return with_number("divide", x, divisor, [](const auto& a, const auto& b) { return a / b; });
}
Array operator/(float numerator, const Array& x) {
  return with_number("divide", x, numerator, [](const auto& a, const auto& b) { return b / a; });
}

}  // namespace paceline::arrays
