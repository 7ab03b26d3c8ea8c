#include "autodiff/losses.h"

#include <fmt/format.h>

#include "autodiff/elementwise.h"
#include "autodiff/indexing.h"
#include "autodiff/normalisation.h"
#include "autodiff/reductions.h"
#include "autodiff/shape_error.h"
#include "base/error.h"

namespace paceline::autodiff {
namespace {

// The number of positions that count.
int64_t num_counted(const Array& mask) {
  int64_t count = 0;
  const int8_t* elements = mask.tensor().elements<int8_t>();
  mask.tensor().for_each_offset([&](int64_t at) { count += elements[at] != 0 ? 1 : 0; });
  return count;
}

void check_not_empty(std::string_view name, const Array& logits, const Array& targets) {
  if (targets.num_elements() > 0) return;
  throw_shapes(name, {logits, targets}, "at least one position");
}

}  // namespace

Array token_losses(const Array& logits, const Array& targets) {
  const Array values = convert(logits, DType::f32);
  const Array chosen = take_from_rows(values, targets, "token_losses");
  return log_sum_exp(values) - chosen;
}

Array cross_entropy(const Array& logits, const Array& targets) {
  check_not_empty("cross_entropy", logits, targets);
  return mean(token_losses(logits, targets));
}

Array masked_cross_entropy(const Array& logits, const Array& targets, const Array& mask) {
  check_not_empty("masked_cross_entropy", logits, targets);
  if (mask.dtype() != DType::i8 || mask.shape() != targets.shape()) {
    throw_shapes("masked_cross_entropy", {logits, targets, mask},
                 "an int8 mask of the shape of the targets");
  }
  const int64_t count = num_counted(mask);
  if (count == 0) {
    throw Error(ErrorCode::invalid,
                fmt::format("masked_cross_entropy: all {} positions are masked out: expected at "
                            "least one that counts",
                            targets.num_elements()));
  }
  const Array zero(logits.context(), DType::f32, Extents());
  const Array losses = where(mask, token_losses(logits, targets), zero);
  return scale(sum(losses), 1.0f / static_cast<float>(count));
}

Array mse(const Array& a, const Array& b) {
  if (a.shape() != b.shape()) throw_shapes("mse", {a, b}, "two arrays of one shape");
  const Array difference = convert(a, DType::f32) - convert(b, DType::f32);
  return mean(difference * difference);
}

}  // namespace paceline::autodiff
