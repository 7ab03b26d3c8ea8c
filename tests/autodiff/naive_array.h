// NaiveArray is a twin of Array in float64, with plain definitions of the operations.
//
// The derivatives of operations are compared with finite differences of these definitions, which
// have no roundings and share no code with what they test.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tensor/tensor.h"

namespace paceline::autodiff {

struct NaiveArray {
  Extents shape;
  std::vector<double> values{};  // row-major

  double& at(const std::vector<int64_t>& index);
  double at(const std::vector<int64_t>& index) const {
    return const_cast<NaiveArray*>(this)->at(index);
  }
};

using NaiveArrays = std::vector<NaiveArray>;
using NaiveFunction = std::function<NaiveArray(const NaiveArrays&)>;

NaiveArray naive_zeros(const Extents& shape);
// Calls body(index) for every element of a shape.
void for_each_index(const Extents& shape,
                    const std::function<void(const std::vector<int64_t>&)>& body);
// The element of x that broadcasts to an index.
double broadcast_value(const NaiveArray& x, const std::vector<int64_t>& index);

NaiveArray naive_map(const NaiveArray& x, const std::function<double(double)>& f);
NaiveArray naive_pairs(const NaiveArray& a, const NaiveArray& b,
                       const std::function<double(double, double)>& f);
// f of all elements that differ along the axes alone; the axes keep size 1.
NaiveArray naive_reduce(const NaiveArray& x, const std::vector<int>& axes,
                        const std::function<double(const std::vector<double>&)>& f);
// f of each row (the last dimension), which it changes in place.
NaiveArray naive_rows(const NaiveArray& x, const std::function<void(std::vector<double>&)>& f);
NaiveArray naive_matmul(const NaiveArray& a, const NaiveArray& b);
NaiveArray naive_permute(const NaiveArray& x, const std::vector<int>& axes);
NaiveArray naive_reshape(NaiveArray x, const Extents& shape);

}  // namespace paceline::autodiff
