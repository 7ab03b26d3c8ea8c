#include "layers/linear.h"

#include <vector>

namespace paceline {
namespace {

OwnedTensor load_biases(const LoadContext& context, std::span<const Projection> projections,
                        int64_t out_features) {
  OwnedTensor bias = allocate_tensor(context.memory, DType::f32, {out_features});
  int64_t first = 0;
  for (const Projection& projection : projections) {
    const std::string name = projection.name + ".bias";
    const int64_t end = first + projection.out_features;
    copy_elements(context.weights.read(name, {projection.out_features}),
                  bias.view.slice(0, first, end));
    context.weights.release(name);
    first = end;
  }
  return bias;
}

}  // namespace

Linear::Linear(const LoadContext& context, std::span<const Projection> projections,
               int64_t in_features, Bias bias) {
  std::vector<Tensor> parts;
  for (const Projection& projection : projections) {
    parts.push_back(
        context.weights.read(projection.name + ".weight", {projection.out_features, in_features}));
  }
  weight_ = pack_matrix(parts, context.weight_dtype, context.memory, context.threads);
  for (const Projection& projection : projections) {
    context.weights.release(projection.name + ".weight");
  }
  if (bias == Bias::stored) bias_ = load_biases(context, projections, weight_.n);
}

void Linear::forward(Backend& backend, const Tensor& x, const Tensor& out) const {
  backend.matmul(x, weight_, bias_ ? &bias_->view : nullptr, out);
}

}  // namespace paceline
