// Operations that choose elements by integers.
#include "autodiff/indexing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "autodiff/elementwise.h"
#include "autodiff/new_arrays.h"
#include "autodiff/shapes.h"
#include "autodiff/transforms.h"
#include "tests/autodiff/operation_case.h"
#include "tests/expect_error.h"

namespace paceline::autodiff {
namespace {

class Indexing : public testing::Test {
 protected:
  Memory memory_;
  Context context_{memory_};
};

const std::vector<int32_t> kIds = {2, 0, 2, 1, 3, 2};

TEST_F(Indexing, GatherAndScatterAddAlongEachAxis) {
  const Array ids = from_integers(context_, kIds, {2, 3});
  for (const int axis : {0, 1, 2}) {
    const Extents shapes[] = {{4, 2, 3}, {2, 4, 3}, {2, 3, 4}};
    const Extents shape = shapes[axis];
    const auto gathered = [=](const NaiveArray& x) {
      const Extents results[] = {{2, 3, 2, 3}, {2, 2, 3, 3}, {2, 3, 2, 3}};
      NaiveArray result = naive_zeros(results[axis]);
      for_each_index(result.shape, [&](const std::vector<int64_t>& at) {
        const auto first = static_cast<size_t>(axis);
        std::vector<int64_t> from = at;
        from.erase(from.begin() + axis);
        from[first] = kIds[static_cast<size_t>(at[first] * 3 + at[first + 1])];
        result.at(at) = x.at(from);
      });
      return result;
    };
    check_operation({.name = "gather",
                     .operation = [&](const Arrays& x) { return gather(x[0], ids, axis - 3); },
                     .definition = [&](const NaiveArrays& x) { return gathered(x[0]); },
                     .shapes = {shape}});
    // x * scatter_add(x, updates): quadratic, so that second derivatives aren't zero
    check_operation(
        {.name = "scatter_add",
         .operation = [&](const Arrays& x) { return x[0] * scatter_add(x[0], ids, x[1], axis); },
         .definition =
             [&](const NaiveArrays& x) {
               NaiveArray sums = x[0];
               for_each_index(x[1].shape, [&](const std::vector<int64_t>& at) {
                 const auto first = static_cast<size_t>(axis);
                 std::vector<int64_t> to = at;
                 to.erase(to.begin() + axis);
                 to[first] = kIds[static_cast<size_t>(at[first] * 3 + at[first + 1])];
                 sums.at(to) += x[1].at(at);
               });
               return naive_pairs(x[0], sums, [](double a, double b) { return a * b; });
             },
         .shapes = {shape, gathered(naive_zeros(shape)).shape}});
  }
}

TEST_F(Indexing, PartsOfABatchAddUpToTheSameBits) {
  const Array table = normal(context_, {5, 3}, {1}), cotangent = normal(context_, {6, 3}, {2});
  const Array ids = from_integers(context_, kIds, {6});
  const auto rows = [&](const Arrays& x) { return Arrays{embedding(x[0], ids)}; };
  const Array whole = vjp(rows, {table}, {cotangent}).gradients[0];
  for (const int64_t part : {1, 2, 4}) {
    Array totals = zeros(context_, {5, 3});
    for (int64_t begin = 0; begin < 6; begin += part) {
      const int64_t end = std::min<int64_t>(6, begin + part);
      const auto some_ids =
          std::span(kIds).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
      add_rows_at(slice(cotangent, {0, begin, end}),
                  from_integers(context_, some_ids, {end - begin}), totals.writable());
    }
    EXPECT_EQ(to_floats(totals), to_floats(whole)) << part;
  }
}

TEST_F(Indexing, Embedding) {
  const Array ids = from_integers(context_, kIds, {6});
  check_operation(
      {.name = "embedding",
       .operation = [&](const Arrays& x) { return exp(embedding(x[0], ids)); },
       .definition =
           [&](const NaiveArrays& x) {
             NaiveArray result = naive_zeros({6, 3});
             for_each_index(result.shape, [&](const std::vector<int64_t>& at) {
               result.at(at) = std::exp(x[0].at({kIds[static_cast<size_t>(at[0])], at[1]}));
             });
             return result;
           },
       .shapes = {{5, 3}}});
}

TEST_F(Indexing, OneElementOfEachRow) {
  const Array ids = from_integers(context_, kIds, {3, 2});
  const auto id_at = [](const std::vector<int64_t>& at) {
    return kIds[static_cast<size_t>(at[0] * 2 + at[1])];
  };
  check_operation({.name = "take_from_rows",
                   .operation = [&](const Arrays& x) { return exp(take_from_rows(x[0], ids)); },
                   .definition =
                       [&](const NaiveArrays& x) {
                         NaiveArray result = naive_zeros({3, 2});
                         for_each_index(result.shape, [&](const std::vector<int64_t>& at) {
                           result.at(at) = std::exp(x[0].at({at[0], at[1], id_at(at)}));
                         });
                         return result;
                       },
                   .shapes = {{3, 2, 4}}});
  check_operation({.name = "add_to_rows",
                   .operation = [&](const Arrays& x) { return exp(add_to_rows(x[0], ids, x[1])); },
                   .definition =
                       [&](const NaiveArrays& x) {
                         NaiveArray result = x[0];
                         for_each_index(x[1].shape, [&](const std::vector<int64_t>& at) {
                           result.at({at[0], at[1], id_at(at)}) += x[1].at(at);
                         });
                         return naive_map(result, [](double v) { return std::exp(v); });
                       },
                   .shapes = {{3, 2, 4}, {3, 2}},
                   .low = -0.7f,
                   .high = 0.7f});
}

TEST_F(Indexing, IndicesMayBeViews) {
  const Array x = uniform(context_, {4, 3}, {1});
  const Array ids = transpose(from_integers(context_, kIds, {2, 3}), 0, 1);
  const int32_t same_values[] = {2, 1, 0, 3, 2, 2};
  EXPECT_EQ(to_floats(embedding(x, ids)),
            to_floats(embedding(x, from_integers(context_, same_values, {3, 2}))));
}

TEST_F(Indexing, Errors) {
  const Array x = zeros(context_, {3, 4});
  const Array ids = from_integers(context_, kIds, {6});
  expect_error(ErrorCode::invalid, {"gather", "index 3", "below 3"}, [&] { gather(x, ids, 0); });
  const int32_t negative_values[] = {-1};
  expect_error(ErrorCode::invalid, {"gather", "index -1"},
               [&] { gather(x, from_integers(context_, negative_values, {1}), 0); });
  expect_error(ErrorCode::invalid, {"gather", "float32 [3, 4]", "int32"}, [&] { gather(x, x, 0); });
  expect_error(ErrorCode::invalid, {"scatter_add", "[3, 4] and [6] and [6]"},
               [&] { scatter_add(x, ids, zeros(context_, {6}), 1); });
  expect_error(ErrorCode::invalid, {"scatter", "[3, 4] and [6]", "axis 0"},
               [&] { scatter(x, ids, 0, 9); });
  expect_error(ErrorCode::invalid, {"scatter", "found 2"}, [&] { scatter(x, ids, 2, 9); });
  expect_error(ErrorCode::invalid, {"scatter", "index 2", "below 2"}, [&] {
    scatter(zeros(context_, {6, 2}), ids, 0, 2);
  });
  expect_error(ErrorCode::invalid, {"take_from_rows", "[3, 4] and [6]"},
               [&] { take_from_rows(x, ids); });
  expect_error(ErrorCode::invalid, {"gather", "at most 6 dimensions"}, [&] {
    gather(zeros(context_, {1, 1, 1, 1, 1}), zeros(context_, {1, 1, 1}, DType::i32), 0);
  });
}

}  // namespace
}  // namespace paceline::autodiff
