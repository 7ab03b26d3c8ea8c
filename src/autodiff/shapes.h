// Operations that move elements without computing: reshape, transpose, slice, concatenate.
//
// Results are views where strides can say it. Negative axes count from the last.
#pragma once

#include <vector>

#include "autodiff/array.h"

namespace paceline::autodiff {

// The same elements in row-major order; one size may be -1: what is left. Errors: invalid.
Array reshape(const Array& x, const Extents& shape);
// Dimension i of the result is dimension axes[i] of x: each one once. Errors: invalid.
Array permute(const Array& x, const std::vector<int>& axes);
Array transpose(const Array& x, int first, int second);
// numpy's rules. Errors: invalid.
Array broadcast_to(const Array& x, const Extents& shape);

// Elements `begin`, `begin + step`, ... of an axis, up to but not including `end`. With a negative
// step they run backwards, and `end` may be -1. Errors: invalid, if one is outside.
struct Range {
  int axis = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t step = 1;
};
Array slice(const Array& x, const Range& range);
// The transpose of slice: zeros of `size` along the axis, with x where the range lies.
Array place(const Array& x, const Range& range, int64_t size);

// The element `index` of an axis, which is dropped: a view. Errors: invalid.
Array select(const Array& x, int axis, int64_t index);
// x itself if its elements lie in row-major order without gaps, else a copy that does.
Array make_contiguous(const Array& x);

// Arrays behind each other along an axis; their other sizes are equal. Errors: invalid.
Array concatenate(const Arrays& arrays, int axis);

}  // namespace paceline::autodiff
