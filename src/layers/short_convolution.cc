#include "layers/short_convolution.h"

#include <array>
#include <utility>
#include <vector>

#include "layers/load_context.h"

namespace paceline {
namespace {

// Files have [channels, 1, taps]; those that mlx-lm converts have [channels, taps, 1].
std::vector<float> read_taps(const LoadContext& context, const std::string& name, int64_t channels,
                             int64_t taps) {
  const auto found = context.weights.shape_of(name);
  const bool is_of_mlx = found && *found == Extents{channels, taps, 1};
  return read_elements(context, name,
                       is_of_mlx ? Extents{channels, taps, 1} : Extents{channels, 1, taps});
}

// A row of taps is what a step reads.
OwnedTensor load_taps(const LoadContext& context, std::span<const ConvolutionPart> parts,
                      const ConvolutionShape& shape) {
  const int64_t channels = shape.channels, taps = shape.taps;
  const std::string name = parts.front().name + ".weight";
  if (auto prepared = prepared_vector(context, name, channels * taps)) return std::move(*prepared);
  std::vector<float> stored;
  for (const ConvolutionPart& part : parts) {
    const std::vector<float> read = read_taps(context, part.name + ".weight", part.channels, taps);
    stored.insert(stored.end(), read.begin(), read.end());
  }
  std::vector<float> rows(stored.size());
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t j = 0; j < taps; ++j) {
      rows[static_cast<size_t>(j * channels + c)] = stored[static_cast<size_t>(c * taps + j)];
    }
  }
  return store_vector(context, name, rows);
}

}  // namespace

ShortConvolution::ShortConvolution(const LoadContext& context,
                                   std::span<const ConvolutionPart> parts,
                                   const ConvolutionShape& shape)
    : shape_(shape), taps_(load_taps(context, parts, shape)) {}

ShortConvolution::ShortConvolution(const LoadContext& context, const std::string& name,
                                   const ConvolutionShape& shape, bool has_bias)
    : ShortConvolution(context, std::array<ConvolutionPart, 1>{{{name, shape.channels}}}, shape) {
  if (has_bias) bias_ = load_vector(context, name + ".bias", shape.channels);
}

Tensor ShortConvolution::taps() const {
  return taps_.view.as_strided({shape_.taps, shape_.channels}, {shape_.channels, 1});
}

void ShortConvolution::forward(RecurrentOps& ops, const Tensor& x, const StateSlices& slices,
                               const StateMemory& states, const Tensor& out) const {
  ops.short_convolution(shape_, x, {.taps = taps(), .bias = bias_ ? &bias_->view : nullptr}, slices,
                        states, out);
}

void ShortConvolution::gradient(RecurrentGradientOps& ops, const Tensor& dout,
                                std::span<const SequenceRows> sequences, const Tensor& dx) const {
  ops.short_convolution_gradient(shape_, taps(), dout, sequences, dx);
}

}  // namespace paceline
