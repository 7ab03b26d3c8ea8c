// Operations on each element; those of two arrays broadcast by numpy's rules.
//
// They compute in float32 and round once. Results have the inputs' dtype, or float32 if those
// differ. Errors: invalid, with the operation and both shapes, if shapes don't broadcast.
#pragma once

#include "autodiff/array.h"

namespace paceline::autodiff {

Array add(const Array& a, const Array& b);
Array subtract(const Array& a, const Array& b);
Array multiply(const Array& a, const Array& b);
Array divide(const Array& a, const Array& b);
// Where both are equal, each takes half of the gradient.
Array maximum(const Array& a, const Array& b);
Array minimum(const Array& a, const Array& b);

Array negate(const Array& x);
Array reciprocal(const Array& x);  // 1 / x
Array exp(const Array& x);
Array log(const Array& x);
Array sqrt(const Array& x);
Array rsqrt(const Array& x);  // 1 / sqrt(x)
Array tanh(const Array& x);
Array erf(const Array& x);
Array sigmoid(const Array& x);
Array silu(const Array& x);       // x sigmoid(x)
Array gelu_tanh(const Array& x);  // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Array gelu_erf(const Array& x);   // x / 2 (1 + erf(x / sqrt(2)))

Array scale(const Array& x, float factor);
Array add_scalar(const Array& x, float term);

// The array in another float dtype, rounded to nearest, ties to even. Gradients pass straight
// through: the derivative of rounding is taken to be 1.
Array convert(const Array& x, DType dtype);

// The same values as a constant of all transformations.
Array stop_gradient(const Array& x);

// a where the mask (int8) isn't 0, else b. All broadcast.
Array where(const Array& mask, const Array& a, const Array& b);
// Masks (int8) of the values; they have no derivative.
Array equal(const Array& a, const Array& b);
Array greater(const Array& a, const Array& b);

inline Array operator+(const Array& a, const Array& b) { return add(a, b); }
inline Array operator-(const Array& a, const Array& b) { return subtract(a, b); }
inline Array operator*(const Array& a, const Array& b) { return multiply(a, b); }
inline Array operator/(const Array& a, const Array& b) { return divide(a, b); }
inline Array operator-(const Array& x) { return negate(x); }
inline Array operator*(const Array& x, float factor) { return scale(x, factor); }
inline Array operator*(float factor, const Array& x) { return scale(x, factor); }
inline Array operator+(const Array& x, float term) { return add_scalar(x, term); }
inline Array operator+(float term, const Array& x) { return add_scalar(x, term); }
inline Array operator-(const Array& x, float term) { return add_scalar(x, -term); }
inline Array operator-(float term, const Array& x) { return add_scalar(negate(x), term); }

}  // namespace paceline::autodiff
