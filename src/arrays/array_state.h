// What stands behind a public Array, and the ways in and out of it.
#pragma once

#include <string_view>

#include "autodiff/array.h"
#include "paceline/array.h"

namespace paceline::arrays {

struct Array::State {
  autodiff::Array array;  // defined
};

// Where all arrays of the process live and who computes them. Never destroyed.
const autodiff::Context& array_context();
autodiff::SharedPool& array_pool();

// Throws Error invalid "OPERATION: an empty array: ..." for one.
const autodiff::Array& inner(std::string_view operation, const Array& array);
autodiff::Arrays inner(std::string_view operation, std::span<const Array> arrays);
// An empty one becomes an undefined one.
autodiff::Array inner_or_undefined(const Array& array);

Array wrapped(autodiff::Array array);
std::vector<Array> wrapped(const autodiff::Arrays& arrays);

// Throws Error invalid for negative sizes and too many dimensions, exhausted for too many elements.
Extents checked_shape(std::string_view operation, const Shape& shape);
// The same of a shape that may have one size of -1.
Extents open_shape(std::string_view operation, const Shape& shape);
Shape to_shape(const Extents& extents);

// Throws Error invalid for a value that isn't one of the enum's; the second also for one without
// derivative.
paceline::DType inner_dtype(std::string_view operation, DType dtype);
paceline::DType inner_float(std::string_view operation, DType dtype);
DType outer_dtype(paceline::DType dtype);

}  // namespace paceline::arrays
