// ShapeCheck compares the tensors of one op call by the names of their dimensions.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

#include "tensor/tensor.h"

namespace paceline {

// The first tensor that names a dimension gives it its size; the others must agree. A mismatch
// aborts with the op, the tensor, its shape and the sizes expected. Allocates nothing when all is
// well.
class ShapeCheck {
 public:
  using Names = std::initializer_list<std::string_view>;

  explicit ShapeCheck(std::string_view op) : op_(op) {}

  // `owner` names what the dimension belongs to, for the message.
  void dimension(std::string_view owner, std::string_view name, int64_t size);
  // Shape, dtype, and a contiguous last dimension; in an AddressSanitizer build also that every
  // element lies in allocated memory.
  void tensor(std::string_view owner, const Tensor& tensor, Names names, DType dtype = DType::f32);
  // The size of a dimension that was named before.
  int64_t size(std::string_view name) const;

 private:
  struct Dimension {
    std::string_view name;
    std::string_view owner;
    int64_t size = 0;
  };
  static constexpr size_t kMaxDimensions = 12;

  const Dimension* find(std::string_view name) const;
  [[noreturn]] void fail(std::string_view owner, const Tensor& tensor, Names names,
                         std::string_view reason) const;

  std::string_view op_;
  std::array<Dimension, kMaxDimensions> dimensions_{};
  size_t num_dimensions_ = 0;
};

}  // namespace paceline
