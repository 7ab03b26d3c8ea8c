// Operations on each element, against their definitions in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "autodiff/elementwise.h"
#include "autodiff/new_arrays.h"
#include "tests/autodiff/operation_case.h"
#include "tests/expect_error.h"

namespace paceline::autodiff {
namespace {

struct UnaryCase {
  const char* name;
  Array (*operation)(const Array&);
  double (*definition)(double);
  float low = -2.5f;
  float high = 2.5f;
};

const UnaryCase kUnaryCases[] = {
    {"negate", negate, [](double x) { return -x; }},
    {"reciprocal", reciprocal, [](double x) { return 1.0 / x; }, 0.5f, 2.0f},
    {"exp", exp, [](double x) { return std::exp(x); }},
    {"log", log, [](double x) { return std::log(x); }, 0.4f, 3.0f},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0.4f, 3.0f},
    {"rsqrt", rsqrt, [](double x) { return 1.0 / std::sqrt(x); }, 0.5f, 3.0f},
    {"tanh", tanh, [](double x) { return std::tanh(x); }},
    {"erf", erf, [](double x) { return std::erf(x); }},
    {"sigmoid", sigmoid, [](double x) { return 1.0 / (1.0 + std::exp(-x)); }},
    {"silu", silu, [](double x) { return x / (1.0 + std::exp(-x)); }, -6.0f, 6.0f},
    {"gelu_tanh", gelu_tanh,
     [](double x) {
       const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
       return 0.5 * x * (1.0 + std::tanh(inner));
     }},
    {"gelu_erf", gelu_erf,
     [](double x) { return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0))); }}};

TEST(Elementwise, OneArray) {
  for (const UnaryCase& unary : kUnaryCases) {
    for (const Extents& shape : {Extents{3, 5}, Extents{}, Extents{7}, Extents{2, 1, 3, 2}}) {
      check_operation(
          {.name = unary.name,
           .operation = [&](const Arrays& x) { return unary.operation(x[0]); },
           .definition = [&](const NaiveArrays& x) { return naive_map(x[0], unary.definition); },
           .shapes = {shape},
           .low = unary.low,
           .high = unary.high});
    }
  }
}

struct BinaryCase {
  const char* name;
  Array (*operation)(const Array&, const Array&);
  double (*definition)(double, double);
  float low = -1.5f;
  float high = 1.5f;
};

const BinaryCase kBinaryCases[] = {
    {"add", add, [](double a, double b) { return a + b; }},
    {"subtract", subtract, [](double a, double b) { return a - b; }},
    {"multiply", multiply, [](double a, double b) { return a * b; }},
    {"divide", divide, [](double a, double b) { return a / b; }, 0.5f, 2.0f},
    {"maximum", maximum, [](double a, double b) { return std::max(a, b); }},
    {"minimum", minimum, [](double a, double b) { return std::min(a, b); }}};

TEST(Elementwise, TwoArraysThatBroadcast) {
  const std::pair<Extents, Extents> all_shapes[] = {
      {{3, 5}, {3, 5}},       {{3, 5}, {5}},
      {{3, 1}, {1, 5}},       {{}, {2, 3}},
      {{2, 1, 3}, {4, 1}},    {{2, 3, 2, 2}, {3, 1, 2}},
      {{1, 2, 1, 3}, {2, 1}}, {{6}, {}}};
  for (const BinaryCase& binary : kBinaryCases) {
    for (const auto& [first, second] : all_shapes) {
      check_operation(
          {.name = std::string(binary.name) + to_string(first) + to_string(second),
           .operation = [&](const Arrays& x) { return binary.operation(x[0], x[1]); },
           .definition =
               [&](const NaiveArrays& x) { return naive_pairs(x[0], x[1], binary.definition); },
           .shapes = {first, second},
           .low = binary.low,
           .high = binary.high});
    }
  }
}

TEST(Elementwise, ScalarsAndCompositions) {
  check_operation({.name = "scale, add_scalar",
                   .operation = [](const Arrays& x) { return 2.5f * x[0] - 0.75f; },
                   .definition =
                       [](const NaiveArrays& x) {
                         return naive_map(x[0], [](double v) { return 2.5 * v - 0.75; });
                       },
                   .shapes = {{3, 4}}});
  check_operation(
      {.name = "x exp(x y) / (1 + y^2)",
       .operation = [](const Arrays& x) { return x[0] * exp(x[0] * x[1]) / (1.0f + x[1] * x[1]); },
       .definition =
           [](const NaiveArrays& x) {
             return naive_pairs(x[0], x[1], [](double a, double b) {
               return a * std::exp(a * b) / (1.0 + b * b);
             });
           },
       .shapes = {{3, 4}, {4}},
       .low = -0.9f,
       .high = 0.9f});
}

TEST(Elementwise, Where) {
  Memory memory;
  const Context context{memory};
  const uint8_t chosen_values[] = {1, 0, 1, 0, 0, 1};
  const Array mask = from_mask(context, chosen_values, {2, 3});
  const auto define = [&](const NaiveArrays& x) {
    NaiveArray result = naive_pairs(x[0], x[1], [](double a, double) { return a; });
    result = naive_pairs(result, naive_zeros({2, 3}), [](double a, double) { return a; });
    for_each_index(result.shape, [&](const std::vector<int64_t>& index) {
      const auto at = static_cast<size_t>(index[0] * 3 + index[1]);
      result.at(index) = broadcast_value(x[chosen_values[at] != 0 ? 0 : 1], index);
    });
    return result;
  };
  for (const auto& [first, second] :
       {std::pair<Extents, Extents>{{2, 3}, {2, 3}}, {{2, 3}, {}}, {{3}, {2, 1}}, {{}, {1, 1}}}) {
    check_operation({.name = "where" + to_string(first) + to_string(second),
                     .operation = [&](const Arrays& x) { return where(mask, x[0], x[1]); },
                     .definition = define,
                     .shapes = {first, second}});
  }
}

TEST(Elementwise, EqualElementsShareTheGradientOfTheMaximum) {
  Memory memory;
  const Context context{memory};
  const float a_values[] = {1.0f, 2.0f, 3.0f}, b_values[] = {1.0f, 5.0f, -1.0f};
  const Arrays inputs = {from_values(context, a_values, {3}), from_values(context, b_values, {3})};
  const auto larger = [](const Arrays& x) { return Arrays{maximum(x[0], x[1])}; };
  const Vjp found = vjp(larger, inputs, {ones(context, {3})});
  EXPECT_EQ(to_floats(found.gradients[0]), (std::vector<float>{0.5f, 0.0f, 1.0f}));
  EXPECT_EQ(to_floats(found.gradients[1]), (std::vector<float>{0.5f, 1.0f, 0.0f}));
}

TEST(Elementwise, MaximumAndMinimumOfNaNAreNaN) {
  Memory memory;
  const Context context{memory};
  const float a_values[] = {std::nanf(""), 1.0f}, b_values[] = {1.0f, std::nanf("")};
  const Array a = from_values(context, a_values, {2}), b = from_values(context, b_values, {2});
  for (const Array& result : {maximum(a, b), minimum(a, b)}) {
    for (const float value : to_floats(result)) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Elementwise, RoundingPassesGradientsStraightThrough) {
  Memory memory;
  const Context context{memory};
  const float all_numbers[] = {1.001f, -2.7f, 3.14159f};
  const Array x = from_values(context, all_numbers, {3});
  const auto rounded = [](const Arrays& in) {
    return Arrays{convert(convert(in[0], DType::bf16), DType::f32)};
  };
  const float cotangent_values[] = {0.5f, 2.0f, -1.0f};  // exact in bfloat16
  const Array cotangent = from_values(context, cotangent_values, {3});
  EXPECT_NE(to_floats(rounded({x})[0]), to_floats(x));
  EXPECT_EQ(to_floats(vjp(rounded, {x}, {cotangent}).gradients[0]), to_floats(cotangent));
  EXPECT_EQ(to_floats(jvp(rounded, {x}, {cotangent}).tangents[0]), to_floats(cotangent));
}

TEST(Elementwise, MixedDtypesGiveFloat32) {
  Memory memory;
  const Context context{memory};
  const Array a = ones(context, {2}, DType::bf16), b = ones(context, {2}, DType::f16);
  EXPECT_EQ(add(a, a).dtype(), DType::bf16);
  EXPECT_EQ(add(a, b).dtype(), DType::f32);
  const auto product = [](const Arrays& x) { return Arrays{multiply(x[0], x[1])}; };
  const Vjp found = vjp(product, {a, b}, {ones(context, {2})});
  EXPECT_EQ(found.gradients[0].dtype(), DType::bf16);
  EXPECT_EQ(found.gradients[1].dtype(), DType::f16);
}

TEST(Elementwise, ExtremesOfFunctions) {
  Memory memory;
  const Context context{memory};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float all_numbers[] = {
      -kInfinity, -200.0f, -88.0f,    0.0f,
      88.0f,      200.0f,  kInfinity, std::numeric_limits<float>::quiet_NaN()};
  const Array x = from_values(context, all_numbers, {8});
  const auto exps = to_floats(exp(x));
  EXPECT_EQ(exps[0], 0.0f);
  EXPECT_EQ(exps[1], 0.0f);
  EXPECT_FLOAT_EQ(exps[2], std::exp(-88.0f) >= 0x1.0p-126f ? std::exp(-88.0f) : 0.0f);
  EXPECT_EQ(exps[3], 1.0f);
  EXPECT_FLOAT_EQ(exps[4], std::exp(88.0f));
  EXPECT_EQ(exps[5], kInfinity);
  EXPECT_EQ(exps[6], kInfinity);
  EXPECT_TRUE(std::isnan(exps[7]));
  const auto tanhs = to_floats(tanh(x)), sigmoids = to_floats(sigmoid(x)), erfs = to_floats(erf(x));
  EXPECT_EQ(tanhs[0], -1.0f);
  EXPECT_EQ(tanhs[6], 1.0f);
  EXPECT_TRUE(std::isnan(tanhs[7]));
  EXPECT_EQ(sigmoids[0], 0.0f);
  EXPECT_EQ(sigmoids[3], 0.5f);
  EXPECT_EQ(sigmoids[6], 1.0f);
  EXPECT_EQ(erfs[0], -1.0f);
  EXPECT_EQ(erfs[6], 1.0f);
  EXPECT_TRUE(std::isnan(erfs[7]));
  const auto logs = to_floats(log(x));
  EXPECT_TRUE(std::isnan(logs[1]));
  EXPECT_EQ(logs[3], -kInfinity);
  EXPECT_EQ(logs[6], kInfinity);
}

TEST(Elementwise, WrongShapesAreErrorsThatNameBoth) {
  Memory memory;
  const Context context{memory};
  const Array a = ones(context, {2, 3}), b = ones(context, {4});
  expect_error(ErrorCode::invalid, {"multiply", "[2, 3] and [4]", "broadcast"},
               [&] { multiply(a, b); });
  const int32_t one_values[] = {1};
  const Array integer = from_integers(context, one_values, {1});
  expect_error(ErrorCode::invalid, {"add", "int32 [1]", "float32"}, [&] { add(a, integer); });
  expect_error(ErrorCode::invalid, {"exp", "int32 [1]"}, [&] { exp(integer); });
  expect_error(ErrorCode::invalid, {"where", "mask", "float32", "int8"}, [&] { where(a, a, a); });
}

}  // namespace
}  // namespace paceline::autodiff
