#include "kernels/shape_check.h"

#include <fmt/format.h>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace paceline {
namespace {

// The first byte of a tensor's elements that isn't allocated, or nullptr. Found by
// AddressSanitizer only, which doesn't check the products themselves where they are compiled
// without it (PACELINE_SANITIZED_KERNELS).
const void* first_unallocated_byte([[maybe_unused]] const Tensor& tensor) {
#if defined(__SANITIZE_ADDRESS__)
  if (tensor.empty() || tensor.device() != Device::cpu) return nullptr;
  int64_t first = 0, last = 0;  // offsets, in elements
  for (int i = 0; i < tensor.rank(); ++i) {
    const int64_t reach = (tensor.size(i) - 1) * tensor.stride(i);
    (reach < 0 ? first : last) += reach;
  }
  const auto bytes = static_cast<int64_t>(dtype_bytes(tensor.dtype()));
  return __asan_region_is_poisoned(static_cast<std::byte*>(tensor.raw()) + first * bytes,
                                   static_cast<size_t>((last - first + 1) * bytes));
#else
  return nullptr;
#endif
}

}  // namespace

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
  if (const void* const byte = first_unallocated_byte(tensor)) {
    fail(owner, tensor, names, fmt::format("memory of its own: {} isn't allocated", byte));
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
