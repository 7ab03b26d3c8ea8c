#include "layers/load_context.h"

namespace paceline {

OwnedTensor load_vector(const LoadContext& context, std::string_view name, int64_t size,
                        float offset) {
  const Tensor stored = context.weights.read(name, {size});
  OwnedTensor vector = allocate_tensor(context.memory, DType::f32, {size});
  copy_elements(stored, vector.view);
  context.weights.release(name);
  if (offset != 0.0f) {
    float* elements = vector.view.elements<float>();
    for (int64_t i = 0; i < size; ++i) elements[i] += offset;
  }
  return vector;
}

}  // namespace paceline
