// The frequencies of drawn tokens, and what a draw depends on.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "sampling/draw.h"
#include "tests/sampling/chi_square.h"
#include "tests/sampling/sampler_fixture.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

// The seed and the position of draw i.
using Key = std::pair<uint64_t, int64_t>;
using Keys = std::function<Key(int64_t)>;

Key over_seeds(int64_t i) { return {static_cast<uint64_t>(i), 17}; }
Key over_positions(int64_t i) { return {12345, i}; }
// Choice k of a request is the request with seed + k.
Key over_choices(int64_t i) { return {static_cast<uint64_t>(i % 200), i / 200}; }

int64_t num_draws() { return scaled(600'000, 20'000'000); }

std::vector<double> shares_of(const Distribution& distribution) {
  std::vector<double> shares;
  for (const uint64_t weight : distribution.weights) shares.push_back(static_cast<double>(weight));
  return shares;
}

size_t index_of(const Distribution& distribution, int32_t id) {
  const auto found = std::ranges::lower_bound(distribution.ids, id);
  return static_cast<size_t>(found - distribution.ids.begin());
}

size_t draw_index(const Distribution& distribution, const Key& key) {
  return index_of(distribution, draw_from(distribution, draw_key(key.first, key.second)));
}

double misfit_of_draws(const Distribution& distribution, const Keys& keys) {
  std::vector<int64_t> counts(distribution.ids.size());
  const int64_t count = num_draws();
  for (int64_t i = 0; i < count; ++i) ++counts[draw_index(distribution, keys(i))];
  return misfit(counts, shares_of(distribution));
}

// Of pairs of draws, whose keys are keys(i) and the next one's.
double misfit_of_pairs(const Distribution& distribution, const Keys& keys) {
  const size_t size = distribution.ids.size();
  std::vector<double> weights;
  for (const double first : shares_of(distribution)) {
    for (const double second : shares_of(distribution)) weights.push_back(first * second);
  }
  std::vector<int64_t> counts(size * size);
  const int64_t count = num_draws() / 2;
  for (int64_t i = 0; i < count; ++i) {
    const size_t first = draw_index(distribution, keys(2 * i));
    ++counts[first * size + draw_index(distribution, keys(2 * i + 1))];
  }
  return misfit(counts, weights);
}

class DrawTest : public SamplerFixture {
 protected:
  Distribution made(const std::vector<float>& logits, const SamplingOptions& options = {}) {
    Distribution distribution;
    sampler(logits.size()).distribution({logits}, options, {}, distribution);
    return distribution;
  }
};

const std::vector<float> kEightLogits = {0.0f, 1.0f, 2.0f, 0.5f, -1.0f, 1.5f, 0.1f, -0.5f};

std::vector<float> skewed_logits(size_t size) {
  std::vector<float> logits(size);
  for (size_t i = 0; i < size; ++i) logits[i] = 4.0f * std::sin(static_cast<float>(i * i));
  return logits;
}

TEST_F(DrawTest, FrequenciesFollowTheProbabilitiesOverSeedsPositionsAndChoices) {
  for (float temperature : {0.5f, 1.0f, 2.0f}) {
    const Distribution eight =
        made(kEightLogits, options_with(&SamplingOptions::temperature, temperature));
    EXPECT_LT(misfit_of_draws(eight, over_seeds), 1) << temperature;
    EXPECT_LT(misfit_of_draws(eight, over_positions), 1) << temperature;
    EXPECT_LT(misfit_of_draws(eight, over_choices), 1) << temperature;
  }
  for (size_t size : {2, 3, 16}) {
    EXPECT_LT(misfit_of_draws(made(skewed_logits(size)), over_seeds), 1) << size;
    EXPECT_LT(misfit_of_draws(made(std::vector<float>(size, 1.0f)), over_positions), 1) << size;
  }
}

TEST_F(DrawTest, FrequenciesFollowTheProbabilitiesOverASkewedVocabulary) {
  const Distribution skewed = made(skewed_logits(1000));
  EXPECT_LT(misfit_of_draws(skewed, over_seeds), 1);
  EXPECT_LT(misfit_of_draws(skewed, over_positions), 1);
}

TEST_F(DrawTest, NeighbouringPositionsAndSeedsAreIndependent) {
  const auto next_seed = [](int64_t i) { return Key(static_cast<uint64_t>(i % 2), i / 2); };
  const auto next_of_any_seed = [](int64_t i) { return Key(static_cast<uint64_t>(i), 3); };
  const auto next_position_of_any_seed = [](int64_t i) {
    return Key(static_cast<uint64_t>(i / 2), 3 + i % 2);
  };
  for (const Distribution& distribution :
       {made(skewed_logits(16)), made(std::vector<float>(5, 0.0f))}) {
    EXPECT_LT(misfit_of_pairs(distribution, over_positions), 1);
    EXPECT_LT(misfit_of_pairs(distribution, next_seed), 1);
    EXPECT_LT(misfit_of_pairs(distribution, next_of_any_seed), 1);
    EXPECT_LT(misfit_of_pairs(distribution, next_position_of_any_seed), 1);
  }
}

TEST_F(DrawTest, AWholeRowIsDrawnFromByItsProbabilities) {
  const std::vector<float> logits = skewed_logits(300);
  SamplingOptions cut;
  cut.top_p = 0.8f;
  cut.top_k = 100;
  for (const SamplingOptions& options : {SamplingOptions(), cut}) {
    const Distribution distribution = made(logits, options);
    Sampler s = sampler(logits.size());
    std::vector<int64_t> counts(distribution.ids.size());
    const int64_t count = num_draws() / 5;
    for (int64_t position = 0; position < count; ++position) {
      ++counts[index_of(distribution, s.draw({logits}, options, {}, position).id)];
    }
    EXPECT_LT(misfit(counts, shares_of(distribution)), 1);
  }
}

TEST_F(DrawTest, AWrongDistributionWouldBeNoticed) {
  std::vector<float> shifted = kEightLogits;
  shifted[3] += 0.04f;  // 4 % more of one token
  const Distribution drawn = made(shifted);
  std::vector<int64_t> counts(8);
  for (int64_t i = 0; i < 600'000; ++i) ++counts[draw_index(drawn, over_positions(i))];
  EXPECT_LT(misfit(counts, shares_of(drawn)), 1);
  EXPECT_GT(misfit(counts, shares_of(made(kEightLogits))), 1);
}

TEST_F(DrawTest, DistributionsMostlyAgreeOnTheTokenOfAKey) {
  // At least (1 - d) / (1 + d) of the draws are equal, whatever lies between the common tokens.
  std::vector<float> other = kEightLogits;
  other[0] += 0.4f;
  other[5] -= 0.3f;
  const Distribution p = made(kEightLogits), q = made(other);
  double common = 0;
  for (size_t i = 0; i < 8; ++i) {
    common += std::min(static_cast<double>(p.weights[i]) / static_cast<double>(p.total),
                       static_cast<double>(q.weights[i]) / static_cast<double>(q.total));
  }
  int64_t num_equal = 0;
  const int64_t count = num_draws();
  for (int64_t i = 0; i < count; ++i) {
    num_equal += draw_index(p, over_positions(i)) == draw_index(q, over_positions(i)) ? 1 : 0;
  }
  const double share = static_cast<double>(num_equal) / static_cast<double>(count);
  EXPECT_GT(share, common / (2 - common) - 0.005);
  EXPECT_LT(share, common + 0.005);
}

TEST_F(DrawTest, TheSameSeedAndPositionGiveTheSameTokenWhateverCameBefore) {
  std::vector<float> logits(500), other(500);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = std::sin(static_cast<float>(3 * i * i));
    other[i] = 20.0f * std::cos(static_cast<float>(i));
  }
  std::vector<SamplingOptions> variants(4);
  variants[1].top_k = 40;
  variants[2].top_p = 0.7f;
  variants[3].temperature = 0.6f;
  variants[3].order = SamplerOrder::mlx;
  variants[3].min_p = 0.1f;
  for (const SamplingNumber& number : kSamplingNumbers) {
    const auto* member = std::get_if<float SamplingNumbers::*>(&number.member);
    if (member == nullptr) continue;
    variants.emplace_back().*(*member) =
        static_cast<float>((number.range.min + std::min(number.range.max, 2.0)) / 2);
  }
  Sampler busy = sampler(500);
  for (SamplingOptions options : variants) {
    options.seed = 99;
    for (int64_t position : {0, 1, 7, 100000}) {
      Sampler fresh = sampler(500);
      const int32_t id = fresh.draw({logits}, options, {}, position).id;
      TokenHistory history;
      history.add_output(3);
      SamplingOptions noise = options;
      noise.repetition_penalty = 1.7f;
      noise.seed = static_cast<uint64_t>(position);
      busy.draw(with_sum(other), noise, history, position + 1);
      busy.score(with_sum(other), 4, 20);
      busy.draw(with_sum(std::vector<float>(500, kNan)), noise, history, 0);
      EXPECT_EQ(busy.draw(with_sum(logits), options, {}, position).id, id);
      EXPECT_EQ(busy.draw({logits}, options, {}, position).id, id);
    }
  }
}

TEST_F(DrawTest, AnotherSeedOrPositionIsAnotherNumber) {
  const std::vector<float> logits(4096, 0.0f);
  SamplingOptions options;
  Sampler s = sampler(4096);
  int num_equal = 0;
  for (int i = 0; i < 100; ++i) {
    options.seed = static_cast<uint64_t>(i);
    const int32_t id = s.draw({logits}, options, {}, 5).id;
    num_equal += s.draw({logits}, options, {}, 6).id == id ? 1 : 0;
    options.seed += 1;
    num_equal += s.draw({logits}, options, {}, 5).id == id ? 1 : 0;
  }
  EXPECT_LE(num_equal, 2);
}

}  // namespace
}  // namespace paceline
