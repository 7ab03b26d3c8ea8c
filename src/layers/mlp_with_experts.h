// MlpWithExperts is an MLP and a mixture of experts side by side, each with norms of its own, and
// a router that reads the residual stream (Gemma 4).
#pragma once

#include <string>
#include <vector>

#include "layers/gated_mlp.h"
#include "layers/mixture.h"
#include "layers/norm.h"

namespace paceline {

// Canonical names within a block.
struct MlpWithExpertsNames {
  std::string before_mlp = "pre_feedforward_layernorm";
  std::string after_mlp = "post_feedforward_layernorm_1";
  std::string before_experts = "pre_feedforward_layernorm_2";
  std::string after_experts = "post_feedforward_layernorm_2";
  std::string router_scale = "router.scale";  // a vector
};

// What forward() takes of the arena beside what its parts take.
struct MlpWithExpertsScratch {
  Tensor dense;         // [rows, hidden]
  Tensor router_input;  // [rows, hidden]

  MlpWithExpertsScratch(Scratch& scratch, int64_t hidden_size, int64_t rows)
      : dense(scratch.take_rows(rows, hidden_size)),
        router_input(scratch.take_rows(rows, hidden_size)) {}
};

class MlpWithExperts {
 public:
  // `block` is the canonical prefix of the block, e.g. "layers.0".
  MlpWithExperts(const LoadContext& context, const std::string& block, GatedMlp mlp,
                 Mixture mixture, int64_t hidden_size, const NormOptions& norm);

  // x, out [rows, hidden], not the same.
  void forward(Backend& backend, const Tensor& x, const BlockAdapters& adapters, Scratch& scratch,
               const Tensor& out) const;

  // The matrices that a row is multiplied by.
  void list_weights(std::vector<const PackedMatrix*>& weights) const;

 private:
  GatedMlp mlp_;
  Mixture mixture_;
  Norm before_mlp_, after_mlp_;
  Norm before_experts_, after_experts_;
  Norm before_router_;  // router.scale / sqrt(hidden) is its weight
};

}  // namespace paceline
