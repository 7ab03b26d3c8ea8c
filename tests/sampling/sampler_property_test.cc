// Compares the sampler with NaiveSampler over random rows and options.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "sampling/draw.h"
#include "tests/sampling/naive_sampler.h"
#include "tests/sampling/sampler_fixture.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

class RandomCase {
 public:
  explicit RandomCase(uint64_t seed) : random_(seed) {
    make_row();
    make_options();
    make_history();
    make_mask();
  }

  std::vector<float> logits;
  SamplingOptions options;
  TokenHistory history;

 private:
  template <class T>
  T any_of(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }
  int32_t any_id() { return static_cast<int32_t>(random_() % logits.size()); }

  void make_row() {
    const size_t width = any_of<size_t>({1, 2, 3, 7, 63, 64, 65, 128, 300, 300, 1000, 5000});
    const float spread = any_of({0.0f, 0.01f, 0.3f, 1.0f, 3.0f, 10.0f, 300.0f});
    const int kind = static_cast<int>(random_() % 4);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    const float mean = any_of({0.0f, -50.0f, 20.0f});
    logits.resize(width);
    for (float& x : logits) {
      x = mean + spread * normal(random_);
      if (kind == 0) x = std::round(x);
    }
    if (kind == 1) {  // mostly impossible
      for (float& x : logits)
        if (random_() % 10 != 0) x = -kInf;
      logits[random_() % width] = 1.0f;
    }
    if (kind == 2) {  // peaked
      for (int i = 0; i < 4; ++i) logits[random_() % width] += 3.0f * spread;
    }
  }

  void make_options() {
    options.order = any_of({SamplerOrder::standard, SamplerOrder::mlx});
    options.temperature = any_of({1.0f, 1.0f, 0.7f, 2.0f, 0.1f, 1e-3f, 1e-6f, 1e-38f, 0.0f});
    options.top_k = any_of({0, 0, 1, 2, 5, 50, 200, 100000});
    options.top_p = any_of({1.0f, 1.0f, 0.9f, 0.5f, 0.25f, 0.95f, 1e-6f, 0.999f, 0.0f});
    options.min_p = any_of({0.0f, 0.0f, 0.05f, 0.3f, 1.0f, 1e-7f});
    options.repetition_penalty = any_of({1.0f, 1.0f, 1.2f, 0.8f});
    options.frequency_penalty = any_of({0.0f, 0.0f, 0.5f, -2.0f});
    options.presence_penalty = any_of({0.0f, 0.0f, 2.0f, -0.3f});
    options.seed = random_();
    if (random_() % 3 == 0) options.logit_bias = {{any_id(), any_of({-100.0f, 1.0f, 5.0f})}};
  }

  // At least one token remains allowed.
  void make_mask() {
    if (random_() % 4 != 0 || options.logit_bias.size() == 1) return;
    std::vector<int32_t> allowed;
    if (random_() % 2 == 0) {
      for (uint64_t i = random_() % 40; i > 0; --i) allowed.push_back(any_id());
    }
    const auto likeliest = std::max_element(logits.begin(), logits.end()) - logits.begin();
    if (!allowed.empty()) allowed.push_back(static_cast<int32_t>(likeliest));
    std::vector<std::vector<int32_t>> banned;
    for (uint64_t i = random_() % 5; i > 0; --i) {
      std::vector<int32_t> sequence;
      const auto output = history.output();
      if (!output.empty()) sequence.push_back(random_() % 3 == 0 ? any_id() : output.back());
      sequence.push_back(any_id());
      if (sequence.back() != likeliest) banned.push_back(std::move(sequence));
    }
    options.mask = std::make_shared<const TokenMask>(std::move(allowed), std::move(banned));
  }

  void make_history() {
    for (uint64_t i = random_() % 20; i > 0; --i) {
      const int32_t id = any_id();
      if (random_() % 2 == 0) history.add_prompt({&id, 1});
      history.add_output(any_id());
    }
  }

  std::mt19937_64 random_;
};

class SamplerPropertyTest : public SamplerFixture {};

TEST_F(SamplerPropertyTest, KeptTokensAndDrawsEqualThoseOfAFullSort) {
  const int num_cases = scaled(6000, 600'000);
  constexpr double kDecided = 1e-5;  // a margin beyond float rounding
  int num_compared = 0;
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(num_cases); ++seed) {
    const RandomCase c(seed);
    const NaiveChoice expected = NaiveSampler(c.logits, c.options, c.history).choose();
    if (expected.margin < kDecided) continue;

    Sampler s = sampler(c.logits.size());
    const WeighedTokens found = distribution(c.logits, c.options, c.history);
    ASSERT_EQ(found.status, SampleStatus::ok) << "seed " << seed;
    ASSERT_EQ(found.tokens.size(), expected.kept.size()) << "seed " << seed;
    for (size_t i = 0; i < found.tokens.size(); ++i) {
      ASSERT_EQ(found.tokens[i].id, expected.kept[i].id) << "seed " << seed;
      const double weight = expected.kept[i].weight * 0x1p43;
      ASSERT_NEAR(static_cast<double>(found.tokens[i].weight), weight, 0.51 + weight * 2e-5)
          << "seed " << seed;
    }
    ++num_compared;
    for (int64_t position = 0; position < 5; ++position) {
      NaiveChoice choice = expected;
      const int32_t id = NaiveSampler::draw(choice, draw_key(c.options.seed, position));
      if (choice.margin < 10 * kDecided) continue;
      ASSERT_EQ(s.draw({c.logits}, c.options, c.history, position).id, id)
          << "seed " << seed << ", position " << position;
    }
  }
  EXPECT_GT(num_compared, num_cases / 10 * 9);
}

TEST_F(SamplerPropertyTest, DrawsFromTheDistributionAreThoseFromTheRow) {
  const auto num_cases = static_cast<uint64_t>(scaled(2000, 200'000));
  Distribution distribution;  // filled again and again
  for (uint64_t seed = 0; seed < num_cases; ++seed) {
    const RandomCase c(seed);
    Sampler s = sampler(c.logits.size());
    ASSERT_EQ(s.distribution({c.logits}, c.options, c.history, distribution), SampleStatus::ok);
    ASSERT_TRUE(std::ranges::adjacent_find(distribution.ids, std::ranges::greater_equal()) ==
                distribution.ids.end())
        << seed;
    ASSERT_EQ(std::ranges::count(distribution.weights, uint64_t{0}), 0) << seed;
    ASSERT_EQ(
        std::accumulate(distribution.weights.begin(), distribution.weights.end(), uint64_t{0}),
        distribution.total);
    for (int64_t position = 0; position < 5; ++position) {
      ASSERT_EQ(s.draw({c.logits}, c.options, c.history, position).id,
                draw_from(distribution, draw_key(c.options.seed, position)))
          << "seed " << seed << ", position " << position;
    }
  }
}

TEST_F(SamplerPropertyTest, TopLogprobsEqualThoseOfAFullSort) {
  const auto num_cases = static_cast<uint64_t>(scaled(500, 50'000));
  for (uint64_t seed = 0; seed < num_cases; ++seed) {
    const RandomCase c(seed);
    double max = -std::numeric_limits<double>::infinity(), sum = 0;
    for (float x : c.logits) max = std::max(max, double{x});
    for (float x : c.logits) sum += std::exp(double{x} - max);
    std::vector<int32_t> order(c.logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return c.logits[static_cast<size_t>(a)] > c.logits[static_cast<size_t>(b)];
    });
    const auto top = sampler(c.logits.size()).score(with_sum(c.logits), 0, 20).top_logprobs;
    for (size_t i = 0; i < std::min<size_t>(20, order.size()); ++i) {
      const float logit = c.logits[static_cast<size_t>(order[i])];
      if (logit == -kInf) {
        ASSERT_EQ(top.size(), i) << "seed " << seed;
        break;
      }
      ASSERT_GT(top.size(), i) << "seed " << seed;
      ASSERT_EQ(top[i].id, order[i]) << "seed " << seed;
      const double expected = logit - max - std::log(sum);
      ASSERT_NEAR(top[i].logprob, expected,
                  1e-5 + std::abs(max) * 2e-7 + std::abs(expected) * 2e-7);
    }
  }
}

}  // namespace
}  // namespace paceline
