#include "layers/short_convolution.h"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "layers/load_context.h"
#include "layers/scratch.h"

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

void ShortConvolution::forward(RecurrentOps& ops, const Tensor& x,
                               std::span<const StateGroup> groups, const StateMemory& states,
                               const Tensor& out) const {
  for (const StateGroup& group : groups) {
    forward(ops, group.rows_of(x), {group.slices}, states, group.rows_of(out));
  }
}

void ShortConvolution::gradient(RecurrentGradientOps& ops, const Tensor& dout,
                                std::span<const SequenceRows> sequences, const Tensor& dx) const {
  ops.short_convolution_gradient(shape_, taps(), dout, sequences, dx);
}

void ShortConvolution::list_own_weights(const std::string& name,
                                        std::vector<OwnWeight>& weights) const {
  const auto count = static_cast<float>(shape_.taps);
  weights.push_back({.part = name + ".weight",
                     .shape = {shape_.channels, 1, shape_.taps},
                     .is_transposed = true,
                     .values = elements_of(taps_),
                     .deviation = 1.0f / std::sqrt(3.0f * count)});
  if (!bias_) return;
  weights.push_back(
      {.part = name + ".bias", .shape = {shape_.channels}, .values = elements_of(*bias_)});
}

void ShortConvolution::set_own_weights(Backend& backend, std::span<const std::vector<float>> values,
                                       size_t first) {
  taps_ = write_vector(backend, values[first]);
  if (bias_) bias_ = write_vector(backend, values[first + 1]);
}

// The gradient of a tap is the sum of dout times the row that it is multiplied by.
void ShortConvolution::add_own_gradients(Backend& backend, const MixGradientInputs& in,
                                         const Tensor& x, const Tensor& dout, size_t first) const {
  if (in.own_gradients.empty()) return;
  RecurrentOps& ops = *backend.recurrent();
  const Tensor& dtaps = *in.own_gradient(first);
  const OwnedTensor products =
      allocate_tensor(backend.memory(), DType::f32, {x.size(0), shape_.channels});
  for (int64_t tap = 0; tap < shape_.taps; ++tap) {
    const int64_t before = shape_.taps - 1 - tap;  // rows
    backend.clear(products.view);
    for (const SequenceRows& one : in.sequences) {
      if (one.num_rows <= before) continue;
      const int64_t begin = one.first_row, end = begin + one.num_rows;
      ops.multiply(x.slice(0, begin, end - before), dout.slice(0, begin + before, end),
                   products.view.slice(0, begin + before, end));
    }
    const int64_t channels = shape_.channels;
    backend.gradients().bias_gradient(products.view,
                                      dtaps.slice(0, tap * channels, (tap + 1) * channels));
  }
  if (bias_) backend.gradients().bias_gradient(dout, *in.own_gradient(first + 1));
}

}  // namespace paceline
