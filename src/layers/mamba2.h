// Mamba2 mixes positions by states that decay and to which each row adds (Dao and Gu, "Transformers
// are SSMs", 2024; transformers' Mamba2Mixer and its descendants).
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

// Where the output's gate is applied to its norm.
enum class GatedNorm : uint8_t { none, gate_first, norm_first };

struct Mamba2Config {
  std::string name = "mamba";  // what the layer is called within its block
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t groups = 0;                           // of heads, which share their B and C
  int64_t state_size = 0;                       // of B and C
  std::string state_size_field = "state_size";  // what files call it
  int64_t taps = 0;                             // of the convolution over x, B and C
  bool convolution_bias = true;
  bool input_bias = false;
  bool output_bias = false;
  Activation activation = Activation::silu;  // after the convolution
  GatedNorm norm = GatedNorm::gate_first;    // each group of heads has its own mean square
  float norm_eps = 1e-5f;
  // Of the parts of the product of its input: gates, x, B, C, time steps.
  std::array<float, 5> input_scales = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f};
  float output_scale = 1.0f;  // of what the layer adds to the residual stream; its block applies it
  GateRange time_steps;

  int64_t inner() const { return heads * head_dim; }
  // Channels of the convolution: x, B and C side by side.
  int64_t channels() const { return inner() + 2 * groups * state_size; }
  // Of the product of its input: the gates of its output, the channels, and a time step a head.
  int64_t input_width() const { return inner() + channels() + heads; }
  int64_t matrix_elements() const { return heads * state_size * head_dim; }  // of a state
  LayerStateElements state_elements() const;

  bool operator==(const Mamba2Config&) const = default;
};

// What forward() takes of the arena, for `rows` rows.
struct Mamba2Scratch {
  Tensor input;  // [rows, input_width()]
  Tensor mixed;  // [rows, channels()]
  Tensor steps;  // [rows, heads]
  Tensor read;   // [rows, inner()]

  Mamba2Scratch(Scratch& scratch, const Mamba2Config& config, int64_t rows);
};

class Mamba2 {
 public:
  // `name` is the canonical prefix, e.g. "layers.0.mamba".
  Mamba2(const LoadContext& context, const std::string& name, int64_t hidden_size,
         const Mamba2Config& config);

  // x, out [rows, hidden], not in place.
  void forward(Backend& backend, const Tensor& x, const StateSlices& slices,
               const BlockAdapters& adapters, const StateStore& states, Scratch& scratch,
               const Tensor& out) const;

  std::array<const Linear*, 2> products() const { return {&input_, &output_}; }
  std::array<Linear*, 2> products() { return {&input_, &output_}; }  // to replace their values

  // Its weights beside the products, for training: what they are, and others for them, in their
  // order and as passes have them.
  std::vector<OwnWeight> own_weights() const;
  void set_own_weights(Backend& backend, std::span<const std::vector<float>> values);

  // What forward() does between its products, for training: whole sequences, from position 0 on.
  //                     input [rows, input_width], kept [rows, kept_width], out [rows, mixed_width]
  void mix(Backend& backend, const Tensor& input, const StateSlices& slices,
           const StateStore& states, const Tensor& kept, const Tensor& out) const;
  // The gradient of its input.                                    dinput [rows, input_width]
  void mix_gradient(Backend& backend, const MixGradientInputs& in, const Tensor& dinput) const;
  int64_t mixed_width() const { return config_.inner(); }
  int64_t kept_width() const { return config_.inner(); }

 private:
  // Columns of the outputs of its first product.
  struct InputParts {
    Tensor gates;     // [rows, inner]
    Tensor channels;  // [rows, channels]
    Tensor decay;     // [rows, heads]
  };
  struct Buffers {
    Tensor mixed;         // [rows, channels]
    Tensor steps, decay;  // [rows, heads]; decay may be the input's
    Tensor read;          // [rows, inner], what states had
  };
  InputParts parts_of(const Tensor& input) const;
  bool has_scales() const;
  // In place.                                         input, out [rows, input_width]
  void scale_parts(Backend& backend, const Tensor& input, const Tensor& out) const;
  // `input` with its parts scaled, in `copy`, or itself.
  Tensor scaled(Backend& backend, const Tensor& input, OwnedTensor& copy) const;
  // Time steps and decays.
  void prepare_gates(Backend& backend, const InputParts& input, const Buffers& buffers) const;
  void run(Backend& backend, const InputParts& input, const StateSlices& slices,
           const StateStore& states, const Buffers& buffers) const;
  DeltaInputs sum_inputs(const Buffers& buffers) const;
  Tensor heads_of(const Tensor& values) const;  // [rows, heads, head_dim] of [rows, inner]
  // read, gates, out [rows, inner]; out may be read.
  void gate(Backend& backend, const Tensor& gates, const Tensor& read, const Tensor& out) const;
  void normalise(Backend& backend, const Tensor& x, const Tensor& out) const;
  void gate_gradient(Backend& backend, const MixGradientInputs& in, const Tensor& dread,
                     const Tensor& dgates) const;
  // dx may be dy; dweight null: it isn't trained.
  void normalise_gradient(Backend& backend, const Tensor& x, const Tensor& dy, const Tensor& dx,
                          const Tensor* dweight) const;

  Mamba2Config config_;
  Linear input_;  // gates of the output; x, B and C; time steps
  ShortConvolution convolution_;
  OwnedTensor step_bias_, decay_rates_, skip_;  // [heads]
  OwnedTensor step_rates_;                      // [heads], those of time steps
  std::optional<Norm> norm_;                    // [inner]
  Linear output_;
};

}  // namespace paceline
