// The gradients of GPUs: the bits of a row, a sequence or a segment of rows don't depend on the
// call, and what stands between strided rows stays as it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/code/attention_gradient.h"
#include "kernels/gradients.h"
#include "tests/cuda_backend/emulated_backend.h"
#include "tests/kernels/op_inputs.h"
#include "tests/kernels/same_bits.h"

namespace paceline::cuda {
namespace {

class CudaGradientBits : public ::testing::Test {
 protected:
  OwnedTensor random(Extents shape, uint64_t seed, float size = 1.0f) {
    return random_tensor(memory_, DType::f32, shape, seed, size);
  }
  OwnedTensor poison(Extents shape) {
    OwnedTensor tensor = allocate_tensor(memory_, DType::f32, shape);
    std::fill_n(tensor.view.elements<float>(), tensor.view.num_elements(),
                std::numeric_limits<float>::quiet_NaN());
    return tensor;
  }

  EmulatedBackend cuda_;
  Memory& memory_ = cuda_->memory();
  GradientOps& ops_ = cuda_->gradients();
};

// Few rows too, whose products read weights while the kernel in front runs.
TEST_F(CudaGradientBits, InputGradientsOfRowsAreTheSameAloneAndTogether) {
  constexpr int64_t kRows = 20, kN = 70;
  for (const WeightType& type : weight_types()) {
    if (type.groups && type.name != "q4x32") continue;
    const int64_t k = type.row_length(33);
    const OwnedTensor dy = random({kRows, kN}, 1);
    const PackedMatrix w = random_matrix(memory_, cuda_.threads, type, kN, k, 2);
    const OwnedTensor whole = poison({kRows, k}), wide = poison({kRows, k + 5});
    ops_.matmul_input_gradient(dy.view, w, whole.view);
    for (int64_t row = 0, count = 1; row < kRows; row += count, count = count * 3) {
      const int64_t end = std::min(kRows, row + count);
      ops_.matmul_input_gradient(dy.view.slice(0, row, end), w,
                                 wide.view.slice(0, row, end).slice(1, 0, k));
    }
    EXPECT_SAME_BITS(to_vector(wide.view.slice(1, 0, k)), to_vector(whole.view)) << type.name;
    for (const float element : to_vector(wide.view.slice(1, k, k + 5))) {
      EXPECT_TRUE(std::isnan(element)) << type.name;
    }
  }
}

TEST_F(CudaGradientBits, SegmentsOfRowsAreTheSameAloneAndTogether) {
  constexpr int64_t kRows = kGradientRows + 9, kN = 35, kK = 3;
  const OwnedTensor dy = random({kRows, kN}, 1), x = random({kRows, kK}, 2);
  for (const OperandRounding rounding : {OperandRounding::none, OperandRounding::bfloat16}) {
    const OwnedTensor whole = random({kN, kK}, 3), parts = random({kN, kK}, 3);
    ops_.matmul_weight_gradient(dy.view, x.view, rounding, whole.view);
    for (const auto& [begin, end] :
         {std::pair{int64_t{0}, kGradientRows}, {kGradientRows, kRows}}) {
      ops_.matmul_weight_gradient(dy.view.slice(0, begin, end), x.view.slice(0, begin, end),
                                  rounding, parts.view);
    }
    EXPECT_SAME_BITS(to_vector(parts.view), to_vector(whole.view));
  }
}

TEST_F(CudaGradientBits, SequencesAreTheSameAloneAndTogether) {
  constexpr int64_t kFirst = 5, kRows = 24, kHeads = 4, kKvHeads = 2, kDim = 7;
  const Extents of_heads = {kRows, kHeads, kDim}, of_kv_heads = {kRows, kKvHeads, kDim};
  const OwnedTensor q = random(of_heads, 1), out = random(of_heads, 2), dout = random(of_heads, 3);
  const OwnedTensor k = random(of_kv_heads, 4), v = random(of_kv_heads, 5);
  const OwnedTensor log_sums = random({kRows, kHeads}, 6);
  const AttentionParams params{.scale = 0.3f, .soft_cap = 2.0f, .window = 6};
  const std::vector<SequenceRows> sequences = {{0, kFirst}, {kFirst, kRows - kFirst}};
  const auto gradients_of = [&](std::span<const SequenceRows> some, int64_t begin, int64_t end) {
    const auto rows = [&](const OwnedTensor& all) { return all.view.slice(0, begin, end); };
    const OwnedTensor dq = poison(of_heads), dk = poison(of_kv_heads), dv = poison(of_kv_heads);
    ops_.attention_gradient({.q = rows(q),
                             .k = rows(k),
                             .v = rows(v),
                             .out = rows(out),
                             .log_sum_exp = rows(log_sums),
                             .dout = rows(dout)},
                            some, params, {.dq = rows(dq), .dk = rows(dk), .dv = rows(dv)});
    std::vector<float> all;
    for (const OwnedTensor* const one : {&dq, &dk, &dv}) {
      const std::vector<float> part = to_vector(one->view.slice(0, kFirst, kRows));
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  const SequenceRows alone{.first_row = 0, .num_rows = kRows - kFirst};
  EXPECT_SAME_BITS(gradients_of(std::span(&alone, 1), kFirst, kRows),
                   gradients_of(sequences, 0, kRows));
}

TEST_F(CudaGradientBits, HeadsThatAreTooLongAreRefused) {
  const OwnedTensor heads = random({1, 1, kMostGradientDims + 1}, 1), sums = random({1, 1}, 2);
  const Tensor& x = heads.view;
  const SequenceRows sequence{.first_row = 0, .num_rows = 1};
  EXPECT_THROW(ops_.attention_gradient(
                   {.q = x, .k = x, .v = x, .out = x, .log_sum_exp = sums.view, .dout = x},
                   std::span(&sequence, 1), {}, {.dq = x, .dk = x, .dv = x}),
               Error);
}

TEST_F(CudaGradientBits, NormsOfHeadsAndGatesAreTheSameInPlace) {
  const OwnedTensor x = random({3, 2, 33}, 1), dy = random({3, 2, 33}, 2), w = random({33}, 3);
  const OwnedTensor apart = poison({3, 2, 33});
  ops_.rms_norm_gradient({x.view, w.view, dy.view}, 1e-5f, apart.view, nullptr);
  const OwnedTensor in_place = random({3, 2, 33}, 2), weights = random({33}, 4);
  const OwnedTensor weights_apart = random({33}, 4);
  ops_.rms_norm_gradient({x.view, w.view, in_place.view}, 1e-5f, in_place.view, &weights.view);
  EXPECT_SAME_BITS(to_vector(in_place.view), to_vector(apart.view));
  ops_.rms_norm_gradient({x.view, w.view, dy.view}, 1e-5f, apart.view, &weights_apart.view);
  EXPECT_SAME_BITS(to_vector(weights.view), to_vector(weights_apart.view));

  const OwnedTensor gate = random({4, 50}, 5, 9.0f), up = random({4, 50}, 6, 9.0f);
  const OwnedTensor dout = random({4, 50}, 7), dgate = poison({4, 50}), dup = poison({4, 50});
  const GatedGradientInputs in{gate.view, up.view, dout.view};
  ops_.gated_activation_gradient(Activation::clamped_swiglu, in, dgate.view, dup.view);
  ops_.gated_activation_gradient(Activation::clamped_swiglu, in, gate.view, up.view);
  EXPECT_SAME_BITS(to_vector(gate.view), to_vector(dgate.view));
  EXPECT_SAME_BITS(to_vector(up.view), to_vector(dup.view));
}

// A gate and its product as one operation; elements rounded, and dropped, as the CPU does it.
TEST_F(CudaGradientBits, ComposedGradientsAreThoseOfSingleOnes) {
  constexpr int64_t kRows = 5, kWidth = 20, kK = 40;
  const WeightType type = weight_types().front();
  const PackedMatrix w = random_matrix(memory_, cuda_.threads, type, 2 * kWidth, kK, 1);
  const OwnedTensor gate = random({kRows, kWidth}, 2), up = random({kRows, kWidth}, 3);
  const OwnedTensor dout = random({kRows, kWidth}, 4), x = random({kRows, kK}, 5);
  const GatedGradientInputs in{gate.view, up.view, dout.view};
  const OwnedTensor dx = poison({kRows, kK}), expected = poison({kRows, kK});
  const OwnedTensor dw = random({2 * kWidth, kK}, 6), dw_apart = random({2 * kWidth, kK}, 6);
  const WeightGradient of_weights{.x = x.view, .dw = dw.view};
  ops_.gated_matmul_gradients(Activation::silu, in, w, &of_weights, dx.view);
  const OwnedTensor dy = poison({kRows, 2 * kWidth});
  ops_.gated_activation_gradient(Activation::silu, in, dy.view.slice(1, 0, kWidth),
                                 dy.view.slice(1, kWidth, 2 * kWidth));
  ops_.matmul_input_gradient(dy.view, w, expected.view);
  ops_.matmul_weight_gradient(dy.view, x.view, OperandRounding::none, dw_apart.view);
  EXPECT_SAME_BITS(to_vector(dx.view), to_vector(expected.view));
  EXPECT_SAME_BITS(to_vector(dw.view), to_vector(dw_apart.view));

  const auto reference = make_reference_backend();
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const OwnedTensor rounded = poison({kRows, kWidth}), known = poison({kRows, kWidth});
    ops_.copy_rounded(gate.view, dtype, rounded.view);
    reference->gradients().copy_rounded(gate.view, dtype, known.view);
    EXPECT_SAME_BITS(to_vector(rounded.view), to_vector(known.view)) << dtype_name(dtype);
  }
  const std::vector<int32_t> rows = {9, 2, 5, 5, 0};
  for (const auto& of_batch : {std::span<const int32_t>(), std::span<const int32_t>(rows)}) {
    const DroppedElements dropped{.threshold = uint64_t{1} << 31,
                                  .factor = 2.0f,
                                  .seed = 4,
                                  .stream = uint64_t{7} << 33,
                                  .first_row = 11,
                                  .rows = of_batch};
    const Tensor some = gate.view.slice(1, 0, kWidth - 1);
    const OwnedTensor kept = poison({kRows, kWidth - 1}), known = poison({kRows, kWidth - 1});
    ops_.drop_elements(dropped, some, kept.view);
    reference->gradients().drop_elements(dropped, some, known.view);
    EXPECT_SAME_BITS(to_vector(kept.view), to_vector(known.view));
  }
}

}  // namespace
}  // namespace paceline::cuda
