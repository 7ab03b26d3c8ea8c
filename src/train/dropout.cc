#include "train/dropout.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace paceline {
namespace {

// batch_row(i) is that of row i.
template <class BatchRow>
void drop_rows(const Dropout& dropout, uint64_t module, const BatchRow& batch_row, const Tensor& x,
               const Tensor& out) {
  constexpr int64_t kDraws = 4;  // of a counter
  constexpr double kRange = 4294967296.0;
  const auto threshold = static_cast<uint64_t>(std::ceil(dropout.rate * kRange));
  const auto factor = static_cast<float>(1.0 / (1.0 - dropout.rate));
  const int64_t width = x.size(1);
  const auto counters_of_row = static_cast<uint64_t>((width + kDraws - 1) / kDraws);
  // Steps and modules are streams of their own.
  const uint64_t stream = module ^ (static_cast<uint64_t>(dropout.step) * 0x9E3779B97F4A7C15u);
  for (int64_t row = 0; row < x.size(0); ++row) {
    const float* const from = x.row<float>(row);
    float* const to = out.row<float>(row);
    uint64_t counter = static_cast<uint64_t>(dropout.first_row + batch_row(row)) * counters_of_row;
    for (int64_t begin = 0; begin < width; begin += kDraws) {
      const auto draws = philox4x32(dropout.seed, counter++, stream);
      for (int64_t i = begin; i < std::min(width, begin + kDraws); ++i) {
        const bool is_dropped = draws[static_cast<size_t>(i - begin)] < threshold;
        to[i] = is_dropped ? 0.0f : from[i] * factor;
      }
    }
  }
}

}  // namespace

void drop_elements(const Dropout& dropout, uint64_t module, const Tensor& x, const Tensor& out) {
  drop_rows(
      dropout, module, [](int64_t row) { return row; }, x, out);
}

void drop_elements(const Dropout& dropout, uint64_t module, std::span<const int32_t> batch_rows,
                   const Tensor& x, const Tensor& out) {
  const auto batch_row = [&](int64_t row) { return int64_t{batch_rows[static_cast<size_t>(row)]}; };
  drop_rows(dropout, module, batch_row, x, out);
}

}  // namespace paceline
