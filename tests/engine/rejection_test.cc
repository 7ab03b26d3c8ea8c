// Speculative sampling in the engine: the outputs of many seeds follow the model's distribution.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "sampling/sampler.h"
#include "tests/engine/engine_fixture.h"
#include "tests/engine/script_drafter.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

constexpr int64_t kChoices = 5;  // tokens 0 to 4; the others are far less likely than any draw

// Two models that agree about half of the time.
template <int Kind>
void weigh(int32_t token, int32_t position, std::span<float> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto mixed =
        (static_cast<uint32_t>(token) * 7919u + static_cast<uint32_t>(position)) * 31u +
        static_cast<uint32_t>(i) * (Kind == 0 ? 17u : 23u);
    logits[i] = static_cast<int64_t>(i) < kChoices ? static_cast<float>(mixed % 5) * 0.6f : -60.0f;
  }
}

class RejectionTest : public EngineTest {
 protected:
  RejectionTest()
      : EngineTest(weigh<0>), drafter_(kVocab, weigh<1>, [](int64_t) { return false; }) {}

  void speculating() {
    Shape shape;
    shape.limits = {.max_model_len = 64, .max_batched_tokens = 64};
    shape.limits.speculation = {.num_tokens = 3, .accept = SpecAccept::rejection, .adapts = false};
    shape.drafter = &drafter_;
    engine(shape);
  }
  GenerateRequest request(uint64_t seed) const {
    GenerateRequest request{.prompt = {3, 1}, .max_tokens = 6};
    request.sampling = sampling_;
    request.sampling.seed = seed;
    return request;
  }
  // The probability of each token after `tokens`.
  Distribution distribution(const std::vector<TokenId>& tokens) {
    Sampler sampler(memory_, kVocab);
    std::vector<float> row(kVocab);
    weigh<0>(tokens.back(), static_cast<int32_t>(tokens.size()) - 1, row);
    TokenHistory history;
    history.add_prompt(std::span(tokens).first(2));
    for (const TokenId id : std::span(tokens).subspan(2)) history.add_output(id);
    Distribution found;
    EXPECT_EQ(sampler.distribution({.logits = row}, sampling_, history, found), SampleStatus::ok);
    return found;
  }
  double probability(const std::vector<TokenId>& tokens, TokenId next) {
    const Distribution all = distribution(tokens);
    for (size_t i = 0; i < all.ids.size(); ++i) {
      if (all.ids[i] == next) {
        return static_cast<double>(all.weights[i]) / static_cast<double>(all.total);
      }
    }
    return 0.0;
  }

  ScriptDrafter drafter_;
  SamplingOptions sampling_;
};

// Chi-square of the second and third token together: both come from a drafted slice.
TEST_F(RejectionTest, PairsOfTokensFollowTheModelsDistribution) {
  sampling_.presence_penalty = 0.5f;
  sampling_.temperature = 1.2f;
  speculating();
  const int count = scaled(20000, 400000);
  std::map<std::array<TokenId, 3>, int> found;
  for (int seed = 0; seed < count; ++seed) {
    const RequestId id = submit(request(static_cast<uint64_t>(seed)));
    run_all();
    const auto& tokens = answer(id).tokens;
    ASSERT_EQ(tokens.size(), 6);
    ++found[{tokens[0], tokens[1], tokens[2]}];
    answers_.clear();
  }
  const SpeculationCounters& counters = engine_->counters().speculation;
  EXPECT_GT(counters.accepted_tokens, counters.drafted_tokens / 5);
  EXPECT_LT(counters.accepted_tokens, counters.drafted_tokens * 4 / 5);
  double chi_square = 0.0;
  int num_cells = 0;
  for (TokenId a = 0; a < kChoices; ++a) {
    for (TokenId b = 0; b < kChoices; ++b) {
      for (TokenId c = 0; c < kChoices; ++c) {
        const double expected = count * probability({3, 1}, a) * probability({3, 1, a}, b) *
                                probability({3, 1, a, b}, c);
        if (expected < 5) continue;
        const double difference = found[{a, b, c}] - expected;
        chi_square += difference * difference / expected;
        ++num_cells;
      }
    }
  }
  ASSERT_GT(num_cells, 60);
  // Mean num_cells, deviation sqrt(2 num_cells): five deviations.
  EXPECT_LT(chi_square, num_cells + 5 * std::sqrt(2.0 * num_cells));
}

TEST_F(RejectionTest, AtTemperatureZeroItIsPlainDecoding) {
  sampling_.temperature = 0;
  engine({.limits = {.max_model_len = 64, .max_batched_tokens = 64}});
  GenerateRequest long_request = request(1);
  long_request.max_tokens = 40;
  const std::vector<TokenId> plain = run(long_request).tokens;
  speculating();
  EXPECT_EQ(run(long_request).tokens, plain);
  EXPECT_GT(engine_->counters().speculation.accepted_tokens, 0);
}

TEST_F(RejectionTest, LogprobsAreThoseOfTheRow) {
  speculating();
  GenerateRequest asked = request(5);
  asked.max_tokens = 10;
  asked.want_logprobs = true;
  const RequestId id = submit(asked);
  run_all();
  const Answer& found = answer(id);
  std::vector<TokenId> tokens = asked.prompt;
  for (size_t i = 0; i < found.tokens.size(); ++i) {
    EXPECT_NEAR(std::exp(found.logprobs[i]), probability(tokens, found.tokens[i]), 1e-4);
    tokens.push_back(found.tokens[i]);
  }
}

}  // namespace
}  // namespace paceline::testing
