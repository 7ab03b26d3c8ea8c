#include "train/trained_matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "kernels/backend.h"

namespace paceline {
namespace {

// As it is after being saved in `dtype`.
float rounded(float value, DType dtype) {
  return dtype == DType::bf16 ? to_float(to_bfloat16(value)) : value;
}

}  // namespace

TrainedMatrix::TrainedMatrix(std::string path, Extents shape, DType dtype, float scale,
                             Memory& memory, PackedOrder order)
    : TrainedMatrix(std::move(path), dtype, scale, allocate_tensor(memory, DType::f32, shape),
                    allocate_tensor(memory, DType::f32, shape), std::move(order)) {
  if (!order_.is_stored()) owned_pass_gradient_ = allocate_tensor(memory, DType::f32, shape);
}

TrainedMatrix::TrainedMatrix(std::string path, DType dtype, float scale, OwnedTensor value,
                             OwnedTensor gradient, PackedOrder order)
    : TrainedParameter(std::move(path), Kind::matrix, value.view, gradient.view),
      dtype_(dtype),
      scale_(scale),
      owned_value_(std::move(value)),
      owned_gradient_(std::move(gradient)),
      order_(std::move(order)) {
  PL_CHECK(dtype == DType::f32 || dtype == DType::bf16, "trained in float32 or bfloat16");
}

void TrainedMatrix::pack(Backend& backend) {
  const int64_t count = value().num_elements();
  OwnedTensor scaled = allocate_tensor(backend.memory(), DType::f32, value().shape());
  order_.to_packed(value(), scaled.view);
  auto* const to = scaled.view.elements<float>();
  is_zero_ = true;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = rounded(to[i], dtype_) * scale_;
    is_zero_ = is_zero_ && to[i] == 0.0f;
  }
  packed_ = backend.pack_matrix(std::array{scaled.view}, dtype_);
}

void TrainedMatrix::clear_gradient() const {
  TrainedParameter::clear_gradient();
  if (!order_.is_stored()) std::memset(pass_gradient().raw(), 0, pass_gradient().size_bytes());
}

void TrainedMatrix::complete_gradient() const {
  if (!order_.is_stored()) order_.to_stored(pass_gradient(), gradient());
}

}  // namespace paceline
