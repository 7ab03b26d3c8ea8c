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
#include "layers/mix_gradient.h"
#include "layers/scratch.h"
#include "layers/short_convolution.h"

namespace paceline {

class Backend;
struct LoadContext;

// What is normalised of time steps, B and C before they are used.
enum class StepNorms : uint8_t { none, unit, weighted };

struct Mamba1Config {
  std::string name = "mamba";                   // what the layer is called within its block
  int64_t inner = 0;                            // channels
  int64_t state_size = 0;                       // of a channel, and of B and C
  std::string state_size_field = "state_size";  // what files call it
  int64_t step_rank = 0;                        // columns that time steps are a product of
  int64_t taps = 0;                             // of the convolution over the channels
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

// What passes of training read of it, on some rows.
struct Mamba1Rows {
  Tensor input;    // [rows, 2 * inner], as the first product made it
  Tensor mixed;    // [rows, inner], the convolved channels
  Tensor product;  // [rows, parts_width()] of these: time steps, B and C
  Tensor steps;    // [rows, inner], the product of the time steps
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
  // Those within: of the convolved channels, and of their time steps.
  std::array<const Linear*, 2> scan_products() const { return {&parts_, &steps_}; }
  std::array<Linear*, 2> scan_products() { return {&parts_, &steps_}; }
  void list_weights(std::vector<const PackedMatrix*>& weights) const;

  // Its weights beside the products, for training: what they are, and others for them, in their
  // order and as passes have them.
  std::vector<OwnWeight> own_weights() const;
  void set_own_weights(Backend& backend, std::span<const std::vector<float>> values);

  // What forward() does between its products, for training: whole sequences, from position 0 on.
  // Each step is followed by its gradient, which writes all of its outputs; of `in`, gradients use
  // sequences, groups, states and own gradients.
  int64_t inner() const { return config_.inner; }
  int64_t step_rank() const { return config_.step_rank; }
  // About what gradients read of a row beside the first product.
  int64_t kept_width() const { return 3 * config_.inner + config_.parts_width() + step_rank(); }
  //                                                                      mixed [rows, inner]
  void convolve(Backend& backend, const Tensor& input, const StateSlices& slices,
                const StateStore& states, const Tensor& mixed) const;
  //                                                              dinput [rows, 2 * inner]
  void convolve_gradient(Backend& backend, const MixGradientInputs& in, const Tensor& dmixed,
                         const Tensor& dinput) const;
  // The columns of `product` that time steps are a product of.             out [rows, step_rank]
  void read_steps(Backend& backend, const Tensor& product, const Tensor& out) const;
  //                                                            dproduct [rows, parts_width]
  void read_steps_gradient(Backend& backend, const MixGradientInputs& in, const Tensor& product,
                           const Tensor& dsteps, const Tensor& dproduct) const;
  // kept [rows, inner]: what states had for the rows; out [rows, inner]
  void scan_rows(Backend& backend, const Mamba1Rows& rows, const StateSlices& slices,
                 const StateStore& states, const Tensor& kept, const Tensor& out) const;
  // Of the output's gradient, in.dout, with in.kept as scan_rows() left it.
  void scan_gradient(Backend& backend, const MixGradientInputs& in, const Mamba1Rows& rows,
                     const Mamba1Rows& drows) const;

 private:
  // Columns of the product of the convolved channels.
  struct ScanParts {
    Tensor steps;  // [rows, step_rank]
    Tensor b, c;   // [rows, state_size]
  };
  ScanParts parts_of(const Tensor& product) const;
  // Time steps, B and C; in place or not.
  void normalise(Backend& backend, const ScanParts& parts, const ScanParts& out) const;
  void normalise_part(Backend& backend, size_t part, const Tensor& x, const Tensor& out) const;
  // Adds the gradient of the norm's weight where it is trained.
  void normalise_part_gradient(Backend& backend, const MixGradientInputs& in, size_t part,
                               const Tensor& x, const Tensor& dy, const Tensor& dx) const;
  ScanInputs scan_inputs(const Tensor& mixed, const Tensor& steps, const ScanParts& parts) const;
  // Of the convolved channels, in place.
  void scan(Backend& backend, const StateSlices& slices, const BlockAdapters& adapters,
            const StateMemory& states, const Mamba1Scratch& taken) const;
  size_t first_norm() const;  // among own weights

  Mamba1Config config_;
  Linear input_;  // channels; gates of the output
  ShortConvolution convolution_;
  Linear parts_;                                             // time steps, B and C of the channels
  Linear steps_;                                             // of channels, of time steps
  OwnedTensor step_bias_, skip_;                             // [inner]
  OwnedTensor rates_;                                        // [state_size * inner]
  OwnedTensor step_rates_;                                   // [inner], those of time steps
  static constexpr size_t kOfSteps = 0, kOfB = 1, kOfC = 2;  // indices of norms
  std::array<OwnedTensor, 3> norm_weights_;                  // where there are some
  Linear output_;
};

}  // namespace paceline
