#include "autodiff/chunked_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "autodiff/elementwise.h"
#include "autodiff/float_math.h"
#include "autodiff/lines.h"
#include "autodiff/losses.h"
#include "autodiff/matmul.h"
#include "autodiff/operation.h"
#include "autodiff/reductions.h"
#include "autodiff/shape_error.h"
#include "autodiff/shapes.h"
#include "autodiff/transforms.h"
#include "base/divide_up.h"
#include "base/error.h"

namespace paceline::autodiff {
namespace {

// Rows [begin, end) of all.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;

  Array of(const Array& rows) const { return slice(rows, {.axis = 0, .begin = begin, .end = end}); }
};

// An array that only this holds, in contiguous float32.
Array owned_f32(Array array) {
  array = as_contiguous_f32(array);
  if (array.is_exclusive()) return array;
  Array copy(array.context(), DType::f32, array.shape());
  copy_elements(array.tensor(), copy.writable());
  return copy;
}

class ChunkedCrossEntropy final : public Operation {
 public:
  ChunkedCrossEntropy(Array targets, Array mask, std::shared_ptr<const LogitsHead> head,
                      int64_t chunk_rows)
      : targets_(std::move(targets)),
        mask_(std::move(mask)),
        head_(std::move(head)),
        chunk_rows_(chunk_rows) {
    for (int64_t row = 0; row < targets_.size(0); ++row) counted_ += counts(row) ? 1 : 0;
    if (counted_ > 0) return;
    throw Error(ErrorCode::invalid,
                fmt::format("chunked_cross_entropy: none of {} positions counts: expected at "
                            "least one",
                            targets_.size(0)));
  }

  std::string_view name() const override { return "chunked_cross_entropy"; }

  Array forward(const Arrays& inputs) const override {
    const auto losses = losses_of(inputs, [&](const RowRange& range, float* chunk_losses) {
      const Array logits = as_contiguous_f32(chunk_logits(inputs, range));
      for_each_row(logits, [&](int64_t row) {
        chunk_losses[row] = loss(logits, range.begin + row, row).loss;
      });
    });
    return losses;
  }

  Forward forward_and_save(const Arrays& inputs, const Wanted& wanted) const override {
    Arrays gradients;
    std::vector<Tensor> totals;
    for (size_t i = 0; i < inputs.size(); ++i) {
      gradients.push_back(wanted[i] ? Array(inputs[i].context(), DType::f32, inputs[i].shape())
                                    : Array());
      if (i > 0) totals.push_back(wanted[i] ? gradients[i].writable() : Tensor());
    }
    const Arrays weights(inputs.begin() + 1, inputs.end());
    const Array losses = losses_of(inputs, [&](const RowRange& range, float* chunk_losses) {
      Array logits = owned_f32(chunk_logits(inputs, range));
      write_gradient(logits, range, chunk_losses);
      const Array hidden_gradient =
          head_->take_gradient(range.of(inputs[0]), weights, logits, totals);
      if (!wanted[0]) return;
      copy_elements(hidden_gradient.tensor(),
                    gradients[0].writable().slice(0, range.begin, range.end));
    });
    return {.output = losses, .saved = std::move(gradients)};
  }

  Arrays vjp(const Array& cotangent, const Application& at) const override {
    if (at.saved.empty() || cotangent.traced() != nullptr) {
      throw Error(ErrorCode::unsupported,
                  "chunked_cross_entropy: the gradient of its gradient: expected a function that "
                  "only one vjp follows; use cross_entropy");
    }
    if (to_scalar(cotangent) == 1.0f) return at.saved;
    Arrays gradients;
    for (const Array& saved : at.saved) {
      gradients.push_back(saved.is_defined() ? saved * convert(cotangent, DType::f32) : Array());
    }
    return gradients;
  }

  Array jvp(const Arrays& tangents, const Arrays& inputs, const Array&) const override {
    Array total(inputs[0].context(), DType::f32, Extents());
    for_each_chunk([&](const RowRange& range) {
      const auto chunk_loss = [&](const Arrays& in) {
        const Arrays weights(in.begin() + 1, in.end());
        const Array losses = token_losses(head_->logits(in[0], weights), range.of(targets_));
        if (!mask_.is_defined()) return Arrays{sum(losses)};
        const Array zero(losses.context(), DType::f32, Extents());
        return Arrays{sum(where(range.of(mask_), losses, zero))};
      };
      Arrays at = inputs, directions = tangents;
      at[0] = range.of(inputs[0]);
      if (directions[0].is_defined()) directions[0] = range.of(tangents[0]);
      total = total + paceline::autodiff::jvp(chunk_loss, at, directions).tangents[0];
    });
    return scale(total, 1.0f / static_cast<float>(counted_));
  }

  bool vjp_reads_input(size_t, const Wanted&) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  // The loss of one row and what its gradient is made of.
  struct RowLoss {
    float loss = 0.0f;
    float most = 0.0f;   // the largest logit
    float total = 0.0f;  // the sum of exp(logit - most)
  };

  bool counts(int64_t row) const {
    if (!mask_.is_defined()) return true;
    return mask_.tensor().elements<int8_t>()[row * mask_.tensor().stride(0)] != 0;
  }

  int64_t target(int64_t row, int64_t vocab) const {
    const int64_t id = targets_.tensor().elements<int32_t>()[row * targets_.tensor().stride(0)];
    if (id >= 0 && id < vocab) return id;
    throw Error(ErrorCode::invalid,
                fmt::format("chunked_cross_entropy: target {} at row {}: expected one below {}", id,
                            row, vocab));
  }

  template <class Body>
  void for_each_chunk(Body&& body) const {
    const int64_t num_rows = targets_.size(0);
    for (int64_t begin = 0; begin < num_rows; begin += chunk_rows_) {
      body(RowRange{begin, std::min(num_rows, begin + chunk_rows_)});
    }
  }

  // The mean of what body(range, losses) writes for each chunk.
  template <class Body>
  Array losses_of(const Arrays& inputs, Body&& body) const {
    const Context& context = inputs[0].context();
    Array losses(context, DType::f32, {targets_.size(0)});
    float* elements = losses.writable().elements<float>();
    for_each_chunk([&](const RowRange& range) { body(range, elements + range.begin); });
    return scale(sum(losses), 1.0f / static_cast<float>(counted_));
  }

  Array chunk_logits(const Arrays& inputs, const RowRange& range) const {
    const Arrays weights(inputs.begin() + 1, inputs.end());
    const Array hidden = range.of(inputs[0]);
    Array logits = head_->logits(hidden, weights);
    if (logits.rank() != 2 || logits.size(0) != range.end - range.begin || logits.size(1) == 0) {
      throw_shapes(name(), {hidden, logits}, "logits [rows, vocab] of hidden [rows, width]");
    }
    for (int64_t row = range.begin; row < range.end; ++row) target(row, logits.size(1));
    return logits;
  }

  template <class Body>
  void for_each_row(const Array& logits, Body&& body) const {
    for_parts(logits.context(), logits.size(0), logits.size(1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) body(row);
    });
  }

  // Of a row of the chunk's logits; rows that the mask leaves out have none.
  RowLoss loss(const Array& logits, int64_t row, int64_t chunk_row) const {
    if (!counts(row)) return {};
    const int64_t vocab = logits.size(1);
    const float* from = logits.tensor().row<float>(chunk_row);
    float most = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < vocab; ++i) most = from[i] > most ? from[i] : most;
    const float total = sum_terms(vocab, [&](int64_t i) { return float_exp(from[i] - most); });
    return {most + float_log(total) - from[target(row, vocab)], most, total};
  }

  // Writes the losses of a chunk, and the gradient of the mean over its logits.
  void write_gradient(Array& logits, const RowRange& range, float* chunk_losses) const {
    const int64_t vocab = logits.size(1);
    const Tensor out = logits.writable();
    const float share = 1.0f / static_cast<float>(counted_);
    for_each_row(logits, [&](int64_t chunk_row) {
      const int64_t row = range.begin + chunk_row;
      const RowLoss found = loss(logits, row, chunk_row);
      chunk_losses[chunk_row] = found.loss;
      float* to = out.row<float>(chunk_row);
      if (!counts(row)) {
        std::fill(to, to + vocab, 0.0f);
        return;
      }
      const float factor = share / found.total;
      for (int64_t i = 0; i < vocab; ++i) to[i] = float_exp(to[i] - found.most) * factor;
      to[target(row, vocab)] -= share;
    });
  }

  Array targets_;
  Array mask_;
  std::shared_ptr<const LogitsHead> head_;
  int64_t chunk_rows_;
  int64_t counted_ = 0;
};

}  // namespace

Array LinearHead::logits(const Array& hidden, const Arrays& weights) const {
  return matmul(convert(hidden, DType::f32), transpose(weights.at(0), 0, 1));
}

Array LinearHead::take_gradient(const Array& hidden, const Arrays& weights,
                                const Array& logits_gradient,
                                std::span<const Tensor> totals) const {
  if (totals[0].raw() != nullptr) {
    add_product(hidden.context(), transpose(logits_gradient, 0, 1).tensor(), hidden.tensor(),
                totals[0]);
  }
  return matmul(logits_gradient, weights.at(0));
}

Array chunked_cross_entropy(const Array& hidden, const Arrays& weights, const Array& targets,
                            const Array& mask, std::shared_ptr<const LogitsHead> head,
                            Chunking chunking) {
  check_float("chunked_cross_entropy", hidden);
  bool fits = hidden.rank() == 2 && targets.rank() == 1 && targets.dtype() == DType::i32 &&
              targets.size(0) == hidden.size(0);
  if (mask.is_defined()) {
    fits = fits && mask.dtype() == DType::i8 && mask.shape() == targets.shape();
  }
  if (!fits) {
    throw_shapes("chunked_cross_entropy", {hidden, targets},
                 "hidden [rows, width], int32 targets [rows] and an int8 mask [rows]");
  }
  if (chunking.rows <= 0) {
    throw Error(ErrorCode::invalid, fmt::format("chunked_cross_entropy: chunks of {} rows: "
                                                "expected at least 1",
                                                chunking.rows));
  }
  const int64_t rows = std::min(chunking.rows, std::max<int64_t>(1, hidden.size(0)));
  Arrays inputs = {hidden};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  return apply_new<ChunkedCrossEntropy>(std::move(inputs), targets, mask, std::move(head),
                                        divide_up(rows, kSumSegment) * kSumSegment);
}

}  // namespace paceline::autodiff
