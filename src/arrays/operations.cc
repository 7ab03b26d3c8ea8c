// Operations that see more than one element: products, reductions, shapes, indices, rows, losses.
#include <algorithm>
#include <memory>
#include <utility>

#include "arrays/array_state.h"
#include "autodiff/attention.h"
#include "autodiff/chunked_loss.h"
#include "autodiff/indexing.h"
#include "autodiff/losses.h"
#include "autodiff/matmul.h"
#include "autodiff/normalisation.h"
#include "autodiff/reductions.h"
#include "autodiff/shape_error.h"
#include "autodiff/shapes.h"
#include "base/error.h"

namespace paceline::arrays {
namespace {

autodiff::Reduced inner(Reduced reduced) {
  return reduced == Reduced::kept ? autodiff::Reduced::kept : autodiff::Reduced::dropped;
}

// The range among `size` elements, whose bounds are within them; a step may be longer.
autodiff::Range inner_range(std::string_view operation, const Range& range, int64_t size) {
  const bool is_forward = range.step > 0;
  const int64_t end = range.end.value_or(is_forward ? size : -1);
  const int64_t least_end = is_forward || range.end ? 0 : -1;
  const bool begins_inside = range.begin >= 0 && range.begin <= size;
  if (!begins_inside || end < least_end || end > size || range.step == 0) {
    throw error_of(ErrorCode::invalid,
                   "{}: elements from {} to {} in steps of {}: expected bounds within {} elements "
                   "and a step that isn't 0",
                   operation, range.begin, end, range.step, size);
  }
  return {.axis = range.axis,
          .begin = range.begin,
          .end = end,
          .step = std::clamp(range.step, -size - 1, size + 1)};
}

}  // namespace

Array matmul(const Array& a, const Array& b) {
  return wrapped(autodiff::matmul(inner("matmul", a), inner("matmul", b)));
}

Array sum(const Array& x, const std::vector<int>& axes, Reduced reduced) {
  return wrapped(autodiff::sum(inner("sum", x), axes, inner(reduced)));
}

Array mean(const Array& x, const std::vector<int>& axes, Reduced reduced) {
  return wrapped(autodiff::mean(inner("mean", x), axes, inner(reduced)));
}

Array max(const Array& x, const std::vector<int>& axes, Reduced reduced) {
  return wrapped(autodiff::max(inner("max", x), axes, inner(reduced)));
}

Array sum_to(const Array& x, const Shape& shape) {
  const autodiff::Array& array = inner("sum_to", x);
  autodiff::check_float("sum_to", array);
  return wrapped(autodiff::sum_to(array, checked_shape("sum_to", shape)));
}

Array reshape(const Array& x, const Shape& shape) {
  return wrapped(autodiff::reshape(inner("reshape", x), open_shape("reshape", shape)));
}

Array permute(const Array& x, const std::vector<int>& axes) {
  return wrapped(autodiff::permute(inner("permute", x), axes));
}

Array transpose(const Array& x, int first, int second) {
  return wrapped(autodiff::transpose(inner("transpose", x), first, second));
}

Array broadcast_to(const Array& x, const Shape& shape) {
  const autodiff::Array& array = inner("broadcast_to", x);
  return wrapped(autodiff::broadcast_to(array, checked_shape("broadcast_to", shape)));
}

Array slice(const Array& x, const Range& range) {
  const autodiff::Array& array = inner("slice", x);
  const int64_t size = array.size(autodiff::checked_axis("slice", array, range.axis));
  return wrapped(autodiff::slice(array, inner_range("slice", range, size)));
}

Array place(const Array& x, const Range& range, int64_t size) {
  const autodiff::Array& array = inner("place", x);
  if (size < 0 || size > autodiff::kMaxElements) {
    throw error_of(ErrorCode::invalid, "place: {} among {} elements: expected 0 to {}",
                   to_string(array.shape()), size, autodiff::kMaxElements);
  }
  return wrapped(autodiff::place(array, inner_range("place", range, size), size));
}

Array concatenate(std::span<const Array> arrays, int axis) {
  return wrapped(autodiff::concatenate(inner("concatenate", arrays), axis));
}

Array concatenate(std::initializer_list<Array> arrays, int axis) {
  return concatenate(std::span<const Array>(arrays.begin(), arrays.size()), axis);
}

Array gather(const Array& x, const Array& indices, int axis) {
  return wrapped(autodiff::gather(inner("gather", x), inner("gather", indices), axis));
}

Array scatter(const Array& updates, const Array& indices, int axis, int64_t size) {
  return wrapped(
      autodiff::scatter(inner("scatter", updates), inner("scatter", indices), axis, size));
}

Array scatter_add(const Array& x, const Array& indices, const Array& updates, int axis) {
  return wrapped(autodiff::scatter_add(inner("scatter_add", x), inner("scatter_add", indices),
                                       inner("scatter_add", updates), axis));
}

Array embedding(const Array& table, const Array& ids) {
  return wrapped(autodiff::embedding(inner("embedding", table), inner("embedding", ids)));
}

Array take_from_rows(const Array& x, const Array& indices) {
  return wrapped(
      autodiff::take_from_rows(inner("take_from_rows", x), inner("take_from_rows", indices)));
}

Array add_to_rows(const Array& x, const Array& indices, const Array& updates) {
  return wrapped(autodiff::add_to_rows(inner("add_to_rows", x), inner("add_to_rows", indices),
                                       inner("add_to_rows", updates)));
}

Array softmax(const Array& x, int axis) {
  const autodiff::Array& array = inner("softmax", x);
  return wrapped(axis == -1 ? autodiff::softmax(array) : autodiff::softmax(array, axis));
}

Array log_sum_exp(const Array& x) {
  return wrapped(autodiff::log_sum_exp(inner("log_sum_exp", x)));
}

Array rms_norm(const Array& x, const Array& weight, float eps) {
  return wrapped(autodiff::rms_norm(inner("rms_norm", x), inner("rms_norm", weight), eps));
}

Array layer_norm(const Array& x, const Array& weight, const Array& bias, float eps) {
  return wrapped(autodiff::layer_norm(inner("layer_norm", x), inner("layer_norm", weight),
                                      inner("layer_norm", bias), eps));
}

Array rope_table(const Array& positions, const Array& inv_freq, float scale) {
  return wrapped(
      autodiff::rope_table(inner("rope_table", positions), inner("rope_table", inv_freq), scale));
}

Array rope(const Array& x, const Array& table) {
  return wrapped(autodiff::rope(inner("rope", x), inner("rope", table)));
}

Array attention(const Array& q, const Array& k, const Array& v, const AttentionOptions& options) {
  return wrapped(autodiff::attention(
      inner("attention", q), inner("attention", k), inner("attention", v),
      {.scale = options.scale, .soft_cap = options.soft_cap, .window = options.window}));
}

Array token_losses(const Array& logits, const Array& targets) {
  return wrapped(
      autodiff::token_losses(inner("token_losses", logits), inner("token_losses", targets)));
}

Array cross_entropy(const Array& logits, const Array& targets, const Array& mask) {
  constexpr std::string_view kName = "cross_entropy";
  const autodiff::Array& values = inner(kName, logits);
  const autodiff::Array& ids = inner(kName, targets);
  if (mask.is_empty()) return wrapped(autodiff::cross_entropy(values, ids));
  return wrapped(autodiff::masked_cross_entropy(values, ids, inner(kName, mask)));
}

Array chunked_cross_entropy(const Array& hidden, const Array& weight, const Array& targets,
                            const Array& mask, int64_t chunk_rows) {
  constexpr std::string_view kName = "chunked_cross_entropy";
  return wrapped(
      autodiff::chunked_cross_entropy({.hidden = inner(kName, hidden),
                                       .weights = {inner(kName, weight)},
                                       .targets = inner(kName, targets),
                                       .mask = inner_or_undefined(mask),
                                       .head = std::make_shared<const autodiff::LinearHead>(),
                                       .chunk_rows = chunk_rows}));
}

Array mse(const Array& a, const Array& b) {
  return wrapped(autodiff::mse(inner("mse", a), inner("mse", b)));
}

}  // namespace paceline::arrays
