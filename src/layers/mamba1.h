// Mamba1 mixes positions by states of each channel, whose decays the rows choose (Gu and Dao,
// "Mamba", 2023; transformers' MambaMixer, JambaMambaMixer and FalconMambaMixer).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kernels/recurrent.h"
#include "layers/adapter_weights.h"
#include "layers/kv_storage.h"
#include "layers/linear.h"
#include "layers/scratch.h"
#include "layers/short_convolution.h"

namespace paceline {

class Backend;
struct LoadContext;

// What is normalised of time steps, B and C before they are used.
enum class StepNorms : uint8_t { none, unit, weighted };

struct Mamba1Config {
  std::string name = "mamba";  // what the layer is called within its block
  int64_t inner = 0;           // channels
  int64_t state_size = 0;      // of a channel, and of B and C
  int64_t step_rank = 0;       // columns that time steps are a product of
  int64_t taps = 0;            // of the convolution over the channels
  bool convolution_bias = true;
  bool has_bias = false;                     // of the first and the last product
  Activation activation = Activation::silu;  // after the convolution
  StepNorms norms = StepNorms::none;
  float norm_eps = 1e-6f;

  int64_t parts_width() const { return step_rank + 2 * state_size; }
  int64_t matrix_elements() const { return inner * state_size; }  // of a state
  LayerStateElements state_elements() const;

  bool operator==(const Mamba1Config&) const = default;
};

// What forward() takes of the arena, for `rows` rows.
struct Mamba1Scratch {
  Tensor input;    // [rows, 2 * inner]
  Tensor mixed;    // [rows, inner]
  Tensor product;  // [rows, parts_width()]
  Tensor steps;    // [rows, inner]

  Mamba1Scratch(Scratch& scratch, const Mamba1Config& config, int64_t rows);
};

class Mamba1 {
 public:
  // `name` is the canonical prefix, e.g. "layers.0.mamba".
  Mamba1(const LoadContext& context, const std::string& name, int64_t hidden_size,
         const Mamba1Config& config);

  // x, out [rows, hidden], not in place.
  void forward(Backend& backend, const Tensor& x, const StateSlices& slices,
               const BlockAdapters& adapters, const StateStore& states, Scratch& scratch,
               const Tensor& out) const;

  // Those of its block's input and output.
  std::array<const Linear*, 2> products() const { return {&input_, &output_}; }
  std::array<Linear*, 2> products() { return {&input_, &output_}; }  // to replace their values
  void list_weights(std::vector<const PackedMatrix*>& weights) const;

 private:
  // Columns of the product of the convolved channels.
  struct ScanParts {
    Tensor steps;  // [rows, step_rank]
    Tensor b, c;   // [rows, state_size]
  };
  ScanParts parts_of(const Tensor& product) const;
  void normalise(Backend& backend, const ScanParts& parts) const;
  // Of the convolved channels, in place.
  void scan(Backend& backend, const StateSlices& slices, const StateMemory& states,
            const Mamba1Scratch& taken) const;

  Mamba1Config config_;
  Linear input_;  // channels; gates of the output
  ShortConvolution convolution_;
  Linear parts_;                             // time steps, B and C of the channels
  Linear steps_;                             // of channels, of time steps
  OwnedTensor step_bias_, skip_;             // [inner]
  OwnedTensor rates_;                        // [state_size * inner]
  OwnedTensor step_rates_;                   // [inner], those of time steps
  std::array<OwnedTensor, 3> norm_weights_;  // of time steps, B and C, where they are normalised
  Linear output_;
};

}  // namespace paceline
