// Each public operation against plain loops in float64, its gradient against finite differences of
// these loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "paceline/array.h"
#include "paceline/grad.h"

namespace paceline::arrays {
namespace {

using Values = std::vector<double>;
using Inputs = std::vector<Values>;  // each in row-major order

struct PublicOperation {
  std::string name;
  std::function<Array(const std::vector<Array>&)> operation;
  std::function<Values(const Inputs&)> definition;
  std::vector<Shape> shapes;  // of the inputs
  float low = -1.5f;          // their values are uniform
  float high = 1.5f;
};

// f of each element
std::function<Values(const Inputs&)> each(double (*f)(double)) {
  return [f](const Inputs& in) {
    Values out = in[0];
    for (double& value : out) value = f(value);
    return out;
  };
}

// f of x [2, 3] and y [3]
std::function<Values(const Inputs&)> pairs(double (*f)(double, double)) {
  return [f](const Inputs& in) {
    Values out(6);
    for (size_t i = 0; i < 6; ++i) out[i] = f(in[0][i], in[1][i % 3]);
    return out;
  };
}

double sigmoid_of(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double gelu_tanh_of(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

std::vector<PublicOperation> elementwise_operations() {
  const std::vector<Shape> pair = {{2, 3}, {3}}, one = {{2, 3}};
  using In = std::vector<Array>;
  return {
      {"add", [](const In& x) { return x[0] + x[1]; },
       pairs([](double a, double b) { return a + b; }), pair},
      {"subtract", [](const In& x) { return x[0] - x[1]; },
       pairs([](double a, double b) { return a - b; }), pair},
      {"multiply", [](const In& x) { return x[0] * x[1]; },
       pairs([](double a, double b) { return a * b; }), pair},
      {"divide", [](const In& x) { return x[0] / x[1]; },
       pairs([](double a, double b) { return a / b; }), pair, 0.5f, 2.0f},
      {"maximum", [](const In& x) { return maximum(x[0], x[1]); },
       pairs([](double a, double b) { return std::max(a, b); }), pair},
      {"minimum", [](const In& x) { return minimum(x[0], x[1]); },
       pairs([](double a, double b) { return std::min(a, b); }), pair},
      {"negate", [](const In& x) { return -x[0]; }, each([](double x) { return -x; }), one},
      {"reciprocal", [](const In& x) { return reciprocal(x[0]); },
       each([](double x) { return 1 / x; }), one, 0.5f, 2.0f},
      {"exp", [](const In& x) { return exp(x[0]); }, each([](double x) { return std::exp(x); }),
       one},
      {"log", [](const In& x) { return log(x[0]); }, each([](double x) { return std::log(x); }),
       one, 0.5f, 2.0f},
      {"sqrt", [](const In& x) { return sqrt(x[0]); }, each([](double x) { return std::sqrt(x); }),
       one, 0.5f, 2.0f},
      {"rsqrt", [](const In& x) { return rsqrt(x[0]); },
       each([](double x) { return 1 / std::sqrt(x); }), one, 0.5f, 2.0f},
      {"tanh", [](const In& x) { return tanh(x[0]); }, each([](double x) { return std::tanh(x); }),
       one},
      {"erf", [](const In& x) { return erf(x[0]); }, each([](double x) { return std::erf(x); }),
       one},
      {"sigmoid", [](const In& x) { return sigmoid(x[0]); }, each(sigmoid_of), one},
      {"silu", [](const In& x) { return silu(x[0]); },
       each([](double x) { return x * sigmoid_of(x); }), one},
      {"gelu_tanh", [](const In& x) { return gelu_tanh(x[0]); }, each(gelu_tanh_of), one},
      {"gelu_erf", [](const In& x) { return gelu_erf(x[0]); },
       each([](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }), one},
      {"numbers", [](const In& x) { return 2.0f * (1.0f - x[0] / 4.0f) + 3.0f / (x[0] - -2.0f); },
       each([](double x) { return 2 * (1 - x / 4) + 3 / (x + 2); }), one},
      {"where",
       [](const In& x) {
         return where(mask({1, 0, 1}, {3}), x[0], x[1]);
       },
       [](const Inputs& in) {
         Values out(6);
         for (size_t i = 0; i < 6; ++i) out[i] = i % 3 == 1 ? in[1][i % 3] : in[0][i];
         return out;
       },
       pair},
      {"convert", [](const In& x) { return convert(x[0], DType::float32); },
       each([](double x) { return x; }), one},
  };
}

std::vector<PublicOperation> shape_operations() {
  using In = std::vector<Array>;
  const auto picked = [](std::vector<size_t> from) {
    return [from](const Inputs& in) {
      Values out;
      for (const size_t i : from) out.push_back(in[0][i]);
      return out;
    };
  };
  const std::vector<Shape> one = {{2, 3}};
  return {
      {"reshape",
       [](const In& x) {
         return reshape(x[0], {3, -1});
       },
       picked({0, 1, 2, 3, 4, 5}), one},
      {"transpose", [](const In& x) { return transpose(x[0]); }, picked({0, 3, 1, 4, 2, 5}), one},
      {"permute",
       [](const In& x) {
         return permute(x[0], {2, 0, 1});
       },
       picked({0, 2, 4, 1, 3, 5}),
       {{1, 3, 2}}},
      {"broadcast_to",
       [](const In& x) {
         return broadcast_to(x[0], {2, 2, 2});
       },
       picked({0, 0, 1, 1, 0, 0, 1, 1}),
       {{2, 1}}},
      {"slice", [](const In& x) { return slice(x[0], {.axis = 1, .begin = 1}); },
       picked({1, 2, 4, 5}), one},
      {"slice backwards",
       [](const In& x) { return slice(x[0], {.axis = 1, .begin = 2, .step = -2}); },
       picked({2, 0, 5, 3}), one},
      {"row", [](const In& x) { return x[0][-1]; }, picked({3, 4, 5}), one},
      {"contiguous", [](const In& x) { return transpose(x[0]).contiguous(); },
       picked({0, 3, 1, 4, 2, 5}), one},
      {"place", [](const In& x) { return place(x[0], {.axis = 0, .begin = 1, .step = 2}, 4); },
       [](const Inputs& in) {
         Values out(12);
         for (size_t i = 0; i < 3; ++i) out[3 + i] = in[0][i], out[9 + i] = in[0][3 + i];
         return out;
       },
       one},
      {"concatenate",
       [](const In& x) {
         return concatenate({x[0], x[1]}, 1);
       },
       [](const Inputs& in) {
         return Values{in[0][0], in[0][1], in[0][2], in[1][0],
                       in[0][3], in[0][4], in[0][5], in[1][1]};
       },
       {{2, 3}, {2, 1}}},
  };
}

std::vector<PublicOperation> index_operations() {
  using In = std::vector<Array>;
  const Array twice = integers({2, 0, 2}, {3});
  return {
      {"gather",
       [=](const In& x) { return gather(x[0], twice, 1); },
       [](const Inputs& in) {
         return Values{in[0][2], in[0][0], in[0][2], in[0][5], in[0][3], in[0][5]};
       },
       {{2, 3}}},
      {"scatter",
       [=](const In& x) { return scatter(x[0], twice, 0, 4); },
       [](const Inputs& in) {
         const Values& x = in[0];
         return Values{x[2], x[3], 0, 0, x[0] + x[4], x[1] + x[5], 0, 0};
       },
       {{3, 2}}},
      {"scatter_add",
       [=](const In& x) { return scatter_add(x[0], twice, x[1]); },
       [](const Inputs& in) {
         Values out = in[0];
         const size_t rows[] = {2, 0, 2};
         for (size_t i = 0; i < 6; ++i) out[2 * rows[i / 2] + i % 2] += in[1][i];
         return out;
       },
       {{3, 2}, {3, 2}}},
      {"embedding",
       [=](const In& x) { return embedding(x[0], twice); },
       [](const Inputs& in) {
         const Values& x = in[0];
         return Values{x[4], x[5], x[0], x[1], x[4], x[5]};
       },
       {{3, 2}}},
      {"take_from_rows",
       [=](const In& x) { return take_from_rows(x[0], twice); },
       [](const Inputs& in) {
         return Values{in[0][2], in[0][3], in[0][8]};
       },
       {{3, 3}}},
      {"add_to_rows",
       [=](const In& x) { return add_to_rows(x[0], twice, x[1]); },
       [](const Inputs& in) {
         Values out = in[0];
         out[2] += in[1][0], out[3] += in[1][1], out[8] += in[1][2];
         return out;
       },
       {{3, 3}, {3}}},
  };
}

// Row `index` of `width` elements.
Values row_of(const Values& x, size_t index, size_t width) {
  const auto begin = x.begin() + static_cast<std::ptrdiff_t>(index * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(width)};
}

double total(const Values& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

Values softmax_of(Values row) {
  for (double& value : row) value = std::exp(value);
  const double sum = total(row);
  for (double& value : row) value /= sum;
  return row;
}

double log_sum_exp_of(const Values& row) {
  double sum = 0.0;
  for (const double value : row) sum += std::exp(value);
  return std::log(sum);
}

// f of each row of the first input and its index, behind each other.
std::function<Values(const Inputs&)> rows(size_t width,
                                          std::function<Values(const Inputs&, Values, size_t)> f) {
  return [=](const Inputs& in) {
    Values out;
    for (size_t i = 0; i < in[0].size() / width; ++i) {
      const Values part = f(in, row_of(in[0], i, width), i);
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  };
}

std::vector<PublicOperation> row_operations() {
  using In = std::vector<Array>;
  const std::vector<Shape> one = {{2, 3}};
  return {
      {"sum", [](const In& x) { return sum(x[0]); },
       [](const Inputs& in) { return Values{total(in[0])}; }, one},
      {"sum of an axis", [](const In& x) { return sum(x[0], {0}); },
       [](const Inputs& in) {
         return Values{in[0][0] + in[0][3], in[0][1] + in[0][4], in[0][2] + in[0][5]};
       },
       one},
      {"mean", [](const In& x) { return mean(x[0], {-1}, Reduced::kept); },
       rows(3, [](const Inputs&, Values row, size_t) { return Values{total(row) / 3}; }), one},
      {"max", [](const In& x) { return max(x[0], {1}); },
       rows(3, [](const Inputs&, Values row,
                  size_t) { return Values{*std::max_element(row.begin(), row.end())}; }),
       one},
      {"sum_to",
       [](const In& x) {
         return sum_to(x[0], {2, 1});
       },
       rows(3, [](const Inputs&, Values row, size_t) { return Values{total(row)}; }), one},
      {"matmul",
       [](const In& x) { return matmul(x[0], x[1]); },
       [](const Inputs& in) {
         Values out(4);
         for (size_t i = 0; i < 2; ++i) {
           for (size_t j = 0; j < 2; ++j) {
             for (size_t k = 0; k < 3; ++k) out[2 * i + j] += in[0][3 * i + k] * in[1][2 * k + j];
           }
         }
         return out;
       },
       {{2, 3}, {3, 2}}},
      {"softmax", [](const In& x) { return softmax(x[0]); },
       rows(3, [](const Inputs&, Values row, size_t) { return softmax_of(row); }), one},
      {"softmax of an axis", [](const In& x) { return transpose(softmax(transpose(x[0]), 0)); },
       rows(3, [](const Inputs&, Values row, size_t) { return softmax_of(row); }), one},
      {"log_sum_exp", [](const In& x) { return log_sum_exp(x[0]); },
       rows(3, [](const Inputs&, Values row, size_t) { return Values{log_sum_exp_of(row)}; }), one},
      {"rms_norm",
       [](const In& x) { return rms_norm(x[0], x[1], 0.1f); },
       rows(3,
            [](const Inputs& in, Values row, size_t) {
              double squares = 0.0;
              for (const double x : row) squares += x * x;
              const double length = std::sqrt(squares / 3 + double{0.1f});
              for (size_t i = 0; i < 3; ++i) row[i] *= in[1][i] / length;
              return row;
            }),
       {{2, 3}, {3}}},
      {"layer_norm",
       [](const In& x) { return layer_norm(x[0], x[1], x[2], 0.1f); },
       rows(3,
            [](const Inputs& in, Values row, size_t) {
              const double mean = total(row) / 3;
              double squares = 0.0;
              for (const double x : row) squares += (x - mean) * (x - mean);
              const double deviation = std::sqrt(squares / 3 + double{0.1f});
              for (size_t i = 0; i < 3; ++i) {
                row[i] = (row[i] - mean) / deviation * in[1][i] + in[2][i];
              }
              return row;
            }),
       {{2, 3}, {3}, {3}}},
  };
}

// Causal attention of 2 queries over 3 keys, 2 heads that share one key head, head_dim 2.
Values attention_of(const Inputs& in) {
  Values out(8);
  for (size_t query = 0; query < 2; ++query) {
    for (size_t head = 0; head < 2; ++head) {
      Values scores;
      for (size_t key = 0; key <= query + 1; ++key) {
        double score = 0.0;
        for (size_t i = 0; i < 2; ++i)
          score += in[0][4 * query + 2 * head + i] * in[1][2 * key + i];
        scores.push_back(5.0 * std::tanh(0.7 * score / 5.0));
      }
      const Values weights = softmax_of(scores);
      for (size_t key = 0; key < weights.size(); ++key) {
        for (size_t i = 0; i < 2; ++i) {
          out[4 * query + 2 * head + i] += weights[key] * in[2][2 * key + i];
        }
      }
    }
  }
  return out;
}

// Positions 1 and 4 of one head of 2, whose frequency is 0.5.
Values rope_of(const Inputs& in) {
  Values out;
  for (size_t row = 0; row < 2; ++row) {
    const double angle = row == 0 ? 0.5 : 2.0, x = in[0][2 * row], y = in[0][2 * row + 1];
    out.push_back(x * std::cos(angle) - y * std::sin(angle));
    out.push_back(y * std::cos(angle) + x * std::sin(angle));
  }
  return out;
}

std::vector<PublicOperation> losses_and_attention() {
  using In = std::vector<Array>;
  const Array targets = integers({2, 0}, {2}), first = mask({1, 0}, {2});
  const auto loss = [](const Values& row, size_t i) {
    return log_sum_exp_of(row) - row[i == 0 ? 2 : 0];
  };
  // logits of hidden [2, 2] and weights [3, 2]
  const auto logits = [](const Inputs& in, size_t i) {
    Values row;
    for (size_t j = 0; j < 3; ++j) {
      row.push_back(in[0][2 * i] * in[1][2 * j] + in[0][2 * i + 1] * in[1][2 * j + 1]);
    }
    return row;
  };
  const std::vector<Shape> one = {{2, 3}}, head = {{2, 2}, {3, 2}};
  return {
      {"attention",
       [](const In& x) { return attention(x[0], x[1], x[2], {.scale = 0.7f, .soft_cap = 5.0f}); },
       attention_of,
       {{2, 2, 2}, {3, 1, 2}, {3, 1, 2}}},
      {"rope",
       [](const In& x) {
         return rope(x[0], rope_table(integers({1, 4}, {2}), full({1}, 0.5f)));
       },
       rope_of,
       {{2, 1, 2}}},
      {"token_losses", [=](const In& x) { return token_losses(x[0], targets); },
       rows(3, [=](const Inputs&, Values row, size_t i) { return Values{loss(row, i)}; }), one},
      {"cross_entropy", [=](const In& x) { return cross_entropy(x[0], targets); },
       [=](const Inputs& in) {
         return Values{(loss(row_of(in[0], 0, 3), 0) + loss(row_of(in[0], 1, 3), 1)) / 2};
       },
       one},
      {"masked cross_entropy", [=](const In& x) { return cross_entropy(x[0], targets, first); },
       [=](const Inputs& in) { return Values{loss(row_of(in[0], 0, 3), 0)}; }, one},
      {"chunked_cross_entropy",
       [=](const In& x) { return chunked_cross_entropy(x[0], x[1], targets); },
       [=](const Inputs& in) {
         return Values{(loss(logits(in, 0), 0) + loss(logits(in, 1), 1)) / 2};
       },
       head},
      {"masked chunked_cross_entropy",
       [=](const In& x) { return chunked_cross_entropy(x[0], x[1], targets, first, 1); },
       [=](const Inputs& in) { return Values{loss(logits(in, 0), 0)}; }, head},
      {"mse",
       [](const In& x) { return mse(x[0], x[1]); },
       [](const Inputs& in) {
         double sum = 0.0;
         for (size_t i = 0; i < 6; ++i) sum += (in[0][i] - in[1][i]) * (in[0][i] - in[1][i]);
         return Values{sum / 6};
       },
       {{2, 3}, {2, 3}}},
  };
}

Values doubles(const Array& array) {
  const std::vector<float> floats = array.to_vector();
  return {floats.begin(), floats.end()};
}

void expect_near(const Values& found, const Values& expected, const std::string& what) {
  constexpr double kTolerance = 1e-5;
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], kTolerance * std::max(1.0, std::abs(expected[i])))
        << what << ", element " << i;
  }
}

double weighted(const Values& values, const Values& weights) {
  double sum = 0.0;
  for (size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i];
  return sum;
}

void check(const PublicOperation& operation) {
  SCOPED_TRACE(operation.name);
  std::vector<Array> inputs;
  Inputs values;
  for (const Shape& shape : operation.shapes) {
    inputs.push_back(uniform(shape, {.seed = 7 + inputs.size()}, operation.low, operation.high));
    values.push_back(doubles(inputs.back()));
  }
  const Array output = operation.operation(inputs);
  expect_near(doubles(output), operation.definition(values), "value");
  const Array cotangent = uniform(output.shape(), {.seed = 99}, -1.0f, 1.0f);
  const Vjp found = vjp(operation.operation, inputs, {cotangent});
  const Values weights = doubles(cotangent);
  for (size_t i = 0; i < inputs.size(); ++i) {
    constexpr double kStep = 1e-5;
    Values difference;
    for (double& value : values[i]) {
      const double kept = value;
      value = kept + kStep;
      const double after = weighted(operation.definition(values), weights);
      value = kept - kStep;
      const double before = weighted(operation.definition(values), weights);
      value = kept;
      difference.push_back((after - before) / (2 * kStep));
    }
    EXPECT_EQ(found.gradients[i].shape(), inputs[i].shape());
    expect_near(doubles(found.gradients[i]), difference, "gradient " + std::to_string(i));
  }
}

TEST(PublicOperations, ComputeWhatTheyAreDefinedAs) {
  for (const auto& list : {elementwise_operations(), shape_operations(), index_operations(),
                           row_operations(), losses_and_attention()}) {
    for (const PublicOperation& operation : list) check(operation);
  }
}

TEST(PublicOperations, MasksOfComparisons) {
  const Array a({1, 2, 3}, {3}), b({3, 2, 1}, {3});
  EXPECT_EQ(equal(a, b).to_vector<int8_t>(), (std::vector<int8_t>{0, 1, 0}));
  EXPECT_EQ(greater(a, b).to_vector<int8_t>(), (std::vector<int8_t>{0, 0, 1}));
  EXPECT_EQ(equal(a, b).dtype(), DType::mask);
}

TEST(PublicOperations, HalvesRoundOnce) {
  const Array x({1.0f, 1.0009765625f, 65504.0f}, {3});
  const Array half = convert(x, DType::float16), brain = convert(x, DType::bfloat16);
  EXPECT_EQ(half.to_vector(), x.to_vector());
  EXPECT_EQ(brain.to_vector(), (std::vector<float>{1.0f, 1.0f, 65536.0f}));
  EXPECT_EQ((half * half).dtype(), DType::float16);
  EXPECT_EQ((half * brain).dtype(), DType::float32);
  EXPECT_EQ((half / 2.0f).dtype(), DType::float16);
  const auto found = value_and_grad([](const std::vector<Array>& w) {
    return sum(convert(w[0], DType::float32));
  })(std::vector<Array>{half});
  EXPECT_EQ(found.gradients[0].dtype(), DType::float16);
}

TEST(PublicOperations, StopGradientIsAConstant) {
  const auto found = value_and_grad([](const std::vector<Array>& w) {
    return sum(w[0] * stop_gradient(w[0]));
  })(std::vector<Array>{full({2}, 3.0f)});
  EXPECT_EQ(found.value.item(), 18.0f);
  EXPECT_EQ(found.gradients[0].to_vector(), (std::vector<float>{3.0f, 3.0f}));
}

}  // namespace
}  // namespace paceline::arrays
