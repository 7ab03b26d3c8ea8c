// Mixer is the first branch of a block, which mixes positions: attention, or a layer with a state.
#pragma once

#include <array>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "layers/attention.h"
#include "layers/gated_convolution.h"
#include "layers/gated_delta_net.h"
#include "layers/kv_storage.h"
#include "layers/latent_attention.h"
#include "layers/mamba1.h"
#include "layers/mamba2.h"

namespace paceline {

// What a layer is told of a batch, beside its rows.
struct MixerInputs {
  const PositionInputs& positions;
  const BatchArrays::Group& group;
  const BlockAdapters& adapters;
  const KvStorage& memory;
  int64_t layer = 0;
  Tensor layer_input = {};  // [rows, width], where layers have an input of their own
};

class Mixer {
 public:
  using Part =
      std::variant<SelfAttention, LatentAttention, GatedDeltaNet, GatedConvolution, Mamba1, Mamba2>;

  explicit Mixer(Part part) : part_(std::move(part)) {}

  // In place; x, out [rows, hidden].
  void forward(Backend& backend, const Tensor& x, const MixerInputs& in, Scratch& scratch,
               const Tensor& out) const {
    const auto run = [&]<class Kind>(const Kind& part) {
      if constexpr (std::is_same_v<Kind, SelfAttention> || std::is_same_v<Kind, LatentAttention>) {
        part.forward(backend, x, in.positions, in.group, in.adapters, in.memory.layer(in.layer),
                     scratch, out);
      } else {
        part.forward(backend, x, in.group.states, in.adapters, in.memory.states(in.layer), scratch,
                     out);
      }
    };
    std::visit(run, part_);
  }

  // Every matrix that a row is multiplied by.
  void list_weights(std::vector<const PackedMatrix*>& weights) const {
    const auto list = [&](const auto& part) {
      if constexpr (requires { part.list_weights(weights); }) {
        part.list_weights(weights);
      } else {
        for (const Linear* const product : part.products()) {
          for (const PackedMatrix& weight : product->weights()) weights.push_back(&weight);
        }
      }
    };
    std::visit(list, part_);
  }

  // Its parts, for a pass that computes them in another way (training). The products are the first
  // and the last thing that it does.
  const Part& part() const { return part_; }
  std::array<const Linear*, 2> products() const {
    return std::visit([](const auto& part) { return part.products(); }, part_);
  }

  // The same, for training to replace their values.
  std::array<Linear*, 2> products() {
    return std::visit([](auto& part) { return part.products(); }, part_);
  }
  Mamba1* mamba1() { return std::get_if<Mamba1>(&part_); }
  SelfAttention* attention() { return std::get_if<SelfAttention>(&part_); }
  // Those of a layer with a state beside its products; none of attention.
  std::vector<OwnWeight> own_weights() const {
    return std::visit(
        []<class Kind>(const Kind& part) -> std::vector<OwnWeight> {
          if constexpr (HasOwnWeights<Kind>) return part.own_weights();
          return {};
        },
        part_);
  }
  void set_own_weights(Backend& backend, std::span<const std::vector<float>> values) {
    std::visit(
        [&]<class Kind>(Kind& part) {
          if constexpr (HasOwnWeights<Kind>) part.set_own_weights(backend, values);
        },
        part_);
  }

 private:
  Part part_;
};

}  // namespace paceline
