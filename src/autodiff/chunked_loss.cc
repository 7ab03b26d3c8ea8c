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
#include "autodiff/tape.h"
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
  explicit ChunkedCrossEntropy(const HeadRows& rows)
      : targets_(rows.targets),
        mask_(rows.mask),
        head_(rows.head),
        chunk_rows_(divide_up(std::min(rows.chunk_rows, rows.targets.size(0)), kSumSegment) *
                    kSumSegment) {
    for (int64_t row = 0; row < targets_.size(0); ++row) counted_ += counts(row) ? 1 : 0;
  }

  std::string_view name() const override { return "chunked_cross_entropy"; }
  int64_t num_counted() const { return counted_; }

  Array forward(const Arrays& inputs) const override {
    return mean_of(losses_of(inputs, [&](const RowRange& range, float* chunk_losses) {
      const Array logits = as_contiguous_f32(chunk_logits(inputs, range));
      for_each_row(logits, [&](int64_t row) {
        chunk_losses[row] = loss(logits, range.begin + row, row).loss;
      });
    }));
  }

  Forward forward_and_save(const Arrays& inputs, const Wanted& wanted) const override {
    Arrays gradients(1);
    std::vector<Tensor> totals;
    for (size_t i = 1; i < inputs.size(); ++i) {
      gradients.push_back(wanted[i] ? Array(inputs[i].context(), DType::f32, inputs[i].shape())
                                    : Array());
      totals.push_back(wanted[i] ? gradients[i].writable() : Tensor());
    }
    PartOfLoss part = add_gradients(inputs, share(), totals);
    gradients[0] = std::move(part.hidden_gradient);
    return {.output = mean_of(part.losses), .saved = std::move(gradients)};
  }

  // As add_chunked_gradients. inputs: hidden, weights...
  PartOfLoss add_gradients(const Arrays& inputs, float factor,
                           std::span<const Tensor> totals) const {
    const Arrays weights(inputs.begin() + 1, inputs.end());
    Array gradient(inputs[0].context(), DType::f32, inputs[0].shape());
    const Array losses = losses_of(inputs, [&](const RowRange& range, float* chunk_losses) {
      Array logits = owned_f32(chunk_logits(inputs, range));
      write_gradient(logits, range, factor, chunk_losses);
      const Array hidden_gradient =
          head_->take_gradient(range.of(inputs[0]), weights, logits, totals);
      copy_elements(hidden_gradient.tensor(), gradient.writable().slice(0, range.begin, range.end));
    });
    return {.losses = losses, .hidden_gradient = gradient};
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
    return scale(total, share());
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

  float share() const { return 1.0f / static_cast<float>(counted_); }
  Array mean_of(const Array& losses) const { return scale(sum(losses), share()); }

  // What body(range, losses) writes for each chunk.  [rows]
  template <class Body>
  Array losses_of(const Arrays& inputs, Body&& body) const {
    const Context& context = inputs[0].context();
    Array losses(context, DType::f32, {targets_.size(0)});
    float* elements = losses.writable().elements<float>();
    for_each_chunk([&](const RowRange& range) { body(range, elements + range.begin); });
    return losses;
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

  // Writes the losses of a chunk, and the gradient of `factor` times their sum over its logits.
  void write_gradient(Array& logits, const RowRange& range, float factor,
                      float* chunk_losses) const {
    const int64_t vocab = logits.size(1);
    const Tensor out = logits.writable();
    for_each_row(logits, [&](int64_t chunk_row) {
      const int64_t row = range.begin + chunk_row;
      const RowLoss found = loss(logits, row, chunk_row);
      chunk_losses[chunk_row] = found.loss;
      float* to = out.row<float>(chunk_row);
      if (!counts(row)) {
        std::fill(to, to + vocab, 0.0f);
        return;
      }
      const float scaled = factor / found.total;
      for (int64_t i = 0; i < vocab; ++i) to[i] = float_exp(to[i] - found.most) * scaled;
      to[target(row, vocab)] -= factor;
    });
  }

  Array targets_;
  Array mask_;
  std::shared_ptr<const LogitsHead> head_;
  int64_t chunk_rows_;
  int64_t counted_ = 0;
};

void check_rows(const HeadRows& rows) {
  constexpr std::string_view kName = "chunked_cross_entropy";
  PL_CHECK(rows.head != nullptr, "chunked_cross_entropy without a head");
  check_float(kName, rows.hidden);
  bool fits = rows.hidden.rank() == 2 && rows.targets.rank() == 1 &&
              rows.targets.dtype() == DType::i32 && rows.targets.size(0) == rows.hidden.size(0);
  if (rows.mask.is_defined()) {
    fits = fits && rows.mask.dtype() == DType::i8 && rows.mask.shape() == rows.targets.shape();
  }
  if (!fits) {
    throw_shapes(kName, {rows.hidden, rows.targets},
                 "hidden [rows, width], int32 targets [rows] and an int8 mask [rows]");
  }
  if (rows.chunk_rows > 0) return;
  throw Error(ErrorCode::invalid,
              fmt::format("{}: chunks of {} rows: expected at least 1", kName, rows.chunk_rows));
}

Arrays inputs_of(const HeadRows& rows) {
  Arrays inputs = {rows.hidden};
  inputs.insert(inputs.end(), rows.weights.begin(), rows.weights.end());
  return inputs;
}

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

Array chunked_cross_entropy(const HeadRows& rows) {
  check_rows(rows);
  auto operation = std::make_shared<const ChunkedCrossEntropy>(rows);
  if (operation->num_counted() == 0) {
    throw Error(ErrorCode::invalid,
                fmt::format("chunked_cross_entropy: none of {} positions counts: expected at "
                            "least one",
                            rows.targets.size(0)));
  }
  return apply_operation(operation, inputs_of(rows));
}

PartOfLoss add_chunked_gradients(const HeadRows& rows, float share,
                                 std::span<const Tensor> totals) {
  check_rows(rows);
  PL_CHECK(totals.size() == rows.weights.size(), "a total for each weight of the head");
  const Arrays inputs = inputs_of(rows);
  PL_CHECK(innermost(inputs) == nullptr, "add_chunked_gradients of traced arrays");
  return ChunkedCrossEntropy(rows).add_gradients(inputs, share, totals);
}

}  // namespace paceline::autodiff
