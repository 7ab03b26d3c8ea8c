// Cross-entropy of a head over a large vocabulary, some rows at a time: all logits never exist.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "autodiff/array.h"
#include "autodiff/segment_sums.h"

namespace paceline::autodiff {

// Makes logits of rows, and takes their gradient back. Arrays aren't traced in take_gradient.
class LogitsHead {
 public:
  virtual ~LogitsHead() = default;

  // hidden [rows, width]; the result [rows, vocab]. Written with operations, it has a jvp too; an
  // array that nobody else holds saves a copy.
  virtual Array logits(const Array& hidden, const Arrays& weights) const = 0;

  // Returns the gradient of `hidden` and adds those of the weights to `totals`, float32 tensors of
  // their shapes (raw() is null where none is wanted), in the order of segment_sums.h.
  // logits_gradient [rows, vocab] float32
  virtual Array take_gradient(const Array& hidden, const Arrays& weights,
                              const Array& logits_gradient,
                              std::span<const Tensor> totals) const = 0;
};

// logits = hidden weight^T in float32, the weights being one matrix [vocab, width].
class LinearHead final : public LogitsHead {
 public:
  Array logits(const Array& hidden, const Arrays& weights) const override;
  Array take_gradient(const Array& hidden, const Arrays& weights, const Array& logits_gradient,
                      std::span<const Tensor> totals) const override;
};

// The rows that hold logits at the same time. Rounded up to a multiple of kSumSegment, so that the
// gradients of weights don't depend on it.
struct Chunking {
  int64_t rows = 4 * kSumSegment;
};

// The mean over the positions of the mask (undefined: over all) of token_losses(head.logits).
// Gradients of hidden and of the weights are computed with the loss where a vjp wants them; the
// gradient of each chunk's logits is written over them. Has a jvp, but no vjp that an outer
// transformation follows (Error unsupported).
// hidden [rows, width], targets [rows] int32, mask [rows] int8
Array chunked_cross_entropy(const Array& hidden, const Arrays& weights, const Array& targets,
                            const Array& mask, std::shared_ptr<const LogitsHead> head,
                            Chunking chunking = {});

}  // namespace paceline::autodiff
