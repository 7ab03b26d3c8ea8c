// Operations that choose elements by integers (int32). Indices have no derivative.
//
// What goes to one place is summed in the order of the indices. Errors: invalid, also for an index
// out of range. Negative axes count from the last.
#pragma once

#include <string_view>

#include "autodiff/array.h"

namespace paceline::autodiff {

// numpy.take: the axis of x is replaced by the dimensions of the indices.
Array gather(const Array& x, const Array& indices, int axis);
// The transpose of gather: zeros of `size` along the axis, with updates added where gather would
// read them. updates: the shape of gather's result
Array scatter(const Array& updates, const Array& indices, int axis, int64_t size);
// x with updates added where gather would read them.
Array scatter_add(const Array& x, const Array& indices, const Array& updates, int axis);

// totals [vocab, width] += updates [rows, width] at ids [rows], in place and row by row: parts of a
// batch that are added one after the other give the bits of the whole. Arrays that aren't traced;
// totals: contiguous float32.
void add_rows_at(const Array& updates, const Array& ids, const Tensor& totals);

// Rows of a table.  table [vocab, width], ids [...]; the result [..., width]
Array embedding(const Array& table, const Array& ids);

// One element of each row.  x [..., width], indices [...]; the result [...]. Errors name
// `operation`.
Array take_from_rows(const Array& x, const Array& indices,
                     std::string_view operation = "take_from_rows");
// x with one update added to each row.  updates [...]
Array add_to_rows(const Array& x, const Array& indices, const Array& updates);

}  // namespace paceline::autodiff
