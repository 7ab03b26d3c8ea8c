// The bits of the gradients of a product depend on their row and column, not on the call, and the
// sums over rows on the order of rows alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/gradients.h"
#include "tests/kernels/attention_pass.h"
#include "tests/kernels/every_isa.h"
#include "tests/kernels/op_inputs.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

class MatmulGradients : public IsaTest {
 protected:
  std::vector<float> input_gradient(Backend& backend, const Tensor& dy, const PackedMatrix& w) {
    const OwnedTensor dx = allocate_tensor(memory_, DType::f32, {dy.size(0), w.k});
    backend.gradients().matmul_input_gradient(dy, w, dx.view);
    return to_vector(dx.view);
  }

  OwnedTensor random_dw(int64_t n, int64_t k) {
    return random_tensor(memory_, DType::f32, {n, k}, 77);
  }

  // The gradient added to dw, by calls of `rows_at_once` rows.
  std::vector<float> weight_gradient(Backend& backend, OperandRounding rounding, const Tensor& dy,
                                     const Tensor& x, int64_t rows_at_once, const OwnedTensor& dw) {
    for (int64_t row = 0; row < dy.size(0); row += rows_at_once) {
      const int64_t end = std::min(dy.size(0), row + rows_at_once);
      backend.gradients().matmul_weight_gradient(dy.slice(0, row, end), x.slice(0, row, end),
                                                 rounding, dw.view);
    }
    return to_vector(dw.view);
  }

  std::vector<WeightType> types_to_run() const {
    return cases_to_run(weight_types(), static_cast<size_t>(GetParam()), 5);
  }
};

TEST_P(MatmulGradients, InputGradientsOfRowsTogetherAndAloneOnAnyThreadsHaveTheSameBits) {
  constexpr int64_t kRows = 200, kN = 2077, kK = 290;  // three segments of outputs
  for (const WeightType& type : types_to_run()) {
    const OwnedTensor dy = random_tensor(memory_, DType::f32, {kRows, kN}, 1);
    const PackedMatrix w = random_matrix(memory_, threads(), type, kN, type.row_length(kK), 2);
    const std::vector<float> whole = input_gradient(backend(), dy.view, w);
    for (const auto& other : with_more_threads()) {
      EXPECT_SAME_BITS(input_gradient(*other, dy.view, w), whole) << type.name;
    }
    std::vector<float> parts;
    for (int64_t row = 0, count = 1; row < kRows; row += count, count = count * 3 + 1) {
      const Tensor some = dy.view.slice(0, row, std::min(kRows, row + count));
      const std::vector<float> part = input_gradient(backend(), some, w);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_SAME_BITS(parts, whole) << type.name;
  }
}

// With a unit matrix as dy the gradient is the weights themselves, in every type and at every edge.
TEST_P(MatmulGradients, InputGradientsOfUnitVectorsAreTheWeights) {
  for (const WeightType& type : types_to_run()) {
    for (const auto& [n, least_k] : {std::pair{37, 5}, {70, 161}, {1030, 40}}) {
      const int64_t k = type.row_length(least_k);
      const PackedMatrix w = random_matrix(memory_, threads(), type, n, k, 3);
      const OwnedTensor dy = allocate_tensor(memory_, DType::f32, {n, n});
      for (int64_t i = 0; i < n; ++i) dy.view.row<float>(i)[i] = 1.0f;
      std::vector<float> expected(static_cast<size_t>(n * k));
      for (int64_t i = 0; i < n; ++i) unpack_row(w, i, expected.data() + i * k);
      const std::vector<float> found = input_gradient(backend(), dy.view, w);
      for (size_t i = 0; i < found.size(); ++i) {
        // Quantised weights are rounded to bfloat16.
        const float tolerance = type.groups ? std::abs(expected[i]) * 0x1.01p-8f + 1e-6f : 0.0f;
        ASSERT_NEAR(found[i], expected[i], tolerance) << type.name << " " << i;
      }
    }
  }
}

TEST_P(MatmulGradients, NothingIsWrittenBetweenStridedRows) {
  constexpr int64_t kRows = 9, kN = 1100, kK = 128, kStride = kK + 7;
  for (const WeightType& type : types_to_run()) {
    const PackedMatrix w = random_matrix(memory_, threads(), type, kN, type.row_length(kK), 2);
    if (w.k != kK) continue;
    const OwnedTensor dy = random_tensor(memory_, DType::f32, {kRows, kN + 30}, 1);
    const Tensor inner = dy.view.slice(1, 11, 11 + kN);
    const OwnedTensor wide = allocate_tensor(memory_, DType::f32, {kRows, kStride});
    std::fill_n(wide.view.elements<float>(), kRows * kStride, 77.0f);
    const Tensor dx = wide.view.slice(1, 3, 3 + kK);
    backend().gradients().matmul_input_gradient(inner, w, dx);
    EXPECT_SAME_BITS(to_vector(dx), input_gradient(backend(), inner, w)) << type.name;
    const std::vector<float> all = to_vector(wide.view);
    EXPECT_EQ(std::count(all.begin(), all.end(), 77.0f), kRows * (kStride - kK)) << type.name;
  }
}

TEST_P(MatmulGradients, WeightGradientsOfSegmentsTogetherAndAloneHaveTheSameBits) {
  constexpr int64_t kRows = 9 * kGradientRows + 75, kN = 70, kK = 131;
  const OwnedTensor dy = random_tensor(memory_, DType::f32, {kRows, kN}, 1);
  const OwnedTensor x = random_tensor(memory_, DType::f32, {kRows, kK}, 2);
  for (const OperandRounding rounding : {OperandRounding::none, OperandRounding::bfloat16}) {
    const std::vector<float> whole =
        weight_gradient(backend(), rounding, dy.view, x.view, kRows, random_dw(kN, kK));
    for (const auto& other : with_more_threads()) {
      EXPECT_SAME_BITS(weight_gradient(*other, rounding, dy.view, x.view, kRows, random_dw(kN, kK)),
                       whole);
    }
    for (const int64_t segments : {1, 2, 3, 8}) {
      EXPECT_SAME_BITS(weight_gradient(backend(), rounding, dy.view, x.view,
                                       segments * kGradientRows, random_dw(kN, kK)),
                       whole)
          << segments;
    }
  }
}

// An element of the gradient depends on its own output and input alone.
TEST_P(MatmulGradients, WeightGradientsOfSomeColumnsHaveTheBitsOfAll) {
  constexpr int64_t kRows = 300, kN = 600, kK = 90;
  const OwnedTensor dy = random_tensor(memory_, DType::f32, {kRows, kN}, 1);
  const OwnedTensor x = random_tensor(memory_, DType::f32, {kRows, kK}, 2);
  for (const OperandRounding rounding : {OperandRounding::none, OperandRounding::bfloat16}) {
    const OwnedTensor whole = random_dw(kN, kK);
    backend().gradients().matmul_weight_gradient(dy.view, x.view, rounding, whole.view);
    for (const auto& [n, num_n, k, num_k] :
         {std::array{0, 1, 0, 90}, {17, 5, 3, 40}, {590, 10, 89, 1}, {100, 40, 32, 32}}) {
      const OwnedTensor some = random_dw(kN, kK);
      backend().gradients().matmul_weight_gradient(
          dy.view.slice(1, n, n + num_n), x.view.slice(1, k, k + num_k), rounding,
          some.view.slice(0, n, n + num_n).slice(1, k, k + num_k));
      OwnedTensor expected = random_dw(kN, kK);
      copy_elements(whole.view.slice(0, n, n + num_n).slice(1, k, k + num_k),
                    expected.view.slice(0, n, n + num_n).slice(1, k, k + num_k));
      EXPECT_SAME_BITS(to_vector(some.view), to_vector(expected.view)) << n << " " << k;
    }
  }
}

// The gradients of x and w in one call, in two, and behind a gated activation in one and in three.
TEST_P(MatmulGradients, OfBothOperandsTogetherHaveTheBitsOfOneByOne) {
  constexpr int64_t kRows = 2 * kGradientRows + 75, kN = 1062;
  const OwnedTensor dy = random_tensor(memory_, DType::f32, {kRows, kN}, 1);
  const OwnedTensor gate_up = random_tensor(memory_, DType::f32, {kRows, kN}, 2, 4.0f);
  const OwnedTensor dout = random_tensor(memory_, DType::f32, {kRows, kN / 2}, 3);
  const GatedGradientInputs gated = {gate_up.view.slice(1, 0, kN / 2),
                                     gate_up.view.slice(1, kN / 2, kN), dout.view};
  const OwnedTensor d_gate_up = allocate_tensor(memory_, DType::f32, {kRows, kN});
  backend().gradients().gated_activation_gradient(Activation::silu, gated,
                                                  d_gate_up.view.slice(1, 0, kN / 2),
                                                  d_gate_up.view.slice(1, kN / 2, kN));
  const auto check = [&](DType dtype, OperandRounding rounding, int64_t k) {
    const PackedMatrix w = random_matrix(memory_, threads(), dtype, kN, k, 4);
    const OwnedTensor x = random_tensor(memory_, DType::f32, {kRows, k}, 5);
    const OwnedTensor dx = allocate_tensor(memory_, DType::f32, {kRows, k});
    const auto expect = [&](Backend& other, const Tensor& from, auto&& of_both) {
      const OwnedTensor dw = random_dw(kN, k);
      of_both(other.gradients(), WeightGradient{x.view, rounding, dw.view});
      EXPECT_SAME_BITS(to_vector(dx.view), input_gradient(backend(), from, w));
      EXPECT_SAME_BITS(to_vector(dw.view),
                       weight_gradient(backend(), rounding, from, x.view, kRows, random_dw(kN, k)));
    };
    for (const auto& other : backends()) {
      expect(*other, dy.view, [&](GradientOps& ops, const WeightGradient& of_weights) {
        ops.matmul_gradients(dy.view, w, of_weights, dx.view);
      });
      expect(*other, d_gate_up.view, [&](GradientOps& ops, const WeightGradient& of_weights) {
        ops.gated_matmul_gradients(Activation::silu, gated, w, &of_weights, dx.view);
      });
      std::fill_n(dx.view.elements<float>(), dx.view.num_elements(), 7.0f);
      other->gradients().gated_matmul_gradients(Activation::silu, gated, w, nullptr, dx.view);
      EXPECT_SAME_BITS(to_vector(dx.view), input_gradient(backend(), d_gate_up.view, w));
    }
  };
  for (const int64_t k : {9, 90, 131}) {
    check(DType::bf16, OperandRounding::bfloat16, k);
    check(DType::bf16, OperandRounding::none, k);
    check(DType::f32, OperandRounding::none, k);
  }
}

PL_TEST_EVERY_ISA(MatmulGradients);

// Where inputs are bfloat16.
TEST(GradientScratch, IsAboutWhatWasSaid) {
  if (available_isas().back() < Isa::avx512bf16) GTEST_SKIP() << "inputs are float32 here";
  constexpr int64_t kRows = 2100, kN = 1500, kK = 700, kHeadDim = 96;
  Memory memory;
  ThreadPool threads(3);
  const auto backend = make_cpu_backend(available_isas().back(), threads, memory);
  const PackedMatrix w = random_matrix(memory, threads, DType::bf16, kN, kK, 1);
  const OwnedTensor dy = random_tensor(memory, DType::f32, {kRows, kN}, 2);
  const OwnedTensor x = random_tensor(memory, DType::f32, {kRows, kK}, 3);
  const OwnedTensor dw = allocate_tensor(memory, DType::f32, {kN, kK});
  // As many keys as one thread sums the gradients of.
  AttentionPass pass({.head_dim = kHeadDim,
                      .lengths = {1300, kRows - 1300},
                      .rounding = OperandRounding::bfloat16},
                     4, memory);
  pass.forward(*backend);
  const OwnedTensor dx = allocate_tensor(memory, DType::f32, {kRows, kK});
  const size_t before = memory.stats().active_bytes;
  const WeightGradient of_weights = {x.view, OperandRounding::bfloat16, dw.view};
  backend->gradients().matmul_gradients(dy.view, w, of_weights, dx.view);
  backend->gradients().matmul_weight_gradient(x.view, dy.view, OperandRounding::bfloat16,
                                              dw.view.reshape({kK, kN}));
  pass.backward(*backend);
  const auto used = static_cast<double>(memory.stats().active_bytes - before);
  const auto said = static_cast<double>(cpu_gradient_bytes(kRows, kN, kHeadDim, 3));
  // Only kernels in tile registers have these sums.
  EXPECT_GT(used, (available_isas().back() == Isa::amx ? 0.95 : 0.75) * said);
  EXPECT_LT(used, 1.05 * said);
}

}  // namespace
}  // namespace paceline
