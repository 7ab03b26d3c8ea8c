// Rotary positions and attention, against plain loops in float64.
#include "autodiff/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/elementwise.h"
#include "autodiff/new_arrays.h"
#include "tests/autodiff/operation_case.h"
#include "tests/expect_error.h"

namespace paceline::autodiff {
namespace {

class Attention : public testing::Test {
 protected:
  Array some_table(int64_t half, float scale) {
    const int32_t positions_values[] = {0, 3, 17};
    const float frequencies_values[] = {1.0f, 0.25f, 0.01f};
    return rope_table(
        from_integers(context_, positions_values, {3}),
        from_values(context_, std::span(frequencies_values).first(static_cast<size_t>(half)),
                    {half}),
        scale);
  }

  Memory memory_;
  Context context_{memory_};
};

TEST_F(Attention, RopeTable) {
  const std::vector<float> table = to_floats(some_table(2, 1.5f));
  const std::vector<double> angles = {0.0, 0.0, 3.0, 0.75, 17.0, 4.25};
  ASSERT_EQ(table.size(), 12u);
  for (size_t i = 0; i < angles.size(); ++i) {
    EXPECT_FLOAT_EQ(table[2 * i], static_cast<float>(1.5 * std::cos(angles[i])));
    EXPECT_FLOAT_EQ(table[2 * i + 1], static_cast<float>(1.5 * std::sin(angles[i])));
  }
}

TEST_F(Attention, RopeTurnsHalves) {
  for (const int64_t half : {1, 2, 3}) {
    const Array table = some_table(half, 1.25f);
    const NaiveArray pairs = [&] {
      const std::vector<float> floats = to_floats(table);
      return NaiveArray{table.shape(), {floats.begin(), floats.end()}};
    }();
    for (const Extents& shape : {Extents{3, 2, 6}, Extents{2, 3, 1, 7}}) {
      check_operation({.name = "rope",
                       .operation = [&](const Arrays& x) { return rope(x[0], table); },
                       .definition =
                           [&](const NaiveArrays& x) {
                             NaiveArray result = x[0];
                             for_each_index(shape, [&](const std::vector<int64_t>& at) {
                               const int64_t row = at[at.size() - 3], i = at.back();
                               if (i >= 2 * half) return;
                               std::vector<int64_t> other = at;
                               other.back() = i < half ? i + half : i - half;
                               const double cosine = pairs.at({row, i % half, 0});
                               const double sine = pairs.at({row, i % half, 1});
                               result.at(at) = x[0].at(at) * cosine +
                                               (i < half ? -1.0 : 1.0) * x[0].at(other) * sine;
                             });
                             return result;
                           },
                       .shapes = {shape}});
    }
  }
}

// One batch entry after another, one head after another, one query after another.
NaiveArray naive_attention(const NaiveArrays& in, const AttentionOptions& options) {
  const NaiveArray &q = in[0], &k = in[1], &v = in[2];
  Extents shape = q.shape;
  shape[3] = v.shape[3];
  NaiveArray result = naive_zeros(shape);
  const int64_t behind = k.shape[1] - q.shape[1], group = q.shape[2] / k.shape[2];
  for_each_index({q.shape[0], q.shape[1], q.shape[2]}, [&](const std::vector<int64_t>& at) {
    const int64_t b = at[0], i = at[1], head = at[2], position = behind + i;
    std::vector<double> weights;
    double total = 0.0;
    for (int64_t p = 0; p <= position; ++p) {
      double score = 0.0;
      for (int64_t d = 0; d < q.shape[3]; ++d) {
        score += q.at({b, i, head, d}) * k.at({b, p, head / group, d});
      }
      score *= double{options.scale};
      const double cap = double{options.soft_cap};
      if (cap > 0.0) score = cap * std::tanh(score / cap);
      const bool is_seen = options.window == 0 || p > position - options.window;
      weights.push_back(is_seen ? std::exp(score) : 0.0);
      total += weights.back();
    }
    for (int64_t d = 0; d < v.shape[3]; ++d) {
      for (int64_t p = 0; p <= position; ++p) {
        result.at({b, i, head, d}) +=
            weights[static_cast<size_t>(p)] / total * v.at({b, p, head / group, d});
      }
    }
  });
  return result;
}

TEST_F(Attention, WindowsCapsAndGroups) {
  struct Case {
    AttentionOptions options;
    std::vector<Extents> shapes;
  };
  const Case cases[] = {
      {{.scale = 0.5f}, {{1, 4, 1, 3}, {1, 4, 1, 3}, {1, 4, 1, 3}}},
      {{.scale = 0.7f}, {{2, 3, 4, 2}, {2, 3, 2, 2}, {2, 3, 2, 2}}},
      {{.scale = 0.7f}, {{1, 2, 2, 3}, {1, 5, 1, 3}, {1, 5, 1, 2}}},
      {{.scale = 0.9f, .window = 2}, {{1, 5, 2, 2}, {1, 5, 1, 2}, {1, 5, 1, 2}}},
      {{.scale = 1.0f, .soft_cap = 1.5f}, {{1, 3, 2, 2}, {1, 4, 2, 2}, {1, 4, 2, 2}}},
      {{.scale = 1.2f, .soft_cap = 2.0f, .window = 3}, {{2, 4, 3, 2}, {2, 6, 1, 2}, {2, 6, 1, 3}}}};
  for (const Case& each : cases) {
    check_operation(
        {.name = "attention " + to_string(each.shapes[0]),
         .operation = [&](const Arrays& x) { return attention(x[0], x[1], x[2], each.options); },
         .definition = [&](const NaiveArrays& x) { return naive_attention(x, each.options); },
         .shapes = each.shapes,
         .low = -1.0f,
         .high = 1.0f});
  }
}

TEST_F(Attention, WithoutABatch) {
  const Array q = normal(context_, {3, 4, 2}, {1}), k = normal(context_, {5, 2, 2}, {2});
  const Array v = normal(context_, {5, 2, 3}, {3});
  const auto batched = [&](const Array& x) {
    return x.with_view(x.tensor().reshape({1, x.size(0), x.size(1), x.size(2)}));
  };
  const Array found = attention(q, k, v, {.scale = 0.5f});
  EXPECT_EQ(found.shape(), (Extents{3, 4, 3}));
  EXPECT_EQ(to_floats(found),
            to_floats(attention(batched(q), batched(k), batched(v), {.scale = 0.5f})));
}

TEST_F(Attention, Errors) {
  const Array q = zeros(context_, {3, 4, 2}), k = zeros(context_, {5, 3, 2});
  expect_error(ErrorCode::invalid, {"attention", "[3, 4, 2] and [5, 3, 2]", "multiple"},
               [&] { attention(q, k, k, {}); });
  const Array few = zeros(context_, {2, 2, 2});
  expect_error(ErrorCode::invalid, {"attention", "as many keys"},
               [&] { attention(q, few, few, {}); });
  expect_error(ErrorCode::invalid, {"rope", "[3, 4, 2] and [3, 3, 2]"},
               [&] { rope(q, some_table(3, 1.0f)); });
  expect_error(ErrorCode::invalid, {"rope_table", "int32"},
               [&] { rope_table(zeros(context_, {3}), zeros(context_, {2}), 1.0f); });
}

}  // namespace
}  // namespace paceline::autodiff
