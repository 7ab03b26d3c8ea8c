// Operations that move elements.
#include <gtest/gtest.h>

#include "autodiff/elementwise.h"
#include "autodiff/matmul.h"
#include "autodiff/new_arrays.h"
#include "autodiff/shapes.h"
#include "tests/autodiff/operation_case.h"
#include "tests/expect_error.h"

namespace paceline::autodiff {
namespace {

TEST(Shapes, ReshapePermuteAndBroadcast) {
  check_operation(
      {.name = "reshape",
       .operation =
           [](const Arrays& x) {
             return exp(reshape(x[0], {4, -1}));
           },
       .definition =
           [](const NaiveArrays& x) {
             return naive_reshape(naive_map(x[0], [](double v) { return std::exp(v); }), {4, 6});
           },
       .shapes = {{2, 3, 4}}});
  check_operation(
      {.name = "permute",
       .operation =
           [](const Arrays& x) {
             return exp(permute(x[0], {2, 0, -2}));
           },
       .definition =
           [](const NaiveArrays& x) {
             return naive_permute(naive_map(x[0], [](double v) { return std::exp(v); }), {2, 0, 1});
           },
       .shapes = {{2, 3, 4}}});
  check_operation({.name = "broadcast_to",
                   .operation =
                       [](const Arrays& x) {
                         return exp(broadcast_to(x[0], {2, 3, 4}));
                       },
                   .definition =
                       [](const NaiveArrays& x) {
                         return naive_pairs(x[0], naive_zeros({2, 3, 4}),
                                            [](double a, double) { return std::exp(a); });
                       },
                   .shapes = {{3, 1}}});
}

NaiveArray naive_slice(const NaiveArray& x, const Range& range, int64_t count) {
  Extents shape = x.shape;
  shape[range.axis] = count;
  NaiveArray result = naive_zeros(shape);
  for_each_index(shape, [&](const std::vector<int64_t>& index) {
    std::vector<int64_t> from = index;
    int64_t& position = from[static_cast<size_t>(range.axis)];
    position = range.begin + position * range.step;
    result.at(index) = x.at(from);
  });
  return result;
}

TEST(Shapes, Slices) {
  struct Case {
    Range range;
    int64_t count;
  };
  const Case ranges[] = {{{1, 1, 4, 1}, 3},  {{1, 0, 5, 2}, 3}, {{1, 4, -1, -1}, 5},
                         {{1, 3, 0, -2}, 2}, {{0, 1, 2, 1}, 1}, {{2, 0, 0, 1}, 0},
                         {{2, 0, 3, 5}, 1}};
  for (const Case& each : ranges) {
    check_operation({.name = "slice",
                     .operation = [&](const Arrays& x) { return exp(slice(x[0], each.range)); },
                     .definition =
                         [&](const NaiveArrays& x) {
                           return naive_slice(naive_map(x[0], [](double v) { return std::exp(v); }),
                                              each.range, each.count);
                         },
                     .shapes = {{2, 5, 3}}});
  }
  check_operation({.name = "place",
                   .operation =
                       [](const Arrays& x) {
                         return place(x[0], {1, 5, -1, -2}, 7);
                       },
                   .definition =
                       [](const NaiveArrays& x) {
                         NaiveArray result = naive_zeros({2, 7});
                         for (int64_t i = 0; i < 2; ++i) {
                           for (int64_t j = 0; j < 3; ++j) {
                             result.at({i, 5 - 2 * j}) = x[0].at({i, j});
                           }
                         }
                         return result;
                       },
                   .shapes = {{2, 3}}});
}

TEST(Shapes, SelectAndMakeContiguous) {
  check_operation({.name = "select",
                   .operation = [](const Arrays& x) { return exp(select(x[0], 1, 2)); },
                   .definition =
                       [](const NaiveArrays& x) {
                         NaiveArray result = naive_zeros({2, 4});
                         for_each_index({2, 4}, [&](const std::vector<int64_t>& at) {
                           result.at(at) = std::exp(x[0].at({at[0], 2, at[1]}));
                         });
                         return result;
                       },
                   .shapes = {{2, 3, 4}}});
  check_operation(
      {.name = "make_contiguous",
       .operation = [](const Arrays& x) { return make_contiguous(transpose(x[0], 0, 1)); },
       .definition =
           [](const NaiveArrays& x) {
             return naive_permute(x[0], {1, 0});
           },
       .shapes = {{2, 3}}});
}

TEST(Shapes, Concatenate) {
  check_operation({.name = "concatenate",
                   .operation =
                       [](const Arrays& x) {
                         return concatenate({x[0], x[1], x[0]}, -2);
                       },
                   .definition =
                       [](const NaiveArrays& x) {
                         NaiveArray result = naive_zeros({2, 7, 2});
                         for_each_index(result.shape, [&](const std::vector<int64_t>& at) {
                           const int64_t row = at[1];
                           result.at(at) = row < 3   ? x[0].at({at[0], row, at[2]})
                                           : row < 4 ? x[1].at({at[0], 0, at[2]})
                                                     : x[0].at({at[0], row - 4, at[2]});
                         });
                         return result;
                       },
                   .shapes = {{2, 3, 2}, {2, 1, 2}}});
}

TEST(Shapes, ViewsShareElements) {
  Memory memory;
  const Context context{memory};
  const Array x = zeros(context, {4, 6});
  const size_t active = memory.stats().active_bytes;
  const Array view =
      broadcast_to(reshape(slice(transpose(x, 0, 1), {0, 5, -1, -1}), {6, 4, 1}), {6, 4, 3});
  EXPECT_GT(memory.stats().active_bytes, active);  // a reshape of what isn't contiguous copies
  const Array plain = broadcast_to(slice(reshape(x, {2, 2, 6}), {2, 0, 6, 2}), {5, 2, 2, 3});
  EXPECT_EQ(plain.tensor().raw(), x.tensor().raw());
}

TEST(Shapes, Errors) {
  Memory memory;
  const Context context{memory};
  const Array x = zeros(context, {2, 6});
  expect_error(ErrorCode::invalid, {"reshape", "[2, 6]", "12 elements", "[5, -1]"}, [&] {
    reshape(x, {5, -1});
  });
  expect_error(ErrorCode::invalid, {"reshape", "[-1, -1]"}, [&] { reshape(x, {-1, -1}); });
  expect_error(ErrorCode::invalid, {"reshape"}, [&] { reshape(x, {INT64_MAX, 12}); });
  expect_error(ErrorCode::invalid, {"permute", "[2, 6]", "each of its axes once"}, [&] {
    permute(x, {0, 0});
  });
  expect_error(ErrorCode::invalid, {"permute", "axis 5"}, [&] { permute(x, {0, 5}); });
  expect_error(ErrorCode::invalid, {"broadcast_to", "[2, 6]", "[3, 6]"}, [&] {
    broadcast_to(x, {3, 6});
  });
  expect_error(ErrorCode::invalid, {"slice", "[0, 7)", "within 6"}, [&] { slice(x, {1, 0, 7}); });
  expect_error(ErrorCode::invalid, {"slice", "steps of 0"}, [&] { slice(x, {1, 0, 3, 0}); });
  expect_error(ErrorCode::invalid, {"slice"}, [&] { slice(x, {1, 7, 8, 1}); });
  expect_error(ErrorCode::invalid, {"place", "3 elements"}, [&] { place(x, {1, 0, 3}, 9); });
  expect_error(ErrorCode::invalid, {"concatenate", "[2, 6] and [3, 5]", "axis 0"}, [&] {
    concatenate({x, zeros(context, {3, 5})}, 0);
  });
  expect_error(ErrorCode::invalid, {"concatenate", "no array"}, [&] { concatenate({}, 0); });
  expect_error(ErrorCode::invalid, {"select", "axis 1", "found 6"}, [&] { select(x, 1, 6); });
  expect_error(ErrorCode::invalid, {"select", "axis 2"}, [&] { select(x, 2, 0); });
}

TEST(Shapes, OfTooManyElementsAreRefused) {
  Memory memory;
  const Context context{memory};
  const Array wide = broadcast_to(ones(context, {1, 1}), {kMaxElements, 1});
  const auto refused = [](const std::string& operation, const auto& call) {
    expect_error(ErrorCode::exhausted, {operation, "1099511627776"}, call);
  };
  refused("broadcast_to", [&] { broadcast_to(wide, {kMaxElements, 2}); });
  refused("add", [&] { wide + transpose(wide, 0, 1); });
  refused("where", [&] { where(from_mask(context, {{1}}, {1}), wide, transpose(wide, 0, 1)); });
  refused("matmul", [&] {
    matmul(broadcast_to(ones(context, {1, 1}), {2, kMaxElements / 4}),
           broadcast_to(ones(context, {1, 1, 1}), {4, kMaxElements / 4, 1}));
  });
  refused("array", [&] { Array(context, DType::f32, {0, kMaxElements, kMaxElements}); });
  refused("reshape", [&] { reshape(zeros(context, {0}), {0, kMaxElements, kMaxElements}); });
}

}  // namespace
}  // namespace paceline::autodiff
