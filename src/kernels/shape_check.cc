#include "kernels/shape_check.h"

#include <fmt/format.h>

#include "base/error.h"

namespace paceline {

const ShapeCheck::Dimension* ShapeCheck::find(std::string_view name) const {
  for (size_t i = 0; i < num_dimensions_; ++i) {
    if (dimensions_[i].name == name) return &dimensions_[i];
  }
  return nullptr;
}

int64_t ShapeCheck::size(std::string_view name) const {
  const Dimension* dimension = find(name);
  PL_CHECK(dimension != nullptr, fmt::format("{}: no dimension is called {}", op_, name));
  return dimension->size;
}

void ShapeCheck::dimension(std::string_view owner, std::string_view name, int64_t size) {
  if (const Dimension* known = find(name)) {
    PL_CHECK(known->size == size, fmt::format("{}: {} has {} = {}, but {} has {}", op_, owner, name,
                                              size, known->owner, known->size));
    return;
  }
  PL_CHECK(num_dimensions_ < kMaxDimensions, fmt::format("{}: too many dimensions", op_));
  dimensions_[num_dimensions_++] = {name, owner, size};
}

void ShapeCheck::tensor(std::string_view owner, const Tensor& tensor, Names names, DType dtype) {
  if (tensor.rank() != static_cast<int>(names.size())) fail(owner, tensor, names, "another rank");
  if (tensor.dtype() != dtype) fail(owner, tensor, names, dtype_name(dtype));
  if (tensor.size(-1) > 1 && tensor.stride(-1) != 1) {
    fail(owner, tensor, names, "a contiguous last dimension");
  }
  int index = 0;
  for (std::string_view name : names) dimension(owner, name, tensor.size(index++));
}

void ShapeCheck::fail(std::string_view owner, const Tensor& tensor, Names names,
                      std::string_view reason) const {
  std::string expected;
  for (std::string_view name : names) {
    expected += expected.empty() ? "" : ", ";
    expected += name;
  }
  check_failed(
      "ShapeCheck", __FILE__, __LINE__,
      fmt::format("{}: {} is {} {}, expected [{}] with {}", op_, owner, dtype_name(tensor.dtype()),
                  to_string(tensor.shape()), expected, reason));
}

}  // namespace paceline
