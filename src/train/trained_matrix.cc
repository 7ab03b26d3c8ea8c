#include "train/trained_matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

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
                             Backend& backend, PackedOrder order)
    : TrainedMatrix(std::move(path), dtype, scale, backend,
                    allocate_tensor(backend.host_memory(), DType::f32, shape),
                    allocate_tensor(backend.host_memory(), DType::f32, shape), std::move(order)) {
  if (!order_.is_stored() || !backend.has_host_memory()) {
    owned_pass_gradient_ = allocate_tensor(backend.memory(), DType::f32, shape);
  }
}

TrainedMatrix::TrainedMatrix(std::string path, DType dtype, float scale, Backend& backend,
                             OwnedTensor value, OwnedTensor gradient, PackedOrder order)
    : TrainedParameter(std::move(path), Kind::matrix, value.view, gradient.view),
      backend_(backend),
      dtype_(dtype),
      scale_(scale),
      owned_value_(std::move(value)),
      owned_gradient_(std::move(gradient)),
      order_(std::move(order)) {
  PL_CHECK(dtype == DType::f32 || dtype == DType::bf16, "trained in float32 or bfloat16");
}

void TrainedMatrix::pack() {
  const int64_t count = value().num_elements();
  OwnedTensor scaled = allocate_tensor(backend_.host_memory(), DType::f32, value().shape());
  order_.to_packed(value(), scaled.view);
  auto* const to = scaled.view.elements<float>();
  is_zero_ = true;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = rounded(to[i], dtype_) * scale_;
    is_zero_ = is_zero_ && to[i] == 0.0f;
  }
  packed_ = backend_.pack_matrix(std::array{scaled.view}, dtype_);
}

void TrainedMatrix::clear_gradient() const {
  TrainedParameter::clear_gradient();
  if (owned_pass_gradient_) backend_.clear(pass_gradient());
}

void TrainedMatrix::complete_gradient() const {
  if (!owned_pass_gradient_) return;
  if (backend_.has_host_memory()) return order_.to_stored(pass_gradient(), gradient());
  std::vector<float> staging;
  backend_.read(pass_gradient(), staging);
  order_.to_stored(Tensor(staging.data(), DType::f32, gradient().shape()), gradient());
}

}  // namespace paceline
