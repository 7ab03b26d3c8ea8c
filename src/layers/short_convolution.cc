#include "layers/short_convolution.h"

#include <utility>
#include <vector>

#include "layers/load_context.h"

namespace paceline {
namespace {

// Files have [channels, 1, taps]; a row of taps is what a step reads.
OwnedTensor load_taps(const LoadContext& context, const std::string& name,
                      const ConvolutionShape& shape) {
  const int64_t channels = shape.channels, taps = shape.taps;
  if (auto prepared = prepared_vector(context, name, channels * taps)) return std::move(*prepared);
  const std::vector<float> stored = read_elements(context, name, {channels, 1, taps});
  std::vector<float> rows(stored.size());
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t j = 0; j < taps; ++j) {
      rows[static_cast<size_t>(j * channels + c)] = stored[static_cast<size_t>(c * taps + j)];
    }
  }
  return store_vector(context, name, rows);
}

}  // namespace

ShortConvolution::ShortConvolution(const LoadContext& context, const std::string& name,
                                   const ConvolutionShape& shape, bool has_bias)
    : shape_(shape), taps_(load_taps(context, name + ".weight", shape)) {
  if (has_bias) bias_ = load_vector(context, name + ".bias", shape.channels);
}

void ShortConvolution::forward(RecurrentOps& ops, const Tensor& x, const StateSlices& slices,
                               const Tensor& states, const Tensor& out) const {
  const Tensor taps = taps_.view.as_strided({shape_.taps, shape_.channels}, {shape_.channels, 1});
  ops.short_convolution(shape_, x, {.taps = taps, .bias = bias_ ? &bias_->view : nullptr}, slices,
                        states, out);
}

}  // namespace paceline
