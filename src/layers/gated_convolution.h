// GatedConvolution mixes positions by a short convolution between two gates (transformers'
// Lfm2ShortConv): with the three parts b, c and x of a product of its input, it is a product of
// c * convolution(b * x).
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "layers/adapter_weights.h"
#include "layers/kv_storage.h"
#include "layers/linear.h"
#include "layers/mix_gradient.h"
#include "layers/scratch.h"
#include "layers/short_convolution.h"

namespace paceline {

class Backend;
struct LoadContext;

struct GatedConvolutionConfig {
  int64_t taps = 0;
  bool bias = false;  // of the convolution and both products

  bool operator==(const GatedConvolutionConfig&) const = default;
};

class GatedConvolution {
 public:
  // `name` is the canonical prefix, e.g. "layers.0.conv".
  GatedConvolution(const LoadContext& context, const std::string& name, int64_t hidden_size,
                   const GatedConvolutionConfig& config);

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
  //                     input [rows, 3 * hidden], kept [rows, kept_width], out [rows, mixed_width]
  void mix(Backend& backend, const Tensor& input, const StateSlices& slices,
           const StateStore& states, const Tensor& kept, const Tensor& out) const;
  // The gradient of its input.                                    dinput [rows, 3 * hidden]
  void mix_gradient(Backend& backend, const MixGradientInputs& in, const Tensor& dinput) const;
  int64_t mixed_width() const { return output_.weights().front().k; }
  int64_t kept_width() const { return output_.weights().front().k; }

 private:
  // Columns of the outputs of its first product, [rows, hidden] each.
  struct InputParts {
    Tensor before, after;  // gates of the convolution
    Tensor values;
  };
  static InputParts parts_of(const Tensor& input);
  void add_own_gradients(Backend& backend, const MixGradientInputs& in, const Tensor& dkept) const;

  Linear input_;  // b, c and x
  ShortConvolution convolution_;
  Linear output_;
};

LayerStateElements convolution_state_elements(const GatedConvolutionConfig& config,
                                              int64_t hidden_size);
// What forward() takes of the arena, the outputs of its first product: [rows, 3 * hidden].
Tensor take_convolution_input(Scratch& scratch, int64_t hidden_size, int64_t rows);

}  // namespace paceline
