// Losses of training: cross-entropy of tokens, and the mean squared error.
//
// Computed in float32, whatever the dtype of the logits. Errors: invalid, with the shapes.
#pragma once

#include <cstdint>
#include <memory>

#include "autodiff/array.h"

namespace paceline::autodiff {

// log_sum_exp(logits) - logits[target] of each position.  logits [..., vocab], targets [...]
// int32; the result [...] float32
Array token_losses(const Array& logits, const Array& targets);

// The mean over all positions.
Array cross_entropy(const Array& logits, const Array& targets);

// The mean over positions whose mask (int8) isn't 0; other positions count for nothing, even where
// their loss isn't finite. mask: the shape of the targets. Errors: also if all are masked out.
Array masked_cross_entropy(const Array& logits, const Array& targets, const Array& mask);

// The mean of (a - b)^2.  a and b of one shape
Array mse(const Array& a, const Array& b);

}  // namespace paceline::autodiff
