// New arrays: of given values, and of random ones that are a function of their key alone.
#pragma once

#include <cstdint>
#include <span>

#include "autodiff/array.h"

namespace paceline::autodiff {

Array zeros(const Context& context, const Extents& shape, DType dtype = DType::f32);
Array ones(const Context& context, const Extents& shape, DType dtype = DType::f32);
// Errors: invalid, if there aren't as many values as elements.
Array from_values(const Context& context, std::span<const float> values, const Extents& shape,
                  DType dtype = DType::f32);
Array from_integers(const Context& context, std::span<const int32_t> values, const Extents& shape);
// A mask: 1 where a value isn't 0.
Array from_mask(const Context& context, std::span<const uint8_t> values, const Extents& shape);

// Draws of Philox (base/random.h). An array of n elements uses the counters from `counter` to
// before counter + counters_of(n): four elements each. categorical uses one counter a row.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t counter = 0;
};
constexpr uint64_t counters_of(int64_t num_elements) {
  return (static_cast<uint64_t>(num_elements) + 3) / 4;
}

// In [low, high), 24 bits. Errors: invalid, unless low < high and both are finite.
Array uniform(const Context& context, const Extents& shape, RandomKey key, float low = 0.0f,
              float high = 1.0f, DType dtype = DType::f32);
// By Box and Muller.
Array normal(const Context& context, const Extents& shape, RandomKey key, float mean = 0.0f,
             float deviation = 1.0f, DType dtype = DType::f32);
// Normal with mean 0 and deviation gain / sqrt(fan_in): He et al., arXiv 1502.01852, as
// torch.nn.init.kaiming_normal_ with mode fan_in; fan_in is the product of all sizes but the
// first. Errors: invalid, for shapes of less than two dimensions or a fan_in of 0.
Array kaiming_normal(const Context& context, const Extents& shape, RandomKey key,
                     float gain = 1.41421356f, DType dtype = DType::f32);
// The index of one class of each row, with the probabilities softmax(logits).  logits [rows,
// classes]; int32 [rows]. Errors: invalid, numerical (a row without a finite maximum).
Array categorical(const Array& logits, RandomKey key);

}  // namespace paceline::autodiff
