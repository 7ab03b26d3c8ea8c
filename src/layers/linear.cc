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
  std::vector<std::unique_ptr<StoredMatrix>> parts;
  const auto pack_parts = [&] {
    weights_.push_back(pack_stored(context, parts));
    parts.clear();
  };
  for (const Projection& projection : projections) {
    auto part = std::make_unique<StoredMatrix>(context, projection.name + ".weight",
                                               projection.out_features, in_features);
    if (!parts.empty() && !parts.front()->packs_with(*part)) pack_parts();
    parts.push_back(std::move(part));
  }
  pack_parts();
  if (bias == Bias::stored) bias_ = load_biases(context, projections, out_features());
}

int64_t Linear::out_features() const {
  int64_t total = 0;
  for (const PackedMatrix& weight : weights_) total += weight.n;
  return total;
}

void Linear::forward(Backend& backend, const Tensor& x, const Tensor& out) const {
  int64_t first = 0;
  for (const PackedMatrix& weight : weights_) {
    const int64_t end = first + weight.n;
    const Tensor bias = bias_ ? bias_->view.slice(0, first, end) : Tensor();
    backend.matmul(x, weight, bias_ ? &bias : nullptr, out.slice(1, first, end));
    first = end;
  }
}

}  // namespace paceline
