// FeedForward is the second branch of a block: one gated MLP, a mixture of experts, or both.
#pragma once

#include <variant>
#include <vector>

#include "layers/gated_mlp.h"
#include "layers/mixture.h"
#include "layers/mlp_with_experts.h"

namespace paceline {

class FeedForward {
 public:
  explicit FeedForward(GatedMlp dense) : part_(std::move(dense)) {}
  explicit FeedForward(Mixture mixture) : part_(std::move(mixture)) {}
  explicit FeedForward(MlpWithExperts both) : part_(std::move(both)) {}

  // In place, but for MlpWithExperts; x, out [rows, hidden].
  void forward(Backend& backend, const Tensor& x, const BlockAdapters& adapters, Scratch& scratch,
               const Tensor& out) const {
    std::visit([&](const auto& part) { part.forward(backend, x, adapters, scratch, out); }, part_);
  }

  // Every matrix that a row is multiplied by.
  void list_weights(std::vector<const PackedMatrix*>& weights) const {
    const GatedMlp* const mlp = dense();
    if (mlp == nullptr) {
      if (const Mixture* const experts = mixture()) return experts->list_weights(weights);
      return std::get<MlpWithExperts>(part_).list_weights(weights);
    }
    for (const Linear* const product : mlp->products()) {
      for (const PackedMatrix& matrix : product->weights()) weights.push_back(&matrix);
    }
  }

  // Null for a mixture.
  const GatedMlp* dense() const { return std::get_if<GatedMlp>(&part_); }
  GatedMlp* dense() { return std::get_if<GatedMlp>(&part_); }
  // Null for a dense layer.
  const Mixture* mixture() const { return std::get_if<Mixture>(&part_); }
  Mixture* mixture() { return std::get_if<Mixture>(&part_); }

 private:
  std::variant<GatedMlp, Mixture, MlpWithExperts> part_;
};

}  // namespace paceline
