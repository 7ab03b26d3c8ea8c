// ShortConvolution convolves each channel over the last rows of its sequence.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "kernels/recurrent_gradients.h"
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
  // The gradient of x over whole sequences.           dout, dx [rows, channels], not in place
  void gradient(RecurrentGradientOps& ops, const Tensor& dout,
                std::span<const SequenceRows> sequences, const Tensor& dx) const;

 private:
  Tensor taps() const;  // [taps, channels]

  ConvolutionShape shape_;
  OwnedTensor taps_;                 // [taps * channels]
  std::optional<OwnedTensor> bias_;  // [channels]
};

}  // namespace paceline
