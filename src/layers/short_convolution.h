// ShortConvolution convolves each channel over the last rows of its sequence.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/recurrent_gradients.h"
#include "layers/mix_gradient.h"
#include "tensor/tensor.h"

namespace paceline {

struct LoadContext;

// The weight of some channels, by its canonical name without ".weight".
struct ConvolutionPart {
  std::string name;
  int64_t channels = 0;
};

class ShortConvolution {
 public:
  // Of the parts' channels side by side, without a bias.
  ShortConvolution(const LoadContext& context, std::span<const ConvolutionPart> parts,
                   const ConvolutionShape& shape);
  // `name` is the canonical prefix of its weight and, where there is one, its bias.
  ShortConvolution(const LoadContext& context, const std::string& name,
                   const ConvolutionShape& shape, bool has_bias);

  // x, out [rows, channels], not in place.
  void forward(RecurrentOps& ops, const Tensor& x, const StateSlices& slices,
               const StateMemory& states, const Tensor& out) const;
  // The same of whole sequences, by groups.
  void forward(RecurrentOps& ops, const Tensor& x, std::span<const StateGroup> groups,
               const StateMemory& states, const Tensor& out) const;
  // The gradient of x over whole sequences.           dout, dx [rows, channels], not in place
  void gradient(RecurrentGradientOps& ops, const Tensor& dout,
                std::span<const SequenceRows> sequences, const Tensor& dx) const;

  // Its weight and, where there is one, its bias; `name` is theirs within the layer.
  void list_own_weights(const std::string& name, std::vector<OwnWeight>& weights) const;
  // Of these, `first` is the index of its weight.
  void set_own_weights(Backend& backend, std::span<const std::vector<float>> values, size_t first);
  void add_own_gradients(Backend& backend, const MixGradientInputs& in, const Tensor& x,
                         const Tensor& dout, size_t first) const;
  size_t num_own_weights() const { return bias_ ? 2 : 1; }

 private:
  Tensor taps() const;  // [taps, channels]

  ConvolutionShape shape_;
  OwnedTensor taps_;                 // [taps * channels]
  std::optional<OwnedTensor> bias_;  // [channels]
};

}  // namespace paceline
