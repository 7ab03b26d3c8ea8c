// Norm scales every row to unit root mean square (Zhang & Sennrich, 2019) or to mean 0 and
// variance 1 (layer norm; Ba et al., 2016), times a weight.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "kernels/operands.h"
#include "tensor/tensor.h"

namespace paceline {

class Backend;
class GradientOps;
struct LoadContext;

enum class NormKind : uint8_t { rms, layer };

struct NormOptions {
  NormKind kind = NormKind::rms;
  float eps = 1e-6f;
  float weight_offset = 0.0f;  // folded into the weight at load
  bool bias = false;           // of layer norms, added behind the weight
  bool has_weight = true;      // false: neither is stored, and nothing is multiplied or added
};

// Float32 [width] each; nothing: it isn't trained.
struct NormGradient {
  std::optional<Tensor> weight;
  std::optional<Tensor> bias;
};

class Norm {
 public:
  // `name` is the canonical name without ".weight" and ".bias".
  Norm(const LoadContext& context, std::string_view name, int64_t width,
       const NormOptions& options);
  // Of a loaded weight [width], without a bias.
  Norm(OwnedTensor weight, const NormOptions& options)
      : kind_(options.kind),
        weight_(std::move(weight)),
        eps_(options.eps),
        weight_offset_(0.0f),
        has_weight_(true) {}

  // x, out [..., width]; in place when they are the same.
  void forward(Backend& backend, const Tensor& x, const Tensor& out) const;
  // residual += branch, or the branch_norm of it where there is one; then out = this norm of
  // residual.                             residual, branch, out [rows, width]; out may be branch
  void add_forward(Backend& backend, const Tensor& residual, const Tensor& branch,
                   const Norm* branch_norm, const Tensor& out) const;
  // The gradient of x, and adds those of the weight and the bias to `added`; dx may be x or dy.
  void gradient(GradientOps& gradients, const Tensor& x, const Tensor& dy, const Tensor& dx,
                const NormGradient& added) const;

  NormKind kind() const { return kind_; }
  // Of a norm of another kind nothing.
  std::optional<RmsNormWeights> rms_weights() const {
    if (kind_ != NormKind::rms) return std::nullopt;
    return RmsNormWeights{weight_.view, eps_};
  }
  const Tensor& weight() const { return weight_.view; }  // [width], the offset included
  const Tensor* bias() const { return bias_ ? &bias_->view : nullptr; }  // [width]
  float eps() const { return eps_; }
  float weight_offset() const { return weight_offset_; }
  bool has_weight() const { return has_weight_; }

  // Replaces the weight by `weight`, as files have it, plus the offset, and the bias if there is
  // one: training does it after each step.
  void set_values(Backend& backend, std::span<const float> weight, std::span<const float> bias);

 private:
  NormKind kind_;
  OwnedTensor weight_;  // [width] float32
  std::optional<OwnedTensor> bias_;
  float eps_;
  float weight_offset_;
  bool has_weight_;
};

}  // namespace paceline
