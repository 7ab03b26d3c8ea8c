#include "tests/autodiff/naive_array.h"

#include <algorithm>
#include <map>

namespace paceline::autodiff {
namespace {

int64_t count_of(const Extents& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

}  // namespace

double& NaiveArray::at(const std::vector<int64_t>& index) {
  int64_t position = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    position = position * shape[i] + index[static_cast<size_t>(i)];
  }
  return values.at(static_cast<size_t>(position));
}

NaiveArray naive_zeros(const Extents& shape) {
  return {shape, std::vector<double>(static_cast<size_t>(count_of(shape)))};
}

void for_each_index(const Extents& shape,
                    const std::function<void(const std::vector<int64_t>&)>& body) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (int64_t position = 0; position < count_of(shape); ++position) {
    int64_t left = position;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      index[static_cast<size_t>(i)] = left % shape[i];
      left /= shape[i];
    }
    body(index);
  }
}

double broadcast_value(const NaiveArray& x, const std::vector<int64_t>& index) {
  std::vector<int64_t> own(index.end() - x.shape.rank(), index.end());
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (x.shape[i] == 1) own[static_cast<size_t>(i)] = 0;
  }
  return x.at(own);
}

NaiveArray naive_map(const NaiveArray& x, const std::function<double(double)>& f) {
  NaiveArray y = x;
  for (double& value : y.values) value = f(value);
  return y;
}

NaiveArray naive_pairs(const NaiveArray& a, const NaiveArray& b,
                       const std::function<double(double, double)>& f) {
  const int rank = std::max(a.shape.rank(), b.shape.rank());
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  for (const NaiveArray* x : {&a, &b}) {
    for (int i = 0; i < x->shape.rank(); ++i) {
      const int place = rank - x->shape.rank() + i;
      int64_t& size = sizes[static_cast<size_t>(place)];
      size = std::max(size, x->shape[i]);
    }
  }
  NaiveArray result = naive_zeros(Extents(std::span<const int64_t>(sizes)));
  for_each_index(result.shape, [&](const std::vector<int64_t>& index) {
    result.at(index) = f(broadcast_value(a, index), broadcast_value(b, index));
  });
  return result;
}

NaiveArray naive_reduce(const NaiveArray& x, const std::vector<int>& axes,
                        const std::function<double(const std::vector<double>&)>& f) {
  Extents shape = x.shape;
  for (const int axis : axes) shape[axis] = 1;
  std::map<std::vector<int64_t>, std::vector<double>> groups;
  for_each_index(x.shape, [&](std::vector<int64_t> index) {
    const double value = x.at(index);
    for (const int axis : axes) index[static_cast<size_t>(axis)] = 0;
    groups[index].push_back(value);
  });
  NaiveArray result = naive_zeros(shape);
  for (const auto& [index, values] : groups) result.at(index) = f(values);
  return result;
}

NaiveArray naive_rows(const NaiveArray& x, const std::function<void(std::vector<double>&)>& f) {
  NaiveArray result = x;
  const auto width = static_cast<std::ptrdiff_t>(x.shape[x.shape.rank() - 1]);
  for (auto begin = result.values.begin(); begin != result.values.end(); begin += width) {
    std::vector<double> row(begin, begin + width);
    f(row);
    std::copy(row.begin(), row.end(), begin);
  }
  return result;
}

NaiveArray naive_matmul(const NaiveArray& a, const NaiveArray& b) {
  const int a_rank = a.shape.rank(), b_rank = b.shape.rank();
  const int rank = std::max(a_rank, b_rank);
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  for (const NaiveArray* x : {&a, &b}) {
    for (int i = 0; i + 2 < x->shape.rank(); ++i) {
      const int place = rank - x->shape.rank() + i;
      int64_t& size = sizes[static_cast<size_t>(place)];
      size = std::max(size, x->shape[i]);
    }
  }
  sizes[static_cast<size_t>(rank) - 2] = a.shape[a_rank - 2];
  sizes[static_cast<size_t>(rank) - 1] = b.shape[b_rank - 1];
  NaiveArray result = naive_zeros(Extents(std::span<const int64_t>(sizes)));
  for_each_index(result.shape, [&](const std::vector<int64_t>& index) {
    std::vector<int64_t> left = index, right = index;
    for (int64_t k = 0; k < a.shape[a_rank - 1]; ++k) {
      left[static_cast<size_t>(rank) - 1] = k;
      right[static_cast<size_t>(rank) - 2] = k;
      result.at(index) += broadcast_value(a, left) * broadcast_value(b, right);
    }
  });
  return result;
}

NaiveArray naive_permute(const NaiveArray& x, const std::vector<int>& axes) {
  Extents shape = x.shape;
  for (size_t i = 0; i < axes.size(); ++i) shape[static_cast<int>(i)] = x.shape[axes[i]];
  NaiveArray result = naive_zeros(shape);
  for_each_index(shape, [&](const std::vector<int64_t>& index) {
    std::vector<int64_t> from(index.size());
    for (size_t i = 0; i < axes.size(); ++i) from[static_cast<size_t>(axes[i])] = index[i];
    result.at(index) = x.at(from);
  });
  return result;
}

NaiveArray naive_reshape(NaiveArray x, const Extents& shape) {
  x.shape = shape;
  return x;
}

}  // namespace paceline::autodiff
