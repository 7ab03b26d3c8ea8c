#include "train/trained_matrix.h"

#include <algorithm>
#include <array>
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
                             Memory& memory)
    : TrainedMatrix(std::move(path), dtype, scale, allocate_tensor(memory, DType::f32, shape),
                    allocate_tensor(memory, DType::f32, shape)) {}

TrainedMatrix::TrainedMatrix(std::string path, DType dtype, float scale, OwnedTensor value,
                             OwnedTensor gradient)
    : TrainedParameter(std::move(path), Kind::matrix, value.view, gradient.view),
      dtype_(dtype),
      scale_(scale),
      owned_value_(std::move(value)),
      owned_gradient_(std::move(gradient)) {
  PL_CHECK(dtype == DType::f32 || dtype == DType::bf16, "trained in float32 or bfloat16");
}

void TrainedMatrix::pack(Backend& backend) {
  const auto* const from = value().elements<float>();
  const int64_t count = value().num_elements();
  OwnedTensor scaled = allocate_tensor(backend.memory(), DType::f32, value().shape());
  auto* const to = scaled.view.elements<float>();
  is_zero_ = true;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = rounded(from[i], dtype_) * scale_;
    is_zero_ = is_zero_ && to[i] == 0.0f;
  }
  packed_ = backend.pack_matrix(std::array{scaled.view}, dtype_);
}

}  // namespace paceline
