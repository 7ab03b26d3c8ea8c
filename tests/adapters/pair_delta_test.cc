// scale * B A against sums in float64.
#include "adapters/pair_delta.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace paceline {
namespace {

OwnedTensor drawn(DType dtype, const Extents& shape, uint64_t seed, Memory& memory) {
  OwnedTensor tensor = allocate_tensor(memory, dtype, shape);
  std::vector<float> elements(static_cast<size_t>(tensor.view.num_elements()));
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<float>(2 * uniform_draw(seed, i) - 1);
  }
  copy_elements(Tensor(elements.data(), DType::f32, shape), tensor.view);
  return tensor;
}

double element(const Tensor& matrix, int64_t row, int64_t column) {
  return with_float_dtype(matrix.dtype(), [&]<class T>() {
    return static_cast<double>(to_float(matrix.row<T>(row)[column]));
  });
}

// Lengths of a row below, at and above the pieces in which it is computed.
TEST(PairDelta, AddsTheScaledProductToEachRow) {
  Memory memory;
  uint64_t seed = 1;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t in : {1, 31, 255, 256, 257, 513, 768}) {
      for (const int64_t rank : {1, 3, 16}) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(in) + " " +
                     std::to_string(rank));
        const int64_t out = 5;
        const LoraPair pair{.module = "m",
                            .a = drawn(dtype, {rank, in}, seed++, memory),
                            .b = drawn(dtype, {out, rank}, seed++, memory),
                            .scale = 1.75f};
        const PairDelta delta(pair);
        for (int64_t row = 0; row < out; ++row) {
          std::vector<float> values(static_cast<size_t>(in));
          for (size_t i = 0; i < values.size(); ++i) values[i] = 0.01f * static_cast<float>(i);
          const std::vector<float> before = values;
          delta.add_to_row(row, values);
          for (int64_t i = 0; i < in; ++i) {
            double sum = 0;
            for (int64_t r = 0; r < rank; ++r) {
              sum += element(pair.b.view, row, r) * element(pair.a.view, r, i);
            }
            const auto at = static_cast<size_t>(i);
            const double expected = before[at] + 1.75 * sum;
            ASSERT_NEAR(values[at], expected, 1e-6 * (1 + std::abs(expected)) + 1e-7 * double(rank))
                << row << " " << i;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace paceline
