// Quantising for inputs lowers the error of products with such inputs.
#include "weights/calibrated_quantizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/expect_error.h"
#include "weights/affine_quantizer.h"

namespace paceline {
namespace {

constexpr int64_t kOutputs = 5, kInputs = 128, kSamples = 512;

// Inputs whose elements follow their neighbours, some much larger than others.
OwnedTensor correlated_inputs(Memory& memory) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  OwnedTensor inputs = allocate_tensor(memory, DType::f32, {kSamples, kInputs});
  for (int64_t row = 0; row < kSamples; ++row) {
    float last = 0;
    for (int64_t i = 0; i < kInputs; ++i) {
      last = 0.8f * last + normal(random);
      inputs.view.row<float>(row)[i] = last * (i % 9 == 0 ? 6.0f : 1.0f);
    }
  }
  return inputs;
}

OwnedTensor moments_of(const Tensor& inputs, Memory& memory) {
  OwnedTensor moments = allocate_tensor(memory, DType::f32, {kInputs, kInputs});
  for (int64_t i = 0; i < kInputs; ++i) {
    for (int64_t j = 0; j < kInputs; ++j) {
      double sum = 0;
      for (int64_t row = 0; row < kSamples; ++row) {
        sum += double{inputs.row<float>(row)[i]} * inputs.row<float>(row)[j];
      }
      moments.view.row<float>(i)[j] = static_cast<float>(sum);
    }
  }
  return moments;
}

OwnedTensor random_matrix(Memory& memory) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  OwnedTensor matrix = allocate_tensor(memory, DType::f32, {kOutputs, kInputs});
  for (int64_t i = 0; i < kOutputs * kInputs; ++i)
    matrix.view.elements<float>()[i] = normal(random);
  return matrix;
}

// Of the products of all inputs with the matrix and with its codes.
double product_error(const Tensor& inputs, const Tensor& matrix, const AffineTensors& tensors,
                     AffineFormat format) {
  const AffineRows rows(tensors, format);
  double sum = 0;
  for (int64_t row = 0; row < kOutputs; ++row) {
    std::vector<float> values(kInputs);
    rows.read_values(row, values);
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      double error = 0;
      for (int64_t i = 0; i < kInputs; ++i) {
        const float difference = matrix.row<float>(row)[i] - values[static_cast<size_t>(i)];
        error += double{inputs.row<float>(sample)[i]} * difference;
      }
      sum += error * error;
    }
  }
  return sum;
}

TEST(CalibratedQuantizer, ProductsWithTheInputsHaveLessThanHalfOfTheError) {
  Memory memory;
  ThreadPool threads(2);
  const OwnedTensor inputs = correlated_inputs(memory), matrix = random_matrix(memory);
  const OwnedTensor moments = moments_of(inputs.view, memory);
  const ErrorFeedback feedback(moments.view, "test", threads);
  for (const int bits : {3, 4, 8}) {
    const AffineFormat format{.bits = bits, .group_size = 64};
    const OwnedAffineRows plain(matrix.view, format, "test", memory, threads);
    const CalibratedAffineRows chosen(matrix.view, feedback, format, "test", memory, threads);
    EXPECT_LT(product_error(inputs.view, matrix.view, chosen.tensors(), format),
              0.5 * product_error(inputs.view, matrix.view, plain.tensors(), format));
  }
}

TEST(CalibratedQuantizer, TheNumberOfThreadsChangesNothing) {
  Memory memory;
  ThreadPool one(1), three(3);
  const OwnedTensor inputs = correlated_inputs(memory), matrix = random_matrix(memory);
  const OwnedTensor moments = moments_of(inputs.view, memory);
  const AffineFormat format{.bits = 4, .group_size = 64};
  const ErrorFeedback feedback(moments.view, "test", one), same(moments.view, "test", three);
  const CalibratedAffineRows a(matrix.view, feedback, format, "test", memory, one);
  const CalibratedAffineRows b(matrix.view, same, format, "test", memory, three);
  EXPECT_TRUE(std::ranges::equal(a.tensors().words.bytes(), b.tensors().words.bytes()));
  EXPECT_TRUE(std::ranges::equal(a.tensors().scales.bytes(), b.tensors().scales.bytes()));
  EXPECT_TRUE(std::ranges::equal(a.tensors().biases.bytes(), b.tensors().biases.bytes()));
}

TEST(CalibratedQuantizer, UnusedInputsAreNoProblemAndOthersMustBeFinite) {
  Memory memory;
  ThreadPool threads(1);
  OwnedTensor matrix = random_matrix(memory);
  OwnedTensor moments = allocate_tensor(memory, DType::f32, {kInputs, kInputs});
  std::fill_n(moments.view.elements<float>(), kInputs * kInputs, 0.0f);
  const AffineFormat format{.bits = 4, .group_size = 64};
  const ErrorFeedback feedback(moments.view, "test", threads);
  const CalibratedAffineRows rows(matrix.view, feedback, format, "test", memory, threads);
  std::vector<float> values(kInputs);
  AffineRows(rows.tensors(), format).read_values(0, values);
  for (int64_t i = 0; i < kInputs; ++i) {
    EXPECT_NEAR(values[static_cast<size_t>(i)], matrix.view.row<float>(0)[i], 0.3);
  }
  moments.view.row<float>(3)[3] = NAN;
  expect_error(ErrorCode::numerical, {"x.weight"},
               [&] { ErrorFeedback(moments.view, "x.weight", threads); });
  matrix.view.row<float>(2)[5] = INFINITY;
  expect_error(ErrorCode::numerical, {"row 2"}, [&] {
    CalibratedAffineRows(matrix.view, feedback, format, "test", memory, threads);
  });
}

}  // namespace
}  // namespace paceline
