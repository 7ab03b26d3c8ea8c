// Sums, means and maxima along axes.
//
// They sum in float32 in the order of segment_sums.h, in row-major order of the reduced axes, and
// round once. Negative axes count from the last; no axes: all of them. Errors: invalid.
#pragma once

#include <vector>

#include "autodiff/array.h"

namespace paceline::autodiff {

// What becomes of reduced axes: they are dropped, or kept with size 1.
enum class Reduced : bool { dropped, kept };

Array sum(const Array& x, const std::vector<int>& axes = {}, Reduced reduced = Reduced::dropped);
Array mean(const Array& x, const std::vector<int>& axes = {}, Reduced reduced = Reduced::dropped);
// Elements that are equal to the maximum share its gradient evenly. Errors: also where there are
// no elements.
Array max(const Array& x, const std::vector<int>& axes = {}, Reduced reduced = Reduced::dropped);

// The transpose of broadcasting `shape` to the shape of x.
Array sum_to(const Array& x, const Extents& shape);

}  // namespace paceline::autodiff
