// MixtureConfig describes the mixtures of experts of a model's blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/routing.h"
#include "layers/gated_mlp.h"

namespace paceline {

// Canonical names within a block, without ".weight".
struct MixtureNames {
  std::string router = "mlp.gate";
  std::string choice_bias = "mlp.gate.e_score_correction_bias";
  std::string experts = "mlp.experts";  // those of expert 3 begin with "mlp.experts.3."
  MlpNames projections;                 // of an expert
  std::string shared = "mlp.shared_expert";
  std::optional<MlpNames> fused_shared;  // its projections where gate and up are one matrix
  std::string shared_gate = "mlp.shared_expert_gate";
  std::string to_latent, from_latent;                     // where experts read latent columns
  std::string expert_scales = "router.per_expert_scale";  // a vector, where there is one

  bool operator==(const MixtureNames&) const = default;
};

struct MixtureConfig {
  RoutingParams routing;
  int64_t expert_size = 0;  // inner columns of an expert
  int64_t shared_size = 0;  // those of the shared one, if there is one
  // The chosen experts read and write so many columns: a projection of the hidden ones, and a
  // second one goes back. The shared expert reads the hidden ones and stands apart, so its
  // `routing.shared` is none. 0: no such projections.
  int64_t latent_size = 0;
  // Weights multiply what the chosen experts read instead of what they write. The shared expert
  // stands apart then, too.
  bool scales_inputs = false;
  bool gated = true;  // false: the activation of up takes the place of a gate, in all experts
  bool has_choice_bias = false;
  bool router_bias = false;
  bool expert_bias = false;
  bool scales_experts = false;  // each expert's weight is multiplied by a number of its own
  bool beside_mlp = false;      // an MLP stands beside the experts (MlpWithExperts)
  MixtureNames names;

  // Columns that the chosen experts read.
  int64_t input_size(int64_t hidden_size) const {
    return latent_size > 0 ? latent_size : hidden_size;
  }
  // Whether a shared expert is none of the routing's.
  bool shared_apart() const { return latent_size > 0 || (scales_inputs && shared_size > 0); }

  bool operator==(const MixtureConfig&) const = default;
};

}  // namespace paceline
