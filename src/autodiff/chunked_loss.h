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

  // hidden [rows, width]; the result [rows, vocab]. Written with operations, it has a jvp too.
  // The caller overwrites the result, and copies it first if another array shares its elements.
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

// Rows of hidden states, and the tokens that a head predicts from them.
struct HeadRows {
  Array hidden;  // [rows, width]
  Arrays weights;
  Array targets;  // [rows] int32
  Array mask{};   // [rows] int8: the positions that count; undefined: all
  std::shared_ptr<const LogitsHead> head;
  // The rows that hold logits at the same time. Rounded up to a multiple of kSumSegment, so that
  // gradients don't depend on it.
  int64_t chunk_rows = 4 * kSumSegment;
};

// The mean of token_losses(head.logits) over the positions that count. Where a vjp wants gradients
// of hidden or weights they are computed with the loss, and the gradient of a chunk's logits is
// written over them. Has a jvp, but no vjp that an outer transformation follows (Error
// unsupported). Errors: invalid, with the shapes; also if no position counts.
Array chunked_cross_entropy(const HeadRows& rows);

struct PartOfLoss {
  Array losses;           // [rows] float32; 0 where the mask leaves them out
  Array hidden_gradient;  // [rows, width] float32
};
// For a batch in parts, without a tape: the gradient of `share` times the sum of losses. Adds those
// of the weights to `totals` (as take_gradient) where the part before left them, which gives the
// bits of the whole batch if each part but the last has a multiple of kSumSegment rows. `share` is
// 1 / the number of positions that count in the whole batch.
PartOfLoss add_chunked_gradients(const HeadRows& rows, float share, std::span<const Tensor> totals);

}  // namespace paceline::autodiff
