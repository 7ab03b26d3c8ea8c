#include "layers/head_products.h"

namespace paceline {

void multiply_heads(const Tensor& x, const Tensor& y, const Tensor& out) {
  const int64_t heads = out.size(1), size = x.size(1) / heads;
  for (int64_t row = 0; row < out.size(0); ++row) {
    const auto* const of_x = x.row<float>(row);
    const auto* const of_y = y.row<float>(row);
    for (int64_t head = 0; head < heads; ++head) {
      double product = 0;
      for (int64_t i = head * size; i < (head + 1) * size; ++i) {
        product += double{of_x[i]} * double{of_y[i]};
      }
      out.row<float>(row)[head] = static_cast<float>(product);
    }
  }
}

}  // namespace paceline
