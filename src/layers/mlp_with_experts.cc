#include "layers/mlp_with_experts.h"

#include <cmath>
#include <utility>

#include "kernels/backend.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

const MlpWithExpertsNames kBesideNames;

Norm load_router_norm(const LoadContext& context, const std::string& block, int64_t hidden_size,
                      const NormOptions& options) {
  std::vector<float> scale =
      load_numbers(context, block + "." + kBesideNames.router_scale, hidden_size);
  const float share = 1.0f / std::sqrt(static_cast<float>(hidden_size));
  for (float& element : scale) element *= share;
  return Norm(write_vector(context.backend, scale), options);
}

}  // namespace

MlpWithExperts::MlpWithExperts(const LoadContext& context, const std::string& block, GatedMlp mlp,
                               Mixture mixture, int64_t hidden_size, const NormOptions& norm)
    : mlp_(std::move(mlp)),
      mixture_(std::move(mixture)),
      before_mlp_(context, block + "." + kBesideNames.before_mlp, hidden_size, norm),
      after_mlp_(context, block + "." + kBesideNames.after_mlp, hidden_size, norm),
      before_experts_(context, block + "." + kBesideNames.before_experts, hidden_size, norm),
      after_experts_(context, block + "." + kBesideNames.after_experts, hidden_size, norm),
      before_router_(load_router_norm(context, block, hidden_size, norm)) {}

void MlpWithExperts::forward(Backend& backend, const Tensor& x, const BlockAdapters& adapters,
                             Scratch& scratch, const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const auto& [dense, router_input] = MlpWithExpertsScratch(scratch, x.size(1), x.size(0));
  before_mlp_.forward(backend, x, dense);
  mlp_.forward(backend, dense, adapters, scratch, dense);
  after_mlp_.forward(backend, dense, dense);
  before_router_.forward(backend, x, router_input);
  before_experts_.forward(backend, x, out);
  mixture_.forward(backend, router_input, out, adapters, scratch, out);
  after_experts_.forward(backend, out, out);
  backend.add(dense, out, out);
}

void MlpWithExperts::list_weights(std::vector<const PackedMatrix*>& weights) const {
  for (const Linear* const product : mlp_.products()) {
    for (const PackedMatrix& matrix : product->weights()) weights.push_back(&matrix);
  }
  mixture_.list_weights(weights);
}

}  // namespace paceline
