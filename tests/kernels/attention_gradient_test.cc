// Attention's log-sum-exp and gradients: against finite differences, and that neither threads nor
// other sequences change a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/gradients.h"
#include "tests/kernels/attention_pass.h"
#include "tests/kernels/every_isa.h"
#include "tests/kernels/finite_difference.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

const AttentionPassShape kShapes[] = {
    {.heads = 4, .kv_heads = 2, .head_dim = 24, .lengths = {70, 1, 129, 64}},
    {.heads = 3, .kv_heads = 1, .head_dim = 16, .window = 5, .lengths = {40, 9}},
    {.heads = 2, .kv_heads = 2, .head_dim = 32, .window = 70, .lengths = {200}},
    {.heads = 2, .kv_heads = 1, .head_dim = 20, .soft_cap = 1.5f, .lengths = {33, 30}},
    {.heads = 6, .kv_heads = 2, .head_dim = 8, .soft_cap = 2.0f, .window = 64, .lengths = {140}},
    {.heads = 6,
     .kv_heads = 2,
     .head_dim = 40,
     .lengths = {70, 1, 129, 64},
     .rounding = OperandRounding::bfloat16},
    {.heads = 2,
     .kv_heads = 1,
     .head_dim = 64,
     .soft_cap = 2.0f,
     .window = 70,
     .lengths = {200, 3},
     .rounding = OperandRounding::bfloat16},
};

// The definition is the derivative of the forward pass.
TEST(AttentionGradientReference, IsTheDerivativeOfAttention) {
  Memory memory;
  const auto reference = make_reference_backend();
  for (const AttentionPassShape& shape : kShapes) {
    AttentionPass pass(shape, 5, memory);
    pass.forward(*reference);
    pass.backward(*reference);
    const auto loss = [&] {
      pass.forward(*reference);
      return weighted_sum(pass.out.view, pass.dout.view);
    };
    expect_gradient("q", pass.q.view, pass.dq.view, loss);
    expect_gradient("k", pass.k.view, pass.dk.view, loss);
    expect_gradient("v", pass.v.view, pass.dv.view, loss);
  }
}

class AttentionGradient : public IsaTest {};

TEST_P(AttentionGradient, TheLogSumExpChangesNoOtherBitAndIsTheReferences) {
  const auto reference = make_reference_backend();
  for (const std::vector<SliceShape>& slices :
       {std::vector<SliceShape>{{0, 70}, {200, 1}, {63, 2}}, {{3000, 1}}, {{900, 3}, {5000, 1}}}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::i8}) {
      const AttentionShape shape = {.heads = 6,
                                    .kv_heads = 2,
                                    .head_dim = 32,
                                    .dtype = dtype,
                                    .params = {.scale = 0.3f, .soft_cap = 20.0f},
                                    .slices = slices};
      const AttentionInputs inputs(shape, 1, 2, memory_);
      const int64_t rows = shape.num_rows();
      const auto attend = [&](Backend& each, bool wants_sums) {
        const OwnedTensor out = allocate_tensor(memory_, DType::f32, inputs.q.view.shape());
        const OwnedTensor sums = allocate_tensor(memory_, DType::f32, {rows, 9});
        const Tensor inner = sums.view.slice(1, 2, 8);
        each.attention(inputs.q.view, inputs.store(), inputs.slices, shape.params, out.view,
                       wants_sums ? &inner : nullptr);
        return std::pair{to_vector(out.view), to_vector(inner)};
      };
      const auto [out, none] = attend(backend(), false);
      EXPECT_EQ(std::count(none.begin(), none.end(), 0.0f), rows * 6);
      const auto [same_out, sums] = attend(backend(), true);
      EXPECT_SAME_BITS(same_out, out) << shape.name();
      for (const auto& other : with_more_threads()) {
        EXPECT_SAME_BITS(attend(*other, true).second, sums) << shape.name();
      }
      const std::vector<float> expected = attend(*reference, true).second;
      for (size_t i = 0; i < sums.size(); ++i) ASSERT_NEAR(sums[i], expected[i], 2e-5) << i;
    }
  }
}

TEST_P(AttentionGradient, ThreadsChangeNoBit) {
  for (const AttentionPassShape& shape : kShapes) {
    AttentionPass pass(shape, 7, memory_);
    pass.forward(backend());
    pass.backward(backend());
    const std::vector<float> expected = pass.gradients();
    for (const auto& other : with_more_threads()) {
      pass.backward(*other);
      EXPECT_SAME_BITS(pass.gradients(), expected) << shape.name();
    }
  }
}

TEST_P(AttentionGradient, ASequenceAmongOthersHasTheBitsOfItAlone) {
  for (const AttentionPassShape& shape : kShapes) {
    AttentionPass pass(shape, 9, memory_);
    pass.forward(backend());
    pass.backward(backend());
    for (const SequenceRows& sequence : pass.sequences) {
      const auto rows_of = [&](const OwnedTensor& tensor) {
        return tensor.view.slice(0, sequence.first_row, sequence.first_row + sequence.num_rows);
      };
      const OwnedTensor dq = allocate_tensor(memory_, DType::f32, rows_of(pass.dq).shape());
      const OwnedTensor dk = allocate_tensor(memory_, DType::f32, rows_of(pass.dk).shape());
      const OwnedTensor dv = allocate_tensor(memory_, DType::f32, rows_of(pass.dv).shape());
      const SequenceRows alone = {0, sequence.num_rows};
      backend().gradients().attention_gradient(
          {rows_of(pass.q), rows_of(pass.k), rows_of(pass.v), rows_of(pass.out),
           rows_of(pass.log_sum_exp), rows_of(pass.dout), shape.rounding},
          std::span(&alone, 1), shape.params(), {dq.view, dk.view, dv.view});
      EXPECT_SAME_BITS(to_vector(dq.view), to_vector(rows_of(pass.dq))) << shape.name();
      EXPECT_SAME_BITS(to_vector(dk.view), to_vector(rows_of(pass.dk))) << shape.name();
      EXPECT_SAME_BITS(to_vector(dv.view), to_vector(rows_of(pass.dv))) << shape.name();
    }
  }
}

// Rows between sequences are neither read nor written.
TEST_P(AttentionGradient, RowsOutsideSequencesStayAsTheyAre) {
  AttentionPass pass(kShapes[0], 11, memory_);
  pass.forward(backend());
  pass.backward(backend());
  const std::vector<float> expected = pass.gradients();
  const SequenceRows left_out = pass.sequences[2];
  pass.sequences.erase(pass.sequences.begin() + 2);
  const auto spoil = [&](const OwnedTensor& tensor) {
    const Tensor rows =
        tensor.view.slice(0, left_out.first_row, left_out.first_row + left_out.num_rows);
    std::fill_n(rows.elements<float>(), rows.num_elements(), std::nanf(""));
  };
  for (const OwnedTensor* const tensor : {&pass.q, &pass.k, &pass.v, &pass.out, &pass.log_sum_exp,
                                          &pass.dout, &pass.dq, &pass.dk, &pass.dv}) {
    spoil(*tensor);
  }
  pass.backward(backend());
  const std::vector<float> found = pass.gradients();
  int64_t num_spoilt = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(found[i])) {
      ++num_spoilt;
    } else {
      ASSERT_EQ(found[i], expected[i]) << i;
    }
  }
  EXPECT_EQ(num_spoilt, left_out.num_rows * (4 + 2 * 2) * 24);
}

PL_TEST_EVERY_ISA(AttentionGradient);

}  // namespace
}  // namespace paceline
