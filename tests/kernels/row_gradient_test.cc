// Gradients of operations on rows: against finite differences, edge cases, and that threads and the
// split of rows into calls change no bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/gradients.h"
#include "tests/kernels/every_isa.h"
#include "tests/kernels/finite_difference.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr Activation kActivations[] = {Activation::silu, Activation::gelu_tanh,
                                       Activation::gelu_erf};

class RowGradientReference : public testing::Test {
 protected:
  OwnedTensor random(Extents shape, uint64_t seed, float size = 2.0f) {
    return random_tensor(memory_, DType::f32, shape, seed, size);
  }
  OwnedTensor zeros(Extents shape) { return allocate_tensor(memory_, DType::f32, shape); }

  Memory memory_;
  std::unique_ptr<Backend> backend_ = make_reference_backend();
  GradientOps& ops_ = backend_->gradients();
};

TEST_F(RowGradientReference, OfRmsNormIsItsDerivative) {
  for (const Extents& shape : {Extents{5, 40}, Extents{3, 4, 16}}) {
    const OwnedTensor x = random(shape, 1), dy = random(shape, 2), dx = zeros(shape);
    const OwnedTensor weight = random({shape[shape.rank() - 1]}, 3), out = zeros(shape);
    const OwnedTensor dweight = zeros(weight.view.shape());
    ops_.rms_norm_gradient({x.view, weight.view, dy.view}, 0.1f, dx.view, &dweight.view);
    const auto loss = [&] {
      backend_->rms_norm(x.view, weight.view, 0.1f, out.view);
      return weighted_sum(out.view, dy.view);
    };
    expect_gradient("x", x.view, dx.view, loss);
    expect_gradient("weight", weight.view, dweight.view, loss);
  }
}

TEST_F(RowGradientReference, OfLayerNormIsItsDerivative) {
  for (const Extents& shape : {Extents{5, 40}, Extents{3, 4, 16}}) {
    const OwnedTensor x = random(shape, 1), dy = random(shape, 2), dx = zeros(shape);
    const OwnedTensor weight = random({shape[shape.rank() - 1]}, 3), out = zeros(shape);
    const OwnedTensor bias = random(weight.view.shape(), 4);
    const OwnedTensor dweight = zeros(weight.view.shape()), dbias = zeros(weight.view.shape());
    ops_.layer_norm_gradient({x.view, weight.view, dy.view}, 0.1f, dx.view, &dweight.view,
                             &dbias.view);
    const auto loss = [&] {
      backend_->layer_norm(x.view, weight.view, &bias.view, 0.1f, out.view);
      return weighted_sum(out.view, dy.view);
    };
    expect_gradient("x", x.view, dx.view, loss);
    expect_gradient("weight", weight.view, dweight.view, loss);
    expect_gradient("bias", bias.view, dbias.view, loss);
  }
}

TEST_F(RowGradientReference, OfActivationsIsTheirDerivative) {
  for (const Activation kind : kActivations) {
    const OwnedTensor x = random({4, 30}, 1, 4.0f), dout = random({4, 30}, 2);
    const OwnedTensor dx = zeros({4, 30}), out = zeros({4, 30});
    ops_.activation_gradient(kind, x.view, dout.view, dx.view);
    expect_gradient("x", x.view, dx.view, [&] {
      backend_->activation(kind, x.view, out.view);
      return weighted_sum(out.view, dout.view);
    });
  }
}

TEST_F(RowGradientReference, OfGatedActivationsIsTheirDerivative) {
  for (const Activation kind : kActivations) {
    const OwnedTensor gate = random({4, 30}, 1, 4.0f), up = random({4, 30}, 2);
    const OwnedTensor dout = random({4, 30}, 3), out = zeros({4, 30});
    const OwnedTensor dgate = zeros({4, 30}), dup = zeros({4, 30});
    ops_.gated_activation_gradient(kind, {gate.view, up.view, dout.view}, dgate.view, dup.view);
    const auto loss = [&] {
      backend_->gated_activation(kind, gate.view, up.view, out.view);
      return weighted_sum(out.view, dout.view);
    };
    expect_gradient("gate", gate.view, dgate.view, loss);
    expect_gradient("up", up.view, dup.view, loss);
  }
}

TEST_F(RowGradientReference, OfClampedGatesIsTheirDerivative) {
  const OwnedTensor gate = random({4, 30}, 1, 9.0f), up = random({4, 30}, 2, 9.0f);
  const OwnedTensor dout = random({4, 30}, 3), out = zeros({4, 30});
  const OwnedTensor dgate = zeros({4, 30}), dup = zeros({4, 30});
  constexpr Activation kKind = Activation::clamped_swiglu;
  ops_.gated_activation_gradient(kKind, {gate.view, up.view, dout.view}, dgate.view, dup.view);
  const auto loss = [&] {
    backend_->gated_activation(kKind, gate.view, up.view, out.view);
    return weighted_sum(out.view, dout.view);
  };
  expect_gradient("gate", gate.view, dgate.view, loss);
  expect_gradient("up", up.view, dup.view, loss);
}

TEST_F(RowGradientReference, OfSoftCapIsItsDerivative) {
  const OwnedTensor x = random({3, 50}, 1, 5.0f), dy = random({3, 50}, 2);
  const OwnedTensor dx = zeros({3, 50}), out = zeros({3, 50});
  ops_.soft_cap_gradient(x.view, 3.0f, dy.view, dx.view);
  expect_gradient("x", x.view, dx.view, [&] {
    backend_->soft_cap(x.view, 3.0f, out.view);
    return weighted_sum(out.view, dy.view);
  });
}

TEST_F(RowGradientReference, OfCrossEntropyIsItsDerivative) {
  constexpr int64_t kRows = 5, kVocab = 37;
  const OwnedTensor logits = random({kRows, kVocab}, 1, 4.0f);
  const std::vector<int32_t> targets = {0, 36, 7, -100, 9};
  const std::vector<float> weights = {1.0f, 0.25f, -2.0f, 0.0f, 0.5f};
  std::vector<float> losses(kRows);
  const OwnedTensor work = zeros({kRows, kVocab});
  const auto loss = [&] {
    copy_elements(logits.view, work.view);
    ops_.cross_entropy_gradient(targets, weights, work.view, losses);
    double sum = 0.0;
    for (size_t r = 0; r < kRows; ++r) sum += double{losses[r]} * double{weights[r]};
    return sum;
  };
  loss();
  EXPECT_EQ(losses[3], 0.0f);
  const OwnedTensor gradient = zeros({kRows, kVocab});
  copy_elements(work.view, gradient.view);
  expect_gradient("logits", logits.view, gradient.view, loss);
}

TEST_F(RowGradientReference, OfEmbeddingsIsTheSumOfTheirRows) {
  const OwnedTensor dout = random({4, 3}, 1), dtable = random({6, 3}, 2);
  const std::vector<float> before = to_vector(dtable.view), rows = to_vector(dout.view);
  ops_.embedding_gradient(std::vector<int32_t>{5, 0, 5, 2}, 2.0f, dout.view, dtable.view);
  for (size_t i = 0; i < 3; ++i) {
    const float* const after = dtable.view.elements<float>();
    EXPECT_NEAR(after[15 + i], before[15 + i] + 2.0f * (rows[i] + rows[6 + i]), 1e-5f);
    EXPECT_NEAR(after[i], before[i] + 2.0f * rows[3 + i], 1e-5f);
    EXPECT_NEAR(after[6 + i], before[6 + i] + 2.0f * rows[9 + i], 1e-5f);
    EXPECT_EQ(after[3 + i], before[3 + i]);
  }
}

TEST_F(RowGradientReference, OfRopeIsRopeAtTheNegatedPositions) {
  constexpr int64_t kRows = 6, kHeads = 2, kHeadDim = 20, kHalf = 8;
  const OwnedTensor x = random({kRows, kHeads, kHeadDim}, 1), dy = random(x.view.shape(), 2);
  const OwnedTensor inv_freq = random({kHalf}, 3, 1.0f), table = zeros({kRows, kHalf, 2});
  const std::vector<int32_t> positions = {0, 1, 77, 5000, 3, 131071};
  std::vector<int32_t> negated;
  for (const int32_t position : positions) negated.push_back(-position);
  for (const RopePairs pairs : {RopePairs::halves, RopePairs::neighbours}) {
    const OwnedTensor dx = zeros(x.view.shape()), out = zeros(x.view.shape());
    copy_elements(dy.view, dx.view);
    backend_->rope_table(negated, inv_freq.view, 1.3f, table.view);
    backend_->rope(table.view, pairs, dx.view);
    backend_->rope_table(positions, inv_freq.view, 1.3f, table.view);
    expect_gradient("x", x.view, dx.view, [&] {
      copy_elements(x.view, out.view);
      backend_->rope(table.view, pairs, out.view);
      return weighted_sum(out.view, dy.view);
    });
  }
}

class RowGradients : public IsaTest {
 protected:
  OwnedTensor random(Extents shape, uint64_t seed, float size = 2.0f) {
    return random_tensor(memory_, DType::f32, shape, seed, size);
  }

  std::vector<float> norm_weights(Backend& each, const Tensor& x, const Tensor& dy,
                                  int64_t rows_at_once) {
    const int64_t width = x.size(1);
    const OwnedTensor weight = random({width}, 3), dweight = random({width}, 4);
    const OwnedTensor layer_weight = random({width}, 5), layer_bias = random({width}, 6);
    const OwnedTensor dx = allocate_tensor(memory_, DType::f32, x.shape());
    const OwnedTensor layer_dx = allocate_tensor(memory_, DType::f32, x.shape());
    for (int64_t row = 0; row < x.size(0); row += rows_at_once) {
      const int64_t end = std::min(x.size(0), row + rows_at_once);
      const NormGradientInputs in = {x.slice(0, row, end), weight.view, dy.slice(0, row, end)};
      each.gradients().rms_norm_gradient(in, 1e-5f, dx.view.slice(0, row, end), &dweight.view);
      each.gradients().layer_norm_gradient(in, 1e-5f, layer_dx.view.slice(0, row, end),
                                           &layer_weight.view, &layer_bias.view);
    }
    std::vector<float> all = to_vector(dx.view);
    for (const OwnedTensor* const one : {&dweight, &layer_dx, &layer_weight, &layer_bias}) {
      const std::vector<float> more = to_vector(one->view);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }
};

TEST_P(RowGradients, SegmentsOfNormsTogetherAndAloneOnAnyThreadsHaveTheSameBits) {
  for (const auto& [rows, width] : {std::pair{4 * kGradientRows + 9, 70}, {300, 5000}}) {
    const OwnedTensor x = random({rows, width}, 1), dy = random({rows, width}, 2);
    const std::vector<float> whole = norm_weights(backend(), x.view, dy.view, rows);
    for (const auto& other : with_more_threads()) {
      EXPECT_SAME_BITS(norm_weights(*other, x.view, dy.view, rows), whole);
    }
    EXPECT_SAME_BITS(norm_weights(backend(), x.view, dy.view, kGradientRows), whole);
    EXPECT_SAME_BITS(norm_weights(backend(), x.view, dy.view, 2 * kGradientRows), whole);
  }
}

TEST_P(RowGradients, SegmentsOfBiasesTogetherAndAloneOnAnyThreadsHaveTheSameBits) {
  constexpr int64_t kRows = 4 * kGradientRows + 9, kWidth = 70;
  const OwnedTensor dy = random({kRows, kWidth}, 1);
  const auto biases = [&](Backend& each, int64_t rows_at_once) {
    const OwnedTensor dbias = random({kWidth}, 2);
    for (int64_t row = 0; row < kRows; row += rows_at_once) {
      const int64_t end = std::min(kRows, row + rows_at_once);
      each.gradients().bias_gradient(dy.view.slice(0, row, end), dbias.view);
    }
    return to_vector(dbias.view);
  };
  const std::vector<float> whole = biases(backend(), kRows);
  for (const auto& other : with_more_threads()) EXPECT_SAME_BITS(biases(*other, kRows), whole);
  EXPECT_SAME_BITS(biases(backend(), kGradientRows), whole);
  EXPECT_SAME_BITS(biases(backend(), 2 * kGradientRows), whole);
}

// In place, and of heads with gaps between rows.
TEST_P(RowGradients, OfNormsOfHeadsInPlace) {
  const OwnedTensor x = random({40, 90}, 1), dy = random({40, 3, 24}, 2);
  const OwnedTensor weight = random({24}, 3), dx = random({40, 3, 24}, 4);
  const Tensor heads = x.view.as_strided({40, 3, 24}, {90, 24, 1}, 9);
  GradientOps& ops = backend().gradients();
  ops.rms_norm_gradient({heads, weight.view, dy.view}, 1e-5f, dx.view, nullptr);
  const std::vector<float> expected = to_vector(dx.view);
  copy_elements(dy.view, dx.view);
  ops.rms_norm_gradient({heads, weight.view, dx.view}, 1e-5f, dx.view, nullptr);
  EXPECT_SAME_BITS(to_vector(dx.view), expected);
  ops.rms_norm_gradient({heads, weight.view, dy.view}, 1e-5f, heads, nullptr);
  EXPECT_SAME_BITS(to_vector(heads), expected);
}

TEST_P(RowGradients, OfGatesInPlaceOnAnyThreads) {
  for (const Activation kind : {Activation::silu, Activation::gelu_tanh, Activation::gelu_erf,
                                Activation::clamped_swiglu}) {
    const OwnedTensor gate = random({9, 5003}, 1, 6.0f), up = random({9, 5003}, 2);
    const OwnedTensor dout = random({9, 5003}, 3);
    const OwnedTensor dgate = random({9, 5003}, 4), dup = random({9, 5003}, 5);
    backend().gradients().gated_activation_gradient(kind, {gate.view, up.view, dout.view},
                                                    dgate.view, dup.view);
    const std::vector<float> of_gate = to_vector(dgate.view), of_up = to_vector(dup.view);
    for (const auto& other : with_more_threads()) {
      copy_elements(gate.view, dgate.view);
      copy_elements(up.view, dup.view);
      other->gradients().gated_activation_gradient(kind, {dgate.view, dup.view, dout.view},
                                                   dgate.view, dup.view);
      EXPECT_SAME_BITS(to_vector(dgate.view), of_gate);
      EXPECT_SAME_BITS(to_vector(dup.view), of_up);
    }
  }
}

// Far from zero the slope is that of a straight line, not NaN.
TEST_P(RowGradients, OfGatesAtTheEdges) {
  for (const Activation kind : kActivations) {
    std::vector<float> gate = {-200.0f, -90.0f, 0.0f, 90.0f, 200.0f}, up(5, 1.0f), dout(5, 1.0f);
    std::vector<float> dgate(5), dup(5);
    const auto row = [](std::vector<float>& v) { return Tensor(v.data(), DType::f32, {1, 5}); };
    backend().gradients().gated_activation_gradient(kind, {row(gate), row(up), row(dout)},
                                                    row(dgate), row(dup));
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(dgate[i], i < 2 ? 0.0f : i == 2 ? 0.5f : 1.0f, 1e-6f) << gate[i];
      EXPECT_NEAR(dup[i], std::max(gate[i], 0.0f), 1e-6f) << gate[i];
    }
  }
}

// A limit itself counts as within; beyond one there is no gradient; NaN stays NaN.
TEST_P(RowGradients, OfClampedGatesAtTheEdges) {
  std::vector<float> gate = {7.0f, 7.5f, 1.0f, 1.0f, -200.0f, kNotANumber, 1.0f};
  std::vector<float> up = {1.0f, 1.0f, -7.0f, -7.5f, 1.0f, 1.0f, kNotANumber};
  std::vector<float> dout(7, 1.0f), dgate(7), dup(7);
  const auto row = [](std::vector<float>& v) { return Tensor(v.data(), DType::f32, {1, 7}); };
  backend().gradients().gated_activation_gradient(
      Activation::clamped_swiglu, {row(gate), row(up), row(dout)}, row(dgate), row(dup));
  const float sigmoid = 1.0f / (1.0f + std::exp(-1.702f));
  const float slope = sigmoid + 1.702f * sigmoid * (1.0f - sigmoid);
  EXPECT_NEAR(dgate[0], 2.0f, 2e-4f);
  EXPECT_NEAR(dup[0], 7.0f, 1e-4f);
  EXPECT_EQ(dgate[1], 0.0f);
  EXPECT_NEAR(dup[1], 7.0f, 1e-4f);
  EXPECT_NEAR(dgate[2], -6.0f * slope, 1e-5f);
  EXPECT_NEAR(dup[2], sigmoid, 1e-6f);
  EXPECT_NEAR(dgate[3], -6.0f * slope, 1e-5f);
  EXPECT_EQ(dup[3], 0.0f);
  EXPECT_EQ(dgate[4], 0.0f);
  EXPECT_NEAR(dup[4], 0.0f, 1e-6f);
  EXPECT_TRUE(std::isnan(dgate[5]) && std::isnan(dup[5]));
  EXPECT_TRUE(std::isnan(dgate[6]));
}

TEST_P(RowGradients, OfRopeAtNegatedPositionsIsTheTransposedRotationToTheBit) {
  constexpr int64_t kHalf = 31;
  const std::vector<int32_t> positions = {1, 2, 999, 131071, 2000000000},
                             negated = {-1, -2, -999, -131071, -2000000000};
  const OwnedTensor inv_freq = random({kHalf}, 1, 1.0f);
  const OwnedTensor table = random({5, kHalf, 2}, 2), other = random({5, kHalf, 2}, 3);
  backend().rope_table(positions, inv_freq.view, 1.3f, table.view);
  backend().rope_table(negated, inv_freq.view, 1.3f, other.view);
  for (int64_t i = 0; i < 5 * kHalf; ++i) {
    EXPECT_EQ(table.view.elements<float>()[2 * i], other.view.elements<float>()[2 * i]);
    EXPECT_EQ(table.view.elements<float>()[2 * i + 1], -other.view.elements<float>()[2 * i + 1]);
  }
}

TEST_P(RowGradients, OfEmbeddingsInAscendingRowsOnAnyThreads) {
  constexpr int64_t kRows = 700, kVocab = 40, kHidden = 1030;
  const OwnedTensor dout = random({kRows, kHidden}, 1);
  std::vector<int32_t> ids;
  Draws draws(5);
  for (int64_t r = 0; r < kRows; ++r) ids.push_back(static_cast<int32_t>(draws.below(kVocab)));
  const auto gradient = [&](Backend& each, int64_t rows_at_once) {
    const OwnedTensor dtable = random({kVocab, kHidden}, 2);
    for (int64_t row = 0; row < kRows; row += rows_at_once) {
      const int64_t count = std::min(rows_at_once, kRows - row);
      each.gradients().embedding_gradient(
          std::span(ids).subspan(static_cast<size_t>(row), static_cast<size_t>(count)), 0.7f,
          dout.view.slice(0, row, row + count), dtable.view);
    }
    return to_vector(dtable.view);
  };
  const std::vector<float> expected = gradient(backend(), kRows);
  for (const auto& other : with_more_threads()) EXPECT_SAME_BITS(gradient(*other, kRows), expected);
  EXPECT_SAME_BITS(gradient(backend(), 1), expected);
}

TEST_P(RowGradients, OfCrossEntropyOfRowsTogetherAndAloneOnAnyThreadsHaveTheSameBits) {
  constexpr int64_t kRows = 7, kVocab = 9001;
  const OwnedTensor logits = random({kRows, kVocab}, 1, 20.0f);
  const std::vector<int32_t> targets = {0, 4095, 4096, 9000, -1, 5, 8191};
  const std::vector<float> weights = {1.0f, 0.5f, 2.0f, 0.125f, 0.0f, -1.0f, 1e-3f};
  std::fill_n(logits.view.row<float>(4), kVocab, kNotANumber);  // of weight 0
  const auto run = [&](Backend& each, int64_t rows_at_once) {
    const OwnedTensor work = allocate_tensor(memory_, DType::f32, {kRows, kVocab});
    copy_elements(logits.view, work.view);
    std::vector<float> losses(kRows);
    for (int64_t row = 0; row < kRows; row += rows_at_once) {
      const auto first = static_cast<size_t>(row);
      const auto count = static_cast<size_t>(std::min(rows_at_once, kRows - row));
      each.gradients().cross_entropy_gradient(
          std::span(targets).subspan(first, count), std::span(weights).subspan(first, count),
          work.view.slice(0, row, row + static_cast<int64_t>(count)),
          std::span(losses).subspan(first, count));
    }
    std::vector<float> all = to_vector(work.view);
    all.insert(all.end(), losses.begin(), losses.end());
    return all;
  };
  const std::vector<float> expected = run(backend(), kRows);
  for (const auto& other : with_more_threads()) EXPECT_SAME_BITS(run(*other, kRows), expected);
  EXPECT_SAME_BITS(run(backend(), 1), expected);
  EXPECT_EQ(std::count(expected.begin() + 4 * kVocab, expected.begin() + 5 * kVocab, 0.0f), kVocab);
  EXPECT_EQ(expected[kRows * kVocab + 4], 0.0f);
}

// A model that is sure of the target learns nothing; one that excludes it learns the whole weight.
TEST_P(RowGradients, OfCrossEntropyAtTheEdges) {
  std::vector<float> logits = {1000.0f, 0.0f, -1000.0f, 1000.0f, 0.0f, -1000.0f}, losses(2);
  const std::vector<int32_t> targets = {0, 2};
  const std::vector<float> weights = {3.0f, 3.0f};
  backend().gradients().cross_entropy_gradient(targets, weights,
                                               Tensor(logits.data(), DType::f32, {2, 3}), losses);
  EXPECT_EQ(losses, (std::vector<float>{0.0f, 2000.0f}));
  EXPECT_EQ(logits, (std::vector<float>{0.0f, 0.0f, 0.0f, 3.0f, 0.0f, -3.0f}));
}

PL_TEST_EVERY_ISA(RowGradients);

}  // namespace
}  // namespace paceline
