// Sums, means and maxima along axes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autodiff/elementwise.h"
#include "autodiff/new_arrays.h"
#include "autodiff/reductions.h"
#include "autodiff/segment_sums.h"
#include "tests/autodiff/operation_case.h"
#include "tests/expect_error.h"

namespace paceline::autodiff {
namespace {

using Reduction = Array (*)(const Array&, const std::vector<int>&, Reduced);
using Definition = double (*)(const std::vector<double>&);

double sum_of(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0); }
double mean_of(const std::vector<double>& x) { return sum_of(x) / static_cast<double>(x.size()); }
double max_of(const std::vector<double>& x) { return *std::max_element(x.begin(), x.end()); }

TEST(Reductions, AlongAnyAxes) {
  struct Case {
    Reduction reduction;
    Definition definition;
  };
  const Case all_reductions[] = {{sum, sum_of}, {mean, mean_of}, {max, max_of}};
  const std::vector<int> all_axes[] = {{0},    {1},    {2},    {3},      {0, 1},
                                       {1, 2}, {0, 2}, {3, 0}, {0, 1, 3}};
  for (const Case& each : all_reductions) {
    for (const std::vector<int>& axes : all_axes) {
      check_operation({.name = "reduction of " + testing::PrintToString(axes),
                       .operation =
                           [&](const Arrays& x) {
                             return exp(each.reduction(0.3f * x[0], axes, Reduced::kept));
                           },
                       .definition =
                           [&](const NaiveArrays& x) {
                             const auto scaled = naive_map(x[0], [](double v) { return 0.3 * v; });
                             return naive_map(naive_reduce(scaled, axes, each.definition),
                                              [](double v) { return std::exp(v); });
                           },
                       .shapes = {{2, 3, 1, 4}}});
    }
  }
}

TEST(Reductions, DroppedAxesAndAllOfThem) {
  Memory memory;
  const Context context{memory};
  const Array x = uniform(context, {2, 3, 4}, {1});
  EXPECT_EQ(sum(x, {1}).shape(), (Extents{2, 4}));
  EXPECT_EQ(sum(x, {-1, 0}).shape(), (Extents{3}));
  EXPECT_EQ(sum(x, {1}, Reduced::kept).shape(), (Extents{2, 1, 4}));
  EXPECT_EQ(sum(x).shape(), Extents());
  EXPECT_EQ(max(x).shape(), Extents());
  EXPECT_NEAR(to_scalar(mean(x)) * 24.0f, to_scalar(sum(x)), 1e-5);
  EXPECT_EQ(to_floats(sum(x, {1})), to_floats(sum(x, {1}, Reduced::kept)));
}

// The definition of the order, element by element.
float ordered_sum(const std::vector<float>& terms) {
  float total = 0.0f;
  for (size_t begin = 0; begin < terms.size(); begin += kSumSegment) {
    float part = 0.0f;
    for (size_t i = begin; i < std::min(terms.size(), begin + kSumSegment); ++i) part += terms[i];
    total += part;
  }
  return total;
}

TEST(Reductions, SumInOneOrderWhateverTheLayout) {
  Memory memory;
  const Context context{memory};
  for (const int64_t count : {1, 63, 64, 65, 512, 513, 1000, 1500}) {
    const Array rows = normal(context, {count, 70}, {static_cast<uint64_t>(count)});
    const std::vector<float> values = to_floats(rows);
    const std::vector<float> sums = to_floats(sum(rows, {0}));
    std::vector<float> column, first;
    for (int64_t i = 0; i < count; ++i) column.push_back(values[static_cast<size_t>(i * 70 + 69)]);
    EXPECT_EQ(sums[69], ordered_sum(column)) << count;
    EXPECT_EQ(to_scalar(sum(from_values(context, column, {count}))), sums[69]) << count;
    EXPECT_EQ(to_scalar(sum(from_values(context, column, {count, 1}), {0})), sums[69]) << count;
  }
}

TEST(Reductions, EqualMaximaShareTheGradient) {
  Memory memory;
  const Context context{memory};
  const float numbers[] = {3.0f, 1.0f, 3.0f, 2.0f, 2.0f, 1.0f};
  const Array x = from_values(context, numbers, {2, 3});
  const auto most = [](const Arrays& in) { return Arrays{max(in[0], {1})}; };
  EXPECT_EQ(to_floats(vjp(most, {x}, {ones(context, {2})}).gradients[0]),
            (std::vector<float>{0.5f, 0.0f, 0.5f, 0.5f, 0.5f, 0.0f}));
  const float with_nan_values[] = {1.0f, std::nanf(""), 2.0f};
  EXPECT_TRUE(std::isnan(to_scalar(max(from_values(context, with_nan_values, {3})))));
}

TEST(Reductions, Errors) {
  Memory memory;
  const Context context{memory};
  const Array x = zeros(context, {2, 0});
  EXPECT_EQ(to_floats(sum(x, {1})), (std::vector<float>{0.0f, 0.0f}));
  expect_error(ErrorCode::invalid, {"max", "[2, 0]", "at least one"}, [&] { max(x, {1}); });
  expect_error(ErrorCode::invalid, {"mean", "[2, 0]", "at least one"}, [&] { mean(x); });
  expect_error(ErrorCode::invalid, {"sum", "axis 2", "[2, 0]"}, [&] { sum(x, {2}); });
  expect_error(ErrorCode::invalid, {"sum", "axis 1 once"}, [&] { sum(x, {-1, 1}); });
  expect_error(ErrorCode::invalid, {"sum_to", "[2, 0]", "[3]"}, [&] { sum_to(x, {3}); });
}

}  // namespace
}  // namespace paceline::autodiff
