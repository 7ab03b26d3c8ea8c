// Mixture is a feed-forward layer of experts: a router chooses some for each row, and their outputs
// are added up with its weights (Shazeer et al., "Outrageously Large Neural Networks", 2017).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/expert_steps.h"
#include "layers/gated_mlp.h"
#include "layers/linear.h"
#include "layers/mixture_config.h"
#include "layers/scratch.h"

namespace paceline {

// What Mixture::forward() takes of the arena, for `rows` rows; where adapters change experts,
// mix_adapted_experts() takes more.
struct MixtureScratch {
  Tensor logits;    // [rows, num_logits]
  Routing routing;  // [rows, slots]
  Tensor inner;     // [rows, input_size], where experts read latent columns or scaled rows
  Tensor shared;    // [rows, hidden], there too
  Tensor mixed;     // [rows, hidden], of scaled rows
  Tensor ones;      // [rows, 1], likewise

  MixtureScratch(Scratch& scratch, const MixtureConfig& config, int64_t hidden_size, int64_t rows);
};

// Packed expert by expert, so that only the memory of chosen experts is read. The router is float32
// in any model and its inputs are not rounded, so that the choice depends on the hidden state
// alone.
class Mixture {
 public:
  // `block` is the canonical prefix of the block, e.g. "layers.0".
  Mixture(const LoadContext& context, const std::string& block, const MixtureConfig& config,
          int64_t hidden_size, Activation activation);

  // In place; x, out [rows, hidden].
  void forward(Backend& backend, const Tensor& x, const BlockAdapters& adapters, Scratch& scratch,
               const Tensor& out) const {
    forward(backend, x, x, adapters, scratch, out);
  }
  // The same with another input of the router.                   router_input [rows, hidden]
  void forward(Backend& backend, const Tensor& router_input, const Tensor& x,
               const BlockAdapters& adapters, Scratch& scratch, const Tensor& out) const;
  // The chosen experts alone, with these segments beside their products, or without any if it is
  // empty. Experts read `inputs`, which are latent columns or x; the router reads x.
  //                               inputs, out [rows, what experts read]
  void mix_experts(Backend& backend, const Tensor& x, const Tensor& inputs,
                   const ListExpertSegments& list_segments, Scratch& scratch,
                   const Tensor& out) const;

  // What stands around the chosen experts where they read latent columns.
  struct Latent {
    Linear to;
    Linear from;
    GatedMlp shared;  // reads the hidden ones
  };

  // Its parts, for a pass that computes them in another way (training).
  const MixtureConfig& config() const { return config_; }
  const Linear& router() const { return router_; }
  const std::vector<GatedMlp>& experts() const { return experts_; }  // the shared one is the last
  const Latent* latent() const { return latent_ ? &*latent_ : nullptr; }  // null: no such columns
  // The same, for training to replace their values.
  Linear& router() { return router_; }
  std::span<GatedMlp> experts() { return experts_; }
  // The first step of forward, without adapters.
  // x [rows, hidden], logits [rows, num_logits], out [rows, slots]
  void route(Backend& backend, const Tensor& x, const Tensor& logits, const Routing& out) const;

  // The matrices that a row is multiplied by: the router, and as many experts as it has.
  void list_weights(std::vector<const PackedMatrix*>& weights) const;

 private:
  void choose(Backend& backend, const Tensor& logits, const Routing& out) const;
  void scale_weights(Backend& backend, const Routing& routing) const;
  // In place.
  void mix(Backend& backend, const Routing& routing, const ListExpertSegments& list_segments,
           const Tensor& inputs, Scratch& scratch, const Tensor& out) const;
  // x may be out.
  void forward_scaled(Backend& backend, const Tensor& x, const MixtureScratch& taken,
                      const ListExpertSegments& list_segments, const BlockAdapters& adapters,
                      Scratch& scratch, const Tensor& out) const;
  const GatedMlp& shared_apart() const { return latent_ ? latent_->shared : beside_.value(); }
  void forward_shared(Backend& backend, const Tensor& x, const BlockAdapters& adapters,
                      Scratch& scratch, const Tensor& out) const;

  MixtureConfig config_;
  Linear router_;  // its last output is the gate of the shared expert, if that has one
  std::optional<OwnedTensor> choice_bias_;  // [experts] float32
  std::vector<float> expert_scales_;        // [experts], or empty
  std::vector<GatedMlp> experts_;           // the shared one is the last
  std::vector<GatedMlpWeights> expert_weights_;
  std::optional<Latent> latent_;
  std::optional<GatedMlp> beside_;  // the shared expert, where inputs are scaled
};

}  // namespace paceline
