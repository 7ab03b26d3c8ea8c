// Weights with an order of their inputs compute what the same weights do with ordered inputs, bit
// for bit.
#include <gtest/gtest.h>

#include "kernels/gradients.h"
#include "tests/kernels/every_isa.h"
#include "tests/kernels/op_inputs.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

class InputOrderOp : public IsaTest {
 protected:
  // The same codes and scales; the inputs of the second are those of random_order().
  struct Pair {
    PackedMatrix ordered, plain;
  };
  Pair make(const WeightType& type, int64_t n, int64_t k) {
    WeightType plain = type;
    plain.groups->has_input_order = false;
    return {random_matrix(memory_, threads(), type, n, k, 2),
            random_matrix(memory_, threads(), plain, n, k, 2)};
  }

  OwnedTensor in_order(const Tensor& x) {
    OwnedTensor ordered = allocate_tensor(memory_, DType::f32, x.shape());
    const std::vector<int32_t> order = random_order(x.size(1));
    for (int64_t r = 0; r < x.size(0); ++r) {
      for (size_t i = 0; i < order.size(); ++i) {
        ordered.view.row<float>(r)[i] = x.row<float>(r)[order[i]];
      }
    }
    return ordered;
  }

  std::vector<WeightType> types() const {
    return cases_to_run(ordered_weight_types(), static_cast<size_t>(GetParam()), 5);
  }
};

TEST_P(InputOrderOp, ProductsHaveTheBitsOfOrderedInputs) {
  constexpr int64_t kOutputs = 70;
  for (const WeightType& type : types()) {
    SCOPED_TRACE(type.name);
    const int64_t k = type.row_length(300);
    const Pair pair = make(type, kOutputs, k);
    ASSERT_EQ(pair.ordered.input_order().size(), static_cast<size_t>(k));
    EXPECT_TRUE(pair.plain.input_order().empty());
    for (const int64_t rows : {1, 3, 70}) {
      const OwnedTensor x = random_tensor(memory_, DType::f32, {rows, k}, 1);
      const OwnedTensor expected = allocate_tensor(memory_, DType::f32, {rows, kOutputs});
      const OwnedTensor out = allocate_tensor(memory_, DType::f32, {rows, kOutputs});
      backend().matmul(in_order(x.view).view, pair.plain, nullptr, expected.view);
      for (const auto& backend : backends()) {
        backend->matmul(x.view, pair.ordered, nullptr, out.view);
        EXPECT_SAME_BITS(to_vector(expected.view), to_vector(out.view));
      }
    }
  }
}

TEST_P(InputOrderOp, GradientsOfInputsAreInTheirOrder) {
  constexpr int64_t kRows = 9, kOutputs = 70;
  for (const WeightType& type : types()) {
    SCOPED_TRACE(type.name);
    const int64_t k = type.row_length(300);
    const Pair pair = make(type, kOutputs, k);
    const OwnedTensor dy = random_tensor(memory_, DType::f32, {kRows, kOutputs}, 1);
    const OwnedTensor plain = allocate_tensor(memory_, DType::f32, {kRows, k});
    backend().gradients().matmul_input_gradient(dy.view, pair.plain, plain.view);
    for (const auto& backend : backends()) {
      const OwnedTensor dx = allocate_tensor(memory_, DType::f32, {kRows, k});
      backend->gradients().matmul_input_gradient(dy.view, pair.ordered, dx.view);
      EXPECT_SAME_BITS(to_vector(plain.view), to_vector(in_order(dx.view).view));
      const OwnedTensor more = random_tensor(memory_, DType::f32, {kRows, k}, 3);
      const OwnedTensor before = in_order(more.view);
      backend->gradients().add_matmul_input_gradient(dy.view, pair.ordered, more.view);
      std::vector<float> sums = to_vector(plain.view);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += before.view.elements<float>()[i];
      EXPECT_SAME_BITS(sums, to_vector(in_order(more.view).view));
    }
  }
}

TEST_P(InputOrderOp, RowsThatAreLookedUpAndGatheredColumnsKeepIt) {
  constexpr int64_t kRows = 40;
  for (const WeightType& type : types()) {
    SCOPED_TRACE(type.name);
    const int64_t k = type.row_length(300);
    const Pair pair = make(type, kRows, k);
    const std::vector<int32_t> ids = {39, 0, 17};
    const OwnedTensor found = allocate_tensor(memory_, DType::f32, {3, k});
    const OwnedTensor plain = allocate_tensor(memory_, DType::f32, {3, k});
    backend().embedding(pair.ordered, ids, 1.0f, found.view);
    backend().embedding(pair.plain, ids, 1.0f, plain.view);
    EXPECT_SAME_BITS(to_vector(plain.view), to_vector(in_order(found.view).view));
    const PackedMatrix gathered = backend().gather_columns(pair.ordered, ids);
    const OwnedTensor x = random_tensor(memory_, DType::f32, {2, k}, 1);
    const OwnedTensor all = allocate_tensor(memory_, DType::f32, {2, kRows});
    const OwnedTensor some = allocate_tensor(memory_, DType::f32, {2, 3});
    backend().matmul(x.view, pair.ordered, nullptr, all.view);
    backend().matmul(x.view, gathered, nullptr, some.view);
    for (int64_t r = 0; r < 2; ++r) {
      for (size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(some.view.row<float>(r)[i], all.view.row<float>(r)[ids[i]]);
      }
    }
  }
}

PL_TEST_EVERY_ISA(InputOrderOp);

}  // namespace
}  // namespace paceline
