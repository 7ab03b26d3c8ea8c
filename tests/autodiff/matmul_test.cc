// Products of matrices, and the order of their sums.
#include <gtest/gtest.h>

#include "autodiff/matmul.h"
#include "autodiff/new_arrays.h"
#include "autodiff/reductions.h"
#include "autodiff/segment_sums.h"
#include "autodiff/shapes.h"
#include "tests/autodiff/operation_case.h"
#include "tests/expect_error.h"

namespace paceline::autodiff {
namespace {

TEST(Matmul, BatchesBroadcast) {
  const std::pair<Extents, Extents> all_shapes[] = {
      {{3, 5}, {5, 4}},       {{1, 1}, {1, 1}},       {{2, 3, 4}, {4, 2}},
      {{2, 3, 4}, {2, 4, 2}}, {{3, 4}, {2, 4, 2}},    {{2, 1, 2, 3}, {2, 3, 2}},
      {{1, 2, 3}, {2, 3, 1}}, {{2, 3, 1, 2}, {2, 2}}, {{9, 2}, {2, 17}}};
  for (const auto& [a, b] : all_shapes) {
    check_operation({.name = "matmul" + to_string(a) + to_string(b),
                     .operation = [](const Arrays& x) { return matmul(x[0], x[1]); },
                     .definition = [](const NaiveArrays& x) { return naive_matmul(x[0], x[1]); },
                     .shapes = {a, b}});
  }
}

// Element (i, j) as segment_sums.h defines it.
float ordered_element(const std::vector<float>& a, const std::vector<float>& b, int64_t k,
                      int64_t n, int64_t i, int64_t j) {
  float total = 0.0f;
  for (int64_t begin = 0; begin < k; begin += kSumSegment) {
    float part = 0.0f;
    for (int64_t t = begin; t < std::min(k, begin + kSumSegment); ++t) {
      part += a[static_cast<size_t>(i * k + t)] * b[static_cast<size_t>(t * n + j)];
    }
    total += part;
  }
  return total;
}

TEST(Matmul, SumsInTheDefinedOrder) {
  Memory memory;
  const Context context{memory};
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{37, 65, 9}, {4, 128, 8}, {33, 200, 13}}) {
    const Array a = normal(context, {m, k}, {1}), b = normal(context, {k, n}, {2});
    const std::vector<float> left = to_floats(a), right = to_floats(b);
    const std::vector<float> found = to_floats(matmul(a, b));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_EQ(found[static_cast<size_t>(i * n + j)], ordered_element(left, right, k, n, i, j));
      }
    }
  }
}

// What a training step does that computes a batch in parts.
TEST(Matmul, GradientsOfPartsOfABatchAddUpToTheSameBits) {
  Memory memory;
  const Context context{memory};
  constexpr int64_t kRows = 5 * kSumSegment + 7, kInputs = 21, kOutputs = 19;
  const Array x = normal(context, {kRows, kInputs}, {1});
  const Array weight = normal(context, {kInputs, kOutputs}, {2});
  const Array cotangent = normal(context, {kRows, kOutputs}, {3});
  const auto product = [](const Arrays& in) { return Arrays{matmul(in[0], in[1])}; };
  const Array whole = vjp(product, {x, weight}, {cotangent}).gradients[1];
  for (const int64_t part_rows : {kSumSegment, 2 * kSumSegment, 3 * kSumSegment}) {
    Array totals = zeros(context, {kInputs, kOutputs});
    Array bias_totals = zeros(context, {kOutputs});
    for (int64_t begin = 0; begin < kRows; begin += part_rows) {
      const int64_t end = std::min(kRows, begin + part_rows);
      const Array part = slice(x, {0, begin, end}), rows = slice(cotangent, {0, begin, end});
      add_product(context, transpose(part, 0, 1).tensor(), rows.tensor(), totals.writable());
      add_row_sums(context, rows.tensor().elements<float>(), end - begin, kOutputs,
                   bias_totals.writable().elements<float>());
    }
    EXPECT_EQ(to_floats(totals), to_floats(whole)) << part_rows;
    EXPECT_EQ(to_floats(bias_totals), to_floats(sum(cotangent, {0}))) << part_rows;
  }
}

TEST(Matmul, GradientsOfAWeightDontDependOnTheBatchsShape) {
  Memory memory;
  const Context context{memory};
  const Array x = normal(context, {3, 50, 6}, {1}), weight = normal(context, {6, 5}, {2});
  const Array cotangent = normal(context, {3, 50, 5}, {3});
  const auto product = [](const Arrays& in) { return Arrays{matmul(in[0], in[1])}; };
  const Vjp batched = vjp(product, {x, weight}, {cotangent});
  const Vjp flat = vjp(product, {reshape(x, {150, 6}), weight}, {reshape(cotangent, {150, 5})});
  EXPECT_EQ(to_floats(batched.gradients[1]), to_floats(flat.gradients[1]));
}

TEST(Matmul, EmptyAndWrongShapes) {
  Memory memory;
  const Context context{memory};
  const Array none = zeros(context, {2, 0}), rows = zeros(context, {0, 3});
  EXPECT_EQ(to_floats(matmul(none, rows)), std::vector<float>(6, 0.0f));
  EXPECT_EQ(matmul(zeros(context, {2, 0, 3}), zeros(context, {3, 4})).shape(), (Extents{2, 0, 4}));
  const Array a = zeros(context, {2, 3}), b = zeros(context, {2, 3});
  expect_error(ErrorCode::invalid, {"matmul", "[2, 3] and [2, 3]", "[..., k, n]"},
               [&] { matmul(a, b); });
  expect_error(ErrorCode::invalid, {"matmul", "[3]"}, [&] { matmul(a, zeros(context, {3})); });
  expect_error(ErrorCode::invalid, {"matmul", "[2, 3, 4] and [3, 4, 5]", "in front"}, [&] {
    matmul(zeros(context, {2, 3, 4}), zeros(context, {3, 4, 5}));
  });
}

}  // namespace
}  // namespace paceline::autodiff
