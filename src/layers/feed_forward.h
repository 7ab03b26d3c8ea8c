// FeedForward is the second branch of a block: one gated MLP, or a mixture of experts.
#pragma once

#include <variant>
#include <vector>

#include "layers/gated_mlp.h"
#include "layers/mixture.h"

namespace paceline {

class FeedForward {
 public:
  explicit FeedForward(GatedMlp dense) : part_(std::move(dense)) {}
  explicit FeedForward(Mixture mixture) : part_(std::move(mixture)) {}

  // In place; x, out [rows, hidden].
  void forward(Backend& backend, const Tensor& x, const BlockAdapters& adapters, Scratch& scratch,
               const Tensor& out) const {
    if (const GatedMlp* const mlp = dense())
      return mlp->forward(backend, x, adapters, scratch, out);
    std::get<Mixture>(part_).forward(backend, x, adapters, scratch, out);
  }

  // Every matrix that a row is multiplied by.
  void list_weights(std::vector<const PackedMatrix*>& weights) const {
    const GatedMlp* const mlp = dense();
    if (mlp == nullptr) return std::get<Mixture>(part_).list_weights(weights);
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
  std::variant<GatedMlp, Mixture> part_;
};

}  // namespace paceline
