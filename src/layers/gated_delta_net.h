// GatedDeltaNet mixes positions by a state that each row corrects instead of by keys and values
// (Yang, Kautz, Hatamizadeh, "Gated Delta Networks", 2024; transformers' Qwen3_5GatedDeltaNet).
// Kimi delta attention is one whose channels decay apart (Moonshot AI, "Kimi Linear", 2025;
// transformers' KimiLinearDeltaAttention).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/recurrent.h"
#include "layers/adapter_weights.h"
#include "layers/kv_storage.h"
#include "layers/linear.h"
#include "layers/mix_gradient.h"
#include "layers/norm.h"
#include "layers/scratch.h"
#include "layers/short_convolution.h"

namespace paceline {

class Backend;
struct LoadContext;

// Which matrices of its input files have.
enum class DeltaProjections : uint8_t {
  by_kind,      // in_proj_qkv, in_proj_z, in_proj_b, in_proj_a
  by_key_head,  // in_proj_qkvz and in_proj_ba, with the rows of one key head behind another's
  as_in_gguf,   // in_proj_qkv and in_proj_z by kind, in_proj_ba by key head
  separate,     // q_proj, k_proj, v_proj, g_proj, b_proj, a_proj
  low_rank,  // q_proj, k_proj, v_proj, g_a_proj, b_proj, f_a_proj; behind these g_b_proj, f_b_proj
};

struct DeltaNetConfig {
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t key_dim = 0;                       // of a head
  int64_t value_dim = 0;                     // of a head
  int64_t taps = 0;                          // of the convolution over queries, keys and values
  Activation activation = Activation::silu;  // behind the convolution
  Activation gate = Activation::silu;        // of its output
  bool channel_decay = false;                // as in DeltaShape
  int64_t gate_rank = 0;    // of the latents that the gates of output and decay are products of; 0:
                            // they are products of the input
  float beta_scale = 1.0f;  // 2: a state's eigenvalues may be negative
  std::optional<float> norm_eps = {};  // of its output's norm; else the model's
  // What files have.
  DeltaProjections projections = DeltaProjections::by_kind;
  bool has_split_convolution = false;  // q_conv1d, k_conv1d, v_conv1d instead of conv1d
  std::string name = "linear_attn";    // of the layer within its block
  std::string norm = "norm";
  std::string output = "out_proj";

  // Channels of the convolution: queries, keys and values side by side.
  int64_t channels() const { return 2 * key_width() + value_width(); }
  int64_t key_width() const { return key_heads * key_dim; }
  int64_t value_width() const { return value_heads * value_dim; }
  int64_t decay_width() const { return value_heads * (channel_decay ? key_dim : 1); }
  // Of the product of its input: the channels, the gates of its output, a beta of each head, and
  // decays. Of gates and decays that are products of latents it has these.
  int64_t gates_in_input() const { return gate_rank > 0 ? gate_rank : value_width(); }
  int64_t decays_in_input() const { return gate_rank > 0 ? gate_rank : decay_width(); }
  int64_t input_width() const {
    return channels() + gates_in_input() + value_heads + decays_in_input();
  }
  int64_t matrix_elements() const { return value_heads * key_dim * value_dim; }  // of a state
  LayerStateElements state_elements() const;

  bool operator==(const DeltaNetConfig&) const = default;
};

// The projections of its input, which are packed as one: queries, keys and values; gates of the
// output; beta; decay. `name` is their prefix.
std::vector<Projection> delta_projections(const DeltaNetConfig& config, const std::string& name);

// The projections of its latents: gates of the output; decay. Empty without a gate_rank.
std::vector<Projection> latent_gate_projections(const DeltaNetConfig& config,
                                                const std::string& name);

// Columns of the outputs of its first product, or with a gate_rank of those behind it.
struct DeltaNetParts {
  Tensor channels;  // [rows, channels()]: queries, keys and values
  Tensor gates;     // [rows, value_width()]
  Tensor beta;      // [rows, value_heads]
  Tensor decay;     // [rows, decay_width()]
};

// What forward() takes of the arena, for `rows` rows.
struct DeltaNetScratch {
  Tensor input;         // [rows, input_width()]
  Tensor gates, decay;  // those of DeltaNetParts; none without a gate_rank
  Tensor mixed;         // [rows, channels()]
  Tensor read;          // [rows, value_width()]

  DeltaNetScratch(Scratch& scratch, const DeltaNetConfig& config, int64_t rows);
};

class GatedDeltaNet {
 public:
  // `name` is the canonical prefix, e.g. "layers.0.linear_attn"; `norm_eps` the model's.
  GatedDeltaNet(const LoadContext& context, const std::string& name, int64_t hidden_size,
                float norm_eps, const DeltaNetConfig& config);

  // x, out [rows, hidden], not in place.
  void forward(Backend& backend, const Tensor& x, const StateSlices& slices,
               const BlockAdapters& adapters, const StateStore& states, Scratch& scratch,
               const Tensor& out) const;

  std::array<const Linear*, 2> products() const { return {&input_, &output_}; }
  std::array<Linear*, 2> products() { return {&input_, &output_}; }  // to replace their values
  void list_weights(std::vector<const PackedMatrix*>& weights) const;

  // Its weights beside the products, for training: what they are, and others for them, in their
  // order and as passes have them.
  std::vector<OwnWeight> own_weights() const;
  void set_own_weights(Backend& backend, std::span<const std::vector<float>> values);

  // What forward() does between its products, for training: whole sequences, from position 0 on.
  // Not with a gate_rank or channel_decay.
  //                     input [rows, input_width], kept [rows, kept_width], out [rows, mixed_width]
  void mix(Backend& backend, const Tensor& input, const StateSlices& slices,
           const StateStore& states, const Tensor& kept, const Tensor& out) const;
  // The gradient of its input.                                    dinput [rows, input_width]
  void mix_gradient(Backend& backend, const MixGradientInputs& in, const Tensor& dinput) const;
  int64_t mixed_width() const { return config_.value_width(); }
  int64_t kept_width() const { return config_.value_width(); }

 private:
  // Queries, keys and values behind the convolution, as heads.
  struct MixedHeads {
    Tensor q, k;  // [rows, key_heads, key_dim]
    Tensor v;     // [rows, value_heads, value_dim]
  };
  struct Buffers {
    Tensor mixed;        // [rows, channels]
    Tensor beta, decay;  // as in DeltaNetParts; may be the input's
    Tensor read;         // [rows, value_width], what states had; may be `out`
  };
  DeltaNetParts parts_of(const Tensor& input) const;
  // The same, of which gates and decay are products of the input's latents.
  DeltaNetParts make_parts(Backend& backend, const DeltaNetScratch& taken,
                           const BlockAdapters& adapters) const;
  MixedHeads heads_of(const Tensor& mixed) const;
  Tensor value_heads_of(const Tensor& values) const;
  // Gates as the delta rule reads them.
  void prepare_gates(Backend& backend, const DeltaNetParts& input, const Buffers& buffers) const;
  void normalise_keys(Backend& backend, const MixedHeads& from, const MixedHeads& to) const;
  void run(Backend& backend, const DeltaNetParts& parts, const StateSlices& slices,
           const StateStore& states, const Buffers& buffers, const Tensor& out) const;
  void output_gradient(Backend& backend, const MixGradientInputs& in, const Tensor& dread,
                       const Tensor& dgates) const;

  DeltaNetConfig config_;
  Linear input_;  // queries, keys and values; gates of the output; beta; decay
  std::optional<Linear> gates_, decays_;  // of latents
  ShortConvolution convolution_;
  OwnedTensor decay_bias_, decay_rates_;  // [decay_width]
  OwnedTensor query_scale_, key_scale_;   // [key_dim], of their norms
  Norm norm_;
  Linear output_;
};

}  // namespace paceline
