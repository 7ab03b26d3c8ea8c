#include "layers/norm.h"

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/gradients.h"
#include "layers/load_context.h"
#include "layers/scratch.h"

namespace paceline {
namespace {

OwnedTensor load_weight(const LoadContext& context, std::string_view name, int64_t width,
                        const NormOptions& options) {
  if (!options.has_weight) {
    return write_vector(context.backend, std::vector<float>(static_cast<size_t>(width), 1.0f));
  }
  return load_vector(context, std::string(name) + ".weight", width, options.weight_offset);
}

}  // namespace

Norm::Norm(const LoadContext& context, std::string_view name, int64_t width,
           const NormOptions& options)
    : kind_(options.kind),
      weight_(load_weight(context, name, width, options)),
      eps_(options.eps),
      weight_offset_(options.weight_offset),
      has_weight_(options.has_weight) {
  if (options.has_weight && options.bias)
    bias_ = load_vector(context, std::string(name) + ".bias", width);
}

void Norm::forward(Backend& backend, const Tensor& x, const Tensor& out) const {
  if (kind_ == NormKind::layer) {
    backend.layer_norm(x, weight_.view, bias(), eps_, out);
  } else {
    backend.rms_norm(x, weight_.view, eps_, out);
  }
}

void Norm::add_forward(Backend& backend, const Tensor& residual, const Tensor& branch,
                       const Norm* branch_norm, const Tensor& out) const {
  const std::optional<RmsNormWeights> own = rms_weights();
  const auto of_branch = branch_norm != nullptr ? branch_norm->rms_weights() : std::nullopt;
  if (own && (branch_norm == nullptr || of_branch)) {
    return backend.add_rms_norm(residual, branch, of_branch ? &*of_branch : nullptr, *own, out);
  }
  if (branch_norm != nullptr) branch_norm->forward(backend, branch, out);
  backend.add(residual, branch_norm != nullptr ? out : branch, residual);
  forward(backend, residual, out);
}

void Norm::set_values(Backend& backend, std::span<const float> weight,
                      std::span<const float> bias) {
  PL_CHECK(std::ssize(weight) == weight_.view.num_elements(), "values of the weight's width");
  PL_CHECK(bias.size() == (bias_ ? weight.size() : 0), "a bias where there is one");
  std::vector<float> values(weight.begin(), weight.end());
  for (float& value : values) value += weight_offset_;
  weight_ = write_vector(backend, values);
  if (bias_) bias_ = write_vector(backend, bias);
}

void Norm::gradient(GradientOps& gradients, const Tensor& x, const Tensor& dy, const Tensor& dx,
                    const NormGradient& added) const {
  const Tensor* const dweight = added.weight ? &*added.weight : nullptr;
  const NormGradientInputs in = {.x = x, .weight = weight_.view, .dy = dy};
  if (kind_ == NormKind::layer) {
    gradients.layer_norm_gradient(in, eps_, dx, dweight, added.bias ? &*added.bias : nullptr);
  } else {
    gradients.rms_norm_gradient(in, eps_, dx, dweight);
  }
}

}  // namespace paceline
