#include "train/route_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "kernels/backend.h"

namespace paceline {
namespace {

constexpr int64_t kRows = 40;

// Random numbers in [-1, 1).
std::vector<float> draws(uint64_t seed, int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(2 * uniform_draw(seed, static_cast<uint64_t>(i)) - 1));
  }
  return values;
}

// Of rows of logits: each row's experts, and the sum of their weights times `dweights`.
struct Routed {
  std::vector<int32_t> experts;
  std::vector<double> sums;
};

Routed route(const RoutingParams& params, std::vector<float> logits,
             const std::vector<double>& dweights) {
  const auto backend = make_reference_backend();
  Memory memory;
  const OwnedTensor experts = allocate_tensor(memory, DType::i32, {kRows, params.num_slots()});
  const OwnedTensor weights = allocate_tensor(memory, DType::f32, {kRows, params.num_slots()});
  backend->route(Tensor(logits.data(), DType::f32, {kRows, params.num_logits()}), params, nullptr,
                 {.experts = experts.view, .weights = weights.view});
  Routed routed;
  const int64_t slots = kRows * params.num_slots();
  routed.experts.assign(experts.view.elements<int32_t>(), experts.view.elements<int32_t>() + slots);
  routed.sums.resize(kRows);
  for (int64_t i = 0; i < slots; ++i) {
    routed.sums[static_cast<size_t>(i / params.num_slots())] +=
        double{weights.view.elements<float>()[i]} *
        dweights[static_cast<size_t>(i % params.num_slots())];
  }
  return routed;
}

class RouteGradient : public ::testing::TestWithParam<RoutingParams> {};

// Against central differences of route, in the direction of each logit; rows whose choice changes
// are left out.
TEST_P(RouteGradient, IsTheSlopeOfTheWeights) {
  const RoutingParams& params = GetParam();
  const int64_t width = params.num_logits();
  const std::vector<float> logits = draws(1, kRows * width);
  std::vector<double> dweights;
  for (const float draw : draws(2, params.num_slots())) dweights.push_back(double{draw});
  const Routed here = route(params, logits, dweights);
  int64_t num_compared = 0;
  for (int64_t logit = 0; logit < width; ++logit) {
    constexpr float kStep = 0.01f;
    std::vector<float> above = logits, below = logits;
    for (int64_t row = 0; row < kRows; ++row) {
      above[static_cast<size_t>(row * width + logit)] += kStep;
      below[static_cast<size_t>(row * width + logit)] -= kStep;
    }
    const Routed high = route(params, above, dweights), low = route(params, below, dweights);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto slots = static_cast<size_t>(params.num_slots());
      const auto chosen = [&](const Routed& routed) {
        return std::span(routed.experts).subspan(static_cast<size_t>(row) * slots, slots);
      };
      if (!std::ranges::equal(chosen(high), chosen(here)) ||
          !std::ranges::equal(chosen(low), chosen(here))) {
        continue;
      }
      std::vector<float> gradient(static_cast<size_t>(width));
      route_gradient(params,
                     std::span(logits).subspan(static_cast<size_t>(row * width), gradient.size()),
                     chosen(here), dweights, gradient);
      const auto at = static_cast<size_t>(row);
      const double slope = (high.sums[at] - low.sums[at]) / (2 * double{kStep});
      EXPECT_NEAR(gradient[static_cast<size_t>(logit)], slope, 2e-4) << row << ", " << logit;
      ++num_compared;
    }
  }
  EXPECT_GT(num_compared, kRows * width / 2);
}

INSTANTIATE_TEST_SUITE_P(
    all, RouteGradient,
    ::testing::Values(
        RoutingParams{.num_experts = 6, .experts_per_token = 2},
        RoutingParams{.num_experts = 5, .experts_per_token = 3, .normalise = true},
        RoutingParams{.num_experts = 4, .experts_per_token = 1, .normalise = true},
        RoutingParams{.num_experts = 8,
                      .experts_per_token = 3,
                      .score = ExpertScore::sigmoid,
                      .normalise = true,
                      .scale = 2.5f,
                      .num_groups = 4,
                      .groups_kept = 2,
                      .shared = SharedExpert::plain},
        RoutingParams{.num_experts = 6, .experts_per_token = 2, .score = ExpertScore::sigmoid},
        RoutingParams{.num_experts = 6, .experts_per_token = 2, .shared = SharedExpert::gated}));

}  // namespace
}  // namespace paceline
