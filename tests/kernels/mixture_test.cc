// A mixture of experts has the bits of each row's experts, one by one, and their sum in order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/mixture_inputs.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

constexpr float kSpoilt = std::numeric_limits<float>::quiet_NaN();

class MixtureOp : public IsaTest {
 protected:
  // The output of each slot, [rows * slots, outputs].
  std::vector<float> slot_outputs(const MixtureInputs& in) {
    const Routing routing = in.routing();
    std::vector<float> outputs;
    const OwnedTensor one = allocate_tensor(memory_, DType::f32, {1, in.out.view.size(1)});
    for (int64_t r = 0; r < routing.num_rows(); ++r) {
      for (int64_t slot = 0; slot < routing.num_slots(); ++slot) {
        const auto expert = static_cast<size_t>(routing.row(r).experts[slot]);
        backend().gated_mlp(in.experts[expert], in.x.view.slice(0, r, r + 1), one.view);
        const std::vector<float> values = to_vector(one.view);
        outputs.insert(outputs.end(), values.begin(), values.end());
      }
    }
    return outputs;
  }

  // The baseline has no fused multiply-add.
  float add_scaled(float sum, float value, float weight) {
    return GetParam() == Isa::baseline ? value * weight + sum : std::fma(value, weight, sum);
  }

  std::vector<float> by_steps(const MixtureInputs& in) {
    const std::vector<float> outputs = slot_outputs(in);
    const Routing routing = in.routing();
    const int64_t n = in.out.view.size(1), slots = routing.num_slots();
    std::vector<float> sums(static_cast<size_t>(routing.num_rows() * n), 0.0f);
    for (int64_t r = 0; r < routing.num_rows(); ++r) {
      for (int64_t slot = 0; slot < slots; ++slot) {
        for (int64_t i = 0; i < n; ++i) {
          float& sum = sums[static_cast<size_t>(r * n + i)];
          sum = add_scaled(sum, outputs[static_cast<size_t>((r * slots + slot) * n + i)],
                           routing.row(r).weights[slot]);
        }
      }
    }
    return sums;
  }

  std::vector<float> mixed(Backend& backend, const MixtureInputs& in) {
    backend.mix_experts(in.experts, in.routing(), in.x.view, in.out.view);
    return to_vector(in.out.view);
  }
};

TEST_P(MixtureOp, HasTheBitsOfItsStepsWhateverTheThreads) {
  const auto first = static_cast<size_t>(GetParam());
  std::vector<WeightType> types = cases_to_run(weight_types(), first, 5);
  for (const WeightType& type : cases_to_run(ordered_weight_types(), first, 12)) {
    types.push_back(type);
  }
  for (const WeightType& type : types) {
    for (const int64_t rows : {1, 3, 70}) {
      const MixtureInputs in(type, {.rows = rows, .experts = 5, .slots = 2, .has_bias = rows == 3},
                             threads(), memory_);
      const std::vector<float> expected = by_steps(in);
      for (const auto& backend : backends()) {
        EXPECT_SAME_BITS(expected, mixed(*backend, in)) << type.name << " " << rows;
      }
    }
  }
}

// Added to the sums expert by expert, whatever the threads.
TEST_P(MixtureOp, AddScaledRowsHasTheBitsOfItsSums) {
  const MixtureInputs in(weight_types()[2], {.rows = 70, .experts = 5, .slots = 2}, threads(),
                         memory_);
  const std::vector<float> expected = by_steps(in);
  const Routing routing = in.routing();
  std::vector<float> outputs = slot_outputs(in), weights;
  std::vector<int32_t> rows;
  for (int64_t r = 0; r < routing.num_rows(); ++r) {
    for (int64_t slot = 0; slot < routing.num_slots(); ++slot) {
      rows.push_back(static_cast<int32_t>(r));
      weights.push_back(routing.row(r).weights[slot]);
    }
  }
  const int64_t n = in.out.view.size(1);
  const Tensor x(outputs.data(), DType::f32, {std::ssize(rows), n});
  for (const auto& backend : backends()) {
    const OwnedTensor sums = allocate_tensor(memory_, DType::f32, {routing.num_rows(), n});
    backend->add_scaled_rows(x, rows, weights, sums.view);
    EXPECT_SAME_BITS(expected, to_vector(sums.view));
  }
}

TEST_P(MixtureOp, HasTheSameBitsInManyRowsOfFewExperts) {
  const WeightType& type = weight_types()[2];
  const MixtureInputs in(type,
                         {.rows = 300, .experts = 3, .slots = 2, .width = 260, .last_width = 130},
                         threads(), memory_);
  const std::vector<float> expected = by_steps(in);
  for (const auto& backend : backends()) EXPECT_SAME_BITS(expected, mixed(*backend, in));
}

TEST_P(MixtureOp, ARowHasTheBitsThatItHasAlone) {
  for (const WeightType& type : {weight_types()[0], weight_types().back()}) {
    const MixtureInputs in(type, {.rows = 40, .experts = 6, .slots = 3}, threads(), memory_);
    const std::vector<float> expected = mixed(backend(), in);
    for (int64_t row = 0; row < 40; row += 7) {
      const OwnedTensor out = allocate_tensor(memory_, DType::f32, {1, in.out.view.size(1)});
      const Routing one = {in.chosen.view.slice(0, row, row + 1),
                           in.weights.view.slice(0, row, row + 1)};
      backend().mix_experts(in.experts, one, in.x.view.slice(0, row, row + 1), out.view);
      const auto begin = expected.begin() + row * in.out.view.size(1);
      EXPECT_SAME_BITS(std::vector<float>(begin, begin + in.out.view.size(1)), to_vector(out.view));
    }
  }
}

TEST_P(MixtureOp, TakesExpertsOfDifferentTypesAndInPlace) {
  const std::vector<WeightType>& types = weight_types();
  const MixtureShape shape = {.rows = 37, .experts = 4, .slots = 3, .inputs = 256, .outputs = 256};
  for (size_t i = 0; i < types.size(); i += runs_fewer_cases() ? 5 : 2) {
    if (types[i].row_length(256) != 256) continue;
    MixtureInputs in(types[2], shape, threads(), memory_);
    const MixtureInputs other(types[i], shape, threads(), memory_);
    in.experts[1] = other.experts[1];
    in.experts[2].up = other.experts[2].up;
    if (in.experts[2].up.count != in.experts[2].gate.count) continue;
    const std::vector<float> expected = by_steps(in);
    for (const auto& backend : backends()) {
      copy_elements(in.x.view, in.out.view);
      backend->mix_experts(in.experts, in.routing(), in.out.view, in.out.view);
      EXPECT_SAME_BITS(expected, to_vector(in.out.view)) << types[i].name;
    }
  }
}

TEST_P(MixtureOp, KeepsNaNToItsRow) {
  const MixtureInputs in(weight_types()[2], {.rows = 5, .experts = 3, .slots = 2}, threads(),
                         memory_);
  const std::vector<float> before = mixed(backend(), in);
  in.weights.view.row<float>(1)[0] = kSpoilt;
  in.x.view.row<float>(3)[7] = kSpoilt;
  const std::vector<float> after = mixed(backend(), in);
  const auto n = static_cast<size_t>(in.out.view.size(1));
  for (size_t i = 0; i < after.size(); ++i) {
    const bool is_spoilt = i / n == 1 || i / n == 3;
    EXPECT_EQ(std::isnan(after[i]), is_spoilt) << i;
    if (!is_spoilt) {
      EXPECT_EQ(after[i], before[i]);
    }
  }
}

class RouteOp : public MixtureOp {
 protected:
  struct Choice {
    std::vector<int32_t> experts;
    std::vector<float> weights;
  };

  Choice route(Backend& backend, const std::vector<float>& logits, const RoutingParams& params,
               const std::vector<float>& bias = {}) {
    const int64_t rows = std::ssize(logits) / params.num_logits();
    OwnedTensor x = allocate_tensor(memory_, DType::f32, {rows, params.num_logits()});
    std::ranges::copy(logits, x.view.elements<float>());
    OwnedTensor added = allocate_tensor(memory_, DType::f32, {params.num_experts});
    std::ranges::copy(bias, added.view.elements<float>());
    const OwnedTensor experts = allocate_tensor(memory_, DType::i32, {rows, params.num_slots()});
    const OwnedTensor weights = allocate_tensor(memory_, DType::f32, {rows, params.num_slots()});
    backend.route(x.view, params, bias.empty() ? nullptr : &added.view,
                  {experts.view, weights.view});
    const auto* const first = experts.view.elements<int32_t>();
    return {{first, first + experts.view.num_elements()}, to_vector(weights.view)};
  }
};

TEST_P(RouteOp, ChoosesTheHighestScoresAndWritesThemInAscendingOrder) {
  const RoutingParams params = {.num_experts = 4, .experts_per_token = 2, .normalise = true};
  const Choice choice = route(backend(), {0.0f, 3.0f, -1.0f, 3.0f + std::log(3.0f)}, params);
  EXPECT_EQ(choice.experts, (std::vector<int32_t>{1, 3}));
  EXPECT_NEAR(choice.weights[0], 0.25f, 1e-6f);
  EXPECT_NEAR(choice.weights[1], 0.75f, 1e-6f);
}

TEST_P(RouteOp, PrefersTheLowerIndexOfEqualScores) {
  const RoutingParams params = {.num_experts = 6, .experts_per_token = 3};
  EXPECT_EQ(route(backend(), {1, 2, 1, 1, 2, 1}, params).experts, (std::vector<int32_t>{0, 1, 4}));
}

TEST_P(RouteOp, ABiasChangesTheChoiceAndNotTheWeights) {
  const RoutingParams params = {
      .num_experts = 3, .experts_per_token = 1, .score = ExpertScore::sigmoid, .scale = 2.0f};
  const Choice choice = route(backend(), {0.0f, 1.0f, 2.0f}, params, {5.0f, 0.0f, 0.0f});
  EXPECT_EQ(choice.experts, (std::vector<int32_t>{0}));
  EXPECT_NEAR(choice.weights[0], 1.0f, 1e-6f);
}

TEST_P(RouteOp, TakesExpertsOfTheBestGroupsAlone) {
  // The two highest of the groups add up to 8, 7 and 9; the highest of all is in the second.
  const RoutingParams params = {.num_experts = 9,
                                .experts_per_token = 2,
                                .score = ExpertScore::sigmoid,
                                .num_groups = 3,
                                .groups_kept = 1};
  const std::vector<float> bias = {4, 4, 0, 7, 0, 0, 5, 4, 0};
  EXPECT_EQ(route(backend(), std::vector<float>(9, -50.0f), params, bias).experts,
            (std::vector<int32_t>{6, 7}));
}

TEST_P(RouteOp, AddsTheSharedExpertWithItsGate) {
  RoutingParams params = {
      .num_experts = 2, .experts_per_token = 1, .scale = 3.0f, .shared = SharedExpert::gated};
  const Choice gated = route(backend(), {9.0f, 0.0f, std::log(3.0f)}, params);
  EXPECT_EQ(gated.experts, (std::vector<int32_t>{0, 2}));
  EXPECT_NEAR(gated.weights[1], 0.75f, 1e-6f);
  params.shared = SharedExpert::plain;
  EXPECT_EQ(route(backend(), {9.0f, 0.0f}, params).weights[1], 1.0f);
}

// With a jitter of 0.1, a logit near another one is at least four fifths of it.
TEST_P(RouteOp, SparseMixersWeighThoseNearTheHighestOfWhatIsLeft) {
  const RoutingParams params = {
      .num_experts = 4, .experts_per_token = 2, .score = ExpertScore::sparse_mixer, .jitter = 0.1f};
  const auto reference = make_reference_backend();
  for (Backend* const each : {&backend(), reference.get()}) {
    const Choice choice =
        route(*each, {1.7f, 2.0f, 1.5f, -9.0f, 0.0f, -1.0f, -1.1f, -2.0f}, params);
    EXPECT_EQ(choice.experts, (std::vector<int32_t>{0, 1, 0, 1}));
    EXPECT_NEAR(choice.weights[0], 1.0f / (1.0f + std::exp(-0.2f)), 1e-6f);
    EXPECT_NEAR(choice.weights[1], 1.0f / (1.0f + std::exp(-0.3f)), 1e-6f);
    EXPECT_NEAR(choice.weights[2], 1.0f, 1e-6f);
    EXPECT_NEAR(choice.weights[3], 1.0f / (1.0f + std::exp(-0.1f)), 1e-6f);
  }
}

TEST_P(RouteOp, SparseMixersAreTheReferences) {
  const RoutingParams params = {.num_experts = 16,
                                .experts_per_token = 2,
                                .score = ExpertScore::sparse_mixer,
                                .jitter = 0.3f};
  const std::vector<float> logits =
      to_vector(random_tensor(memory_, DType::f32, {300, 16}, 6, 3.0f).view);
  const Choice found = route(backend(), logits, params);
  const Choice expected = route(*make_reference_backend(), logits, params);
  EXPECT_EQ(found.experts, expected.experts);
  for (size_t i = 0; i < found.weights.size(); ++i) {
    EXPECT_NEAR(found.weights[i], expected.weights[i], 1e-6f);
  }
}

TEST_P(RouteOp, KeepsLogitsThatAreNotFiniteToTheirRow) {
  const RoutingParams params = {.num_experts = 3, .experts_per_token = 2};
  for (const float bad : {kSpoilt, std::numeric_limits<float>::infinity()}) {
    const Choice choice = route(backend(), {1, 2, 3, 1, bad, 3, 1, 2, 3}, params);
    EXPECT_EQ(choice.experts, (std::vector<int32_t>{1, 2, 0, 1, 1, 2}));
    for (const size_t i : {2, 3}) EXPECT_TRUE(std::isnan(choice.weights[i]));
    for (const size_t i : {0, 1, 4, 5}) EXPECT_TRUE(std::isfinite(choice.weights[i]));
  }
}

TEST_P(RouteOp, HasTheSameBitsForAnyRowsAndThreads) {
  const RoutingParams params = {.num_experts = 61, .experts_per_token = 7, .normalise = true};
  const int64_t rows = 400, width = 61;
  const OwnedTensor logits = random_tensor(memory_, DType::f32, {rows, width}, 5, 3.0f);
  const std::vector<float> all = to_vector(logits.view);
  const Choice expected = route(backend(), all, params);
  for (const auto& backend : backends()) {
    const Choice choice = route(*backend, all, params);
    EXPECT_EQ(choice.experts, expected.experts);
    EXPECT_SAME_BITS(choice.weights, expected.weights);
  }
  const Choice last = route(backend(), {all.end() - width, all.end()}, params);
  EXPECT_SAME_BITS(last.weights,
                   std::vector<float>(expected.weights.end() - 7, expected.weights.end()));
}

PL_TEST_EVERY_ISA(MixtureOp);
PL_TEST_EVERY_ISA(RouteOp);

}  // namespace
}  // namespace paceline
