// A feed-forward network in one call has the bits of its three steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/op_inputs.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

constexpr int64_t kInputs = 256;
constexpr int64_t kOutputs = 70;

// Gate and up as neighbours in one matrix from column `first` on, or in a matrix each.
struct Network {
  OwnedTensor x;
  OwnedTensor first_bias, second_bias, down_bias;
  PackedMatrix first, second, down;
  GatedMlpWeights weights;
};

class GatedMlpOp : public IsaTest {
 protected:
  std::unique_ptr<Network> make(const WeightType& gate, const WeightType* up,
                                const WeightType& down, int64_t rows, int64_t skipped) {
    auto made = std::make_unique<Network>();
    const int64_t width = down.row_length(300), n = skipped + (up == nullptr ? 2 : 1) * width;
    made->x = random_tensor(memory_, DType::f32, {rows, kInputs}, 1);
    made->first = random_matrix(memory_, threads(), gate, n, kInputs, 2);
    made->first_bias = random_tensor(memory_, DType::f32, {n}, 3);
    made->down = random_matrix(memory_, threads(), down, kOutputs, width, 4);
    made->down_bias = random_tensor(memory_, DType::f32, {kOutputs}, 5);
    GatedMlpWeights& weights = made->weights;
    weights.activation = Activation::gelu_tanh;
    weights.gate = {&made->first, skipped, width, made->first_bias.view};
    weights.up = {&made->first, skipped + width, width, weights.gate.bias};
    weights.down = {&made->down, 0, kOutputs, made->down_bias.view};
    if (up != nullptr) {
      made->second = random_matrix(memory_, threads(), *up, width, kInputs, 6);
      weights.up = {&made->second, 0, width, {}};
    }
    return made;
  }

  // The columns of a product, from one with the whole matrix.
  OwnedTensor multiply(const Tensor& x, const PackedColumns& columns) {
    const PackedMatrix& matrix = *columns.matrix;
    const OwnedTensor all = allocate_tensor(memory_, DType::f32, {x.size(0), matrix.n});
    backend().matmul(x, matrix, columns.bias ? &*columns.bias : nullptr, all.view);
    OwnedTensor wanted = allocate_tensor(memory_, DType::f32, {x.size(0), columns.count});
    copy_elements(all.view.slice(1, columns.first, columns.first + columns.count), wanted.view);
    return wanted;
  }

  std::vector<float> by_steps(const Network& network) {
    const GatedMlpWeights& weights = network.weights;
    const OwnedTensor gate = multiply(network.x.view, weights.gate);
    const OwnedTensor up = multiply(network.x.view, weights.up);
    backend().gated_activation(weights.activation, gate.view, up.view, gate.view);
    return to_vector(multiply(gate.view, weights.down).view);
  }

  void expect_same_bits(const Network& network, const std::string& what) {
    const std::vector<float> expected = by_steps(network);
    const OwnedTensor out =
        allocate_tensor(memory_, DType::f32, {network.x.view.size(0), kOutputs});
    for (const auto& backend : backends()) {
      backend->gated_mlp(network.weights, network.x.view, out.view);
      EXPECT_SAME_BITS(expected, to_vector(out.view)) << what;
    }
  }
};

TEST_P(GatedMlpOp, HasTheBitsOfItsSteps) {
  for (const WeightType& type : cases_to_run(weight_types(), static_cast<size_t>(GetParam()), 5)) {
    if (type.row_length(kInputs) != kInputs) continue;
    for (const int64_t rows : {1, 3, 70}) {
      expect_same_bits(*make(type, nullptr, type, rows, 0), type.name);
    }
    expect_same_bits(*make(type, nullptr, type, 40, 7), type.name + " behind other columns");
  }
}

TEST_P(GatedMlpOp, TakesInputsInAnOrder) {
  const std::vector<WeightType> types = ordered_weight_types();
  const WeightType& plain = weight_types().back();
  for (const WeightType& type : cases_to_run(types, static_cast<size_t>(GetParam()), 5)) {
    for (const int64_t rows : {1, 3, 70}) {
      expect_same_bits(*make(type, nullptr, type, rows, 0), type.name);
    }
    expect_same_bits(*make(type, &plain, type, 9, 0), type.name + ", up as it is");
    expect_same_bits(*make(plain, nullptr, type, 9, 7), type.name + ", down alone");
  }
}

TEST_P(GatedMlpOp, WorksInPlace) {
  const WeightType& type = weight_types().front();
  const auto network = make(type, nullptr, type, 40, 0);
  const std::vector<float> expected = by_steps(*network);
  for (const auto& backend : backends()) {
    const OwnedTensor copy = allocate_tensor(memory_, DType::f32, network->x.view.shape());
    copy_elements(network->x.view, copy.view);
    const Tensor out = copy.view.slice(1, 0, kOutputs);
    backend->gated_mlp(network->weights, copy.view, out);
    EXPECT_SAME_BITS(expected, to_vector(out));
  }
}

TEST_P(GatedMlpOp, TakesMatricesOfDifferentTypes) {
  const std::vector<WeightType>& types = weight_types();
  const size_t step = runs_fewer_cases() ? 4 : 1;
  for (size_t i = 0; i < types.size(); i += step) {
    const WeightType& up = types[(i + 5) % types.size()];
    const WeightType& down = types[(i + 11) % types.size()];
    expect_same_bits(*make(types[i], &up, down, 37, 0),
                     types[i].name + ", " + up.name + ", " + down.name);
  }
}

TEST_P(GatedMlpOp, KeepsWhatIsNotFiniteToItsRow) {
  for (const WeightType& type : {weight_types()[0], weight_types().back()}) {
    const auto network = make(type, nullptr, type, 3, 0);
    network->x.view.row<float>(1)[5] = std::numeric_limits<float>::infinity();
    const OwnedTensor out = allocate_tensor(memory_, DType::f32, {3, kOutputs});
    backend().gated_mlp(network->weights, network->x.view, out.view);
    for (const int64_t row : {0, 2}) {
      const float* const values = out.view.row<float>(row);
      EXPECT_TRUE(std::all_of(values, values + kOutputs, [](float v) { return std::isfinite(v); }));
    }
    EXPECT_FALSE(std::isfinite(out.view.row<float>(1)[0])) << type.name;
  }
}

PL_TEST_EVERY_ISA(GatedMlpOp);

}  // namespace
}  // namespace paceline
