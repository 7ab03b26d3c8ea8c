// Errors of operations on arrays whose shapes or dtypes don't fit.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "autodiff/array.h"

namespace paceline::autodiff {

// Throws Error invalid: "matmul: [2, 3] and [4, 5]: expected ...".
[[noreturn]] void throw_shapes(std::string_view operation, const Arrays& found,
                               std::string_view expected);

void check_float(std::string_view operation, const Array& array);

// Throws Error exhausted for more than kMaxElements; a size of 0 doesn't make the others free.
void check_num_elements(std::string_view operation, const Extents& shape);

// The dimension that `axis` names; negative ones count from the last.
int checked_axis(std::string_view operation, const Array& array, int axis);

// numpy's rules: sizes are equal or 1, counted from the last dimension.
Extents broadcast_shape(std::string_view operation, const Arrays& arrays);

// The dtype of a result: that of the inputs if they agree, else float32.
DType common_dtype(const Arrays& arrays);

}  // namespace paceline::autodiff
