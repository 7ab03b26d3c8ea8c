// Softmax, log-sum-exp and norms.
#include "autodiff/normalisation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "autodiff/elementwise.h"
#include "autodiff/new_arrays.h"
#include "tests/autodiff/operation_case.h"
#include "tests/expect_error.h"

namespace paceline::autodiff {
namespace {

using Row = std::vector<double>;

double log_sum_exp_of(const Row& row) {
  double sum = 0.0;
  for (const double value : row) sum += std::exp(value);
  return std::log(sum);
}

NaiveArray naive_softmax(const NaiveArray& x) {
  return naive_rows(x, [](Row& row) {
    const double total = log_sum_exp_of(row);
    for (double& value : row) value = std::exp(value - total);
  });
}

TEST(Normalisation, SoftmaxAndLogSumExp) {
  for (const Extents& shape : {Extents{3, 5}, Extents{7}, Extents{2, 3, 4}, Extents{4, 1}}) {
    check_operation({.name = "softmax",
                     .operation = [](const Arrays& x) { return softmax(x[0]); },
                     .definition = [](const NaiveArrays& x) { return naive_softmax(x[0]); },
                     .shapes = {shape}});
    check_operation({.name = "log_sum_exp",
                     .operation = [](const Arrays& x) { return log_sum_exp(x[0]); },
                     .definition =
                         [&](const NaiveArrays& x) {
                           NaiveArray reduced =
                               naive_reduce(x[0], {shape.rank() - 1}, log_sum_exp_of);
                           reduced.shape = Extents(std::span<const int64_t>(
                               shape.begin(), static_cast<size_t>(shape.rank() - 1)));
                           return reduced;
                         },
                     .shapes = {shape}});
  }
  check_operation(
      {.name = "softmax of an axis",
       .operation = [](const Arrays& x) { return softmax(x[0], 0); },
       .definition =
           [](const NaiveArrays& x) {
             return naive_permute(naive_softmax(naive_permute(x[0], {2, 1, 0})), {2, 1, 0});
           },
       .shapes = {{3, 2, 4}}});
}

TEST(Normalisation, Norms) {
  for (const Extents& shape : {Extents{3, 5}, Extents{2, 3, 4}, Extents{6}}) {
    const Extents width = {shape[shape.rank() - 1]};
    check_operation({.name = "rms_norm",
                     .operation = [](const Arrays& x) { return rms_norm(x[0], x[1], 0.01f); },
                     .definition =
                         [](const NaiveArrays& x) {
                           const NaiveArray unit = naive_rows(x[0], [](Row& row) {
                             double squares = 0.0;
                             for (const double v : row) squares += v * v;
                             const double eps = double{0.01f};
                             const double r =
                                 std::sqrt(squares / static_cast<double>(row.size()) + eps);
                             for (double& v : row) v /= r;
                           });
                           return naive_pairs(unit, x[1], [](double a, double b) { return a * b; });
                         },
                     .shapes = {shape, width}});
    check_operation(
        {.name = "layer_norm",
         .operation = [](const Arrays& x) { return layer_norm(x[0], x[1], x[2], 0.01f); },
         .definition =
             [](const NaiveArrays& x) {
               const NaiveArray unit = naive_rows(x[0], [](Row& row) {
                 const auto count = static_cast<double>(row.size());
                 const double mean = std::accumulate(row.begin(), row.end(), 0.0) / count;
                 double squares = 0.0;
                 for (const double v : row) squares += (v - mean) * (v - mean);
                 const double r = std::sqrt(squares / count + double{0.01f});
                 for (double& v : row) v = (v - mean) / r;
               });
               const auto product = [](double a, double b) { return a * b; };
               const auto sum = [](double a, double b) { return a + b; };
               return naive_pairs(naive_pairs(unit, x[1], product), x[2], sum);
             },
         .shapes = {shape, width, width}});
  }
}

TEST(Normalisation, LargeAndInfiniteValues) {
  Memory memory;
  const Context context{memory};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float rows_values[] = {1000.0f, 1000.0f, -kInfinity, -kInfinity, -kInfinity, -kInfinity};
  const Array x = from_values(context, rows_values, {2, 3});
  const std::vector<float> sums = to_floats(log_sum_exp(x));
  EXPECT_FLOAT_EQ(sums[0], 1000.0f + std::log(2.0f));
  EXPECT_EQ(sums[1], -kInfinity);
  const std::vector<float> shares = to_floats(softmax(x));
  EXPECT_EQ(shares[0], 0.5f);
  EXPECT_EQ(shares[2], 0.0f);
  EXPECT_TRUE(std::isnan(shares[3]));
}

TEST(Normalisation, Errors) {
  Memory memory;
  const Context context{memory};
  const Array x = zeros(context, {2, 3}), w = zeros(context, {4}), none = zeros(context, {2, 0});
  expect_error(ErrorCode::invalid, {"rms_norm", "[2, 3] and [4]"}, [&] { rms_norm(x, w, 0.0f); });
  expect_error(ErrorCode::invalid, {"layer_norm", "[2, 3] and [4] and [4]"},
               [&] { layer_norm(x, w, w, 0.0f); });
  expect_error(ErrorCode::invalid, {"softmax", "[2, 0]"}, [&] { softmax(none); });
  expect_error(ErrorCode::invalid, {"log_sum_exp", "[2, 0]"}, [&] { log_sum_exp(none); });
}

}  // namespace
}  // namespace paceline::autodiff
