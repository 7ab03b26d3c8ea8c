// ShortConvolution convolves each channel over the last rows of its sequence.
#pragma once

#include <optional>
#include <string>

#include "kernels/recurrent.h"
#include "tensor/tensor.h"

namespace paceline {

struct LoadContext;

class ShortConvolution {
 public:
  // `name` is the canonical prefix of its weight and, where there is one, its bias.
  ShortConvolution(const LoadContext& context, const std::string& name,
                   const ConvolutionShape& shape, bool has_bias);

  // x, out [rows, channels], not in place; states [blocks, shape.block_elements()].
  void forward(RecurrentOps& ops, const Tensor& x, const StateSlices& slices, const Tensor& states,
               const Tensor& out) const;

 private:
  ConvolutionShape shape_;
  OwnedTensor taps_;                 // [taps * channels]
  std::optional<OwnedTensor> bias_;  // [channels]
};

}  // namespace paceline
