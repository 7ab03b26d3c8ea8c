// Whatever the drafter, tokens must follow the model's distribution.
#include "spec/rejection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sampling/sampler.h"
#include "tensor/memory.h"
#include "tests/sampling/chi_square.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

Distribution of(std::vector<int32_t> ids, std::vector<uint64_t> weights) {
  Distribution made{.ids = std::move(ids), .weights = std::move(weights)};
  for (const uint64_t weight : made.weights) made.total += weight;
  return made;
}

double share(const Distribution& distribution, int32_t id) {
  for (size_t i = 0; i < distribution.ids.size(); ++i) {
    if (distribution.ids[i] != id) continue;
    return static_cast<double>(distribution.weights[i]) / static_cast<double>(distribution.total);
  }
  return 0;
}

// By id, up to `size`.
std::vector<double> shares(const Distribution& distribution, int32_t size) {
  std::vector<double> all;
  for (int32_t id = 0; id < size; ++id) all.push_back(share(distribution, id));
  return all;
}

double common_share(const Distribution& p, const Distribution& q) {
  double sum = 0;
  for (const int32_t id : p.ids) sum += std::min(share(p, id), share(q, id));
  return sum;
}

int64_t num_draws() { return scaled(400'000, 20'000'000); }

constexpr uint64_t kSeed = 9;

TEST(Rejection, RejectionFallsBackToATargetToken) {
  const Distribution p = of({2, 5, 7}, {1, 1, 2});
  for (int64_t position = 0; position < 1000; ++position) {
    // The model can't draw what was drafted, from a drafter of its own ids or of none of them.
    for (const int32_t drafted : {0, 3, 9}) {
      const Distribution q = of({drafted}, {5});
      for (const Distribution* from : {&q, static_cast<const Distribution*>(nullptr)}) {
        const RejectionOutcome outcome = accept_or_resample(p, from, drafted, kSeed, position);
        ASSERT_FALSE(outcome.accepted);
        ASSERT_GT(share(p, outcome.token), 0) << outcome.token;
      }
    }
    // A rejected token isn't drawn again: it has no more weight in the model than in the drafter.
    const RejectionOutcome outcome = accept_or_resample(p, nullptr, 7, kSeed, position);
    ASSERT_EQ(outcome.accepted, outcome.token == 7);
    ASSERT_GT(share(p, outcome.token), 0) << outcome.token;
  }
}

TEST(Rejection, ATokenOfDraftProbabilityZeroIsAccepted) {
  const Distribution p = of({1, 4}, {1, uint64_t{1} << 43});
  const Distribution q = of({0, 4}, {3, 7});
  for (int64_t position = 0; position < 1000; ++position) {
    const RejectionOutcome outcome = accept_or_resample(p, &q, 1, kSeed, position);
    ASSERT_TRUE(outcome.accepted);
    ASSERT_EQ(outcome.token, 1);
    EXPECT_FALSE(accept_or_resample(p, &q, 2, kSeed, position).accepted)
        << "of probability 0 in both";
  }
}

TEST(Rejection, EqualDistributionsAcceptEveryToken) {
  const Distribution p = of({0, 3, 8}, {5, 1, 7}), q = of({0, 3, 8}, {10, 2, 14});
  const Distribution certain = of({3}, {uint64_t{1} << 43});
  for (int64_t position = 0; position < 1000; ++position) {
    for (const int32_t id : p.ids) {
      ASSERT_TRUE(accept_or_resample(p, &q, id, kSeed, position).accepted);
    }
    ASSERT_TRUE(accept_or_resample(certain, nullptr, 3, kSeed, position).accepted);
    ASSERT_TRUE(accept_or_resample(certain, &certain, 3, kSeed, position).accepted);
  }
}

TEST(Rejection, WithoutAResidualTheTokenIsTheModels) {
  const Distribution p = of({0, 3}, {1, 1});
  int64_t num_first = 0;
  for (int64_t position = 0; position < 1000; ++position) {
    const RejectionOutcome outcome = accept_or_resample(p, &p, 2, kSeed, position);
    ASSERT_FALSE(outcome.accepted);
    ASSERT_GT(share(p, outcome.token), 0);
    num_first += outcome.token == 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(num_first), 500, 80);
}

TEST(Rejection, AnEmptyDistributionIsThatOfACertainDrafter) {
  const Distribution p = of({0, 3, 4}, {1, 2, 1});
  const Distribution empty;
  for (int64_t position = 0; position < 1000; ++position) {
    const RejectionOutcome outcome = accept_or_resample(p, &empty, 3, kSeed, position);
    const RejectionOutcome certain = accept_or_resample(p, nullptr, 3, kSeed, position);
    ASSERT_EQ(outcome.accepted, certain.accepted);
    ASSERT_EQ(outcome.token, certain.token);
  }
}

TEST(Rejection, LargeWeightsAreComparedExactly) {
  // p(0) / q(0) is 1 - 2^-60 and 2^-60: accepted practically always and never.
  const uint64_t large = uint64_t{1} << 62;
  const Distribution p = of({0, 1}, {large - 4, 4}), q = of({0, 1}, {large, 0});
  const Distribution mostly_other = of({0, 1}, {4, large - 4});
  for (int64_t position = 0; position < 1000; ++position) {
    ASSERT_TRUE(accept_or_resample(p, &q, 0, kSeed, position).accepted);
    ASSERT_EQ(accept_or_resample(mostly_other, &q, 0, kSeed, position).token, 1);
  }
}

TEST(Rejection, OutcomesDependOnTheirArgumentsAlone) {
  const Distribution p = of({0, 1, 2, 3}, {4, 3, 2, 1}), q = of({0, 1, 2, 3}, {1, 2, 3, 4});
  std::vector<int32_t> forward, backward;
  for (int64_t position = 0; position < 200; ++position) {
    forward.push_back(accept_or_resample(p, &q, 3, kSeed, position).token);
  }
  for (int64_t position = 199; position >= 0; --position) {
    accept_or_resample(q, nullptr, 0, kSeed + 1, position);
    backward.push_back(accept_or_resample(p, &q, 3, kSeed, position).token);
  }
  std::ranges::reverse(backward);
  EXPECT_EQ(forward, backward);
  int num_different = 0;
  for (int64_t position = 0; position < 200; ++position) {
    const int32_t other = accept_or_resample(p, &q, 3, kSeed + 1, position).token;
    num_different += other != forward[static_cast<size_t>(position)] ? 1 : 0;
  }
  EXPECT_GT(num_different, 50);
}

// The model's and the drafter's distributions, as the sampler makes them from rows of their own.
struct Pair {
  std::string name;
  Distribution p, q;
};

std::vector<Pair> make_pairs() {
  std::vector<std::pair<std::string, SamplingOptions>> variants(6);
  variants[0] = {"temperature", {{.temperature = 0.6f}}};
  variants[1] = {"top-k", {{.top_k = 4}}};
  variants[2] = {"top-p", {{.top_p = 0.8f}}};
  variants[3] = {"min-p", {{.temperature = 1.5f, .min_p = 0.2f}}};
  variants[4] = {"penalties", {{.repetition_penalty = 1.7f, .presence_penalty = 0.6f}}};
  variants[5] = {"all", {{.temperature = 0.8f, .top_k = 9, .top_p = 0.9f, .min_p = 0.02f}}};
  Memory memory;
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal(0.0f, 1.5f);
  std::vector<Pair> pairs;
  for (const auto& [name, options] : variants) {
    const size_t size = pairs.size() % 2 == 0 ? 16 : 11;
    std::vector<float> row(size), other(size);
    for (size_t i = 0; i < size; ++i) {
      row[i] = normal(random);
      other[i] = row[i] + normal(random) / 2;
    }
    TokenHistory history;
    history.add_prompt(std::vector<int32_t>{1, 4});
    for (const int32_t id : {2, 4, 2, 7}) history.add_output(id);
    Sampler sampler(memory, static_cast<int64_t>(size));
    Pair pair{.name = name};
    EXPECT_EQ(sampler.distribution({row}, options, history, pair.p), SampleStatus::ok);
    EXPECT_EQ(sampler.distribution({other}, options, history, pair.q), SampleStatus::ok);
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

// A drafter's token for a position; drafters that draw use the model's key, as the engine's do.
using Drafted = std::function<int32_t(int64_t)>;

// Over single tokens, and over pairs of neighbouring positions; both in one run.
void expect_tokens_of_the_model(const Pair& pair, const Distribution* q, const Drafted& drafted) {
  const int32_t size = pair.p.ids.back() + 1;
  const std::vector<double> expected = shares(pair.p, size);
  std::vector<double> expected_pairs;
  for (const double a : expected) {
    for (const double b : expected) expected_pairs.push_back(a * b);
  }
  std::vector<int64_t> counts(expected.size()), pair_counts(expected_pairs.size());
  size_t previous = 0;
  const int64_t count = num_draws();
  for (int64_t position = 0; position < count; ++position) {
    const int32_t token = accept_or_resample(pair.p, q, drafted(position), kSeed, position).token;
    ASSERT_GT(share(pair.p, token), 0) << pair.name << ", position " << position;
    const auto index = static_cast<size_t>(token);
    ++counts[index];
    if (position % 2 == 1) ++pair_counts[previous * expected.size() + index];
    previous = index;
  }
  EXPECT_LT(misfit(counts, expected), 1) << pair.name;
  EXPECT_LT(misfit(pair_counts, expected_pairs), 1) << pair.name;
}

TEST(RejectionDistribution, TokensFollowTheModelWhenADrafterDraws) {
  for (const Pair& pair : make_pairs()) {
    const auto draw = [&](int64_t position) { return draw_bonus(pair.q, kSeed, position); };
    expect_tokens_of_the_model(pair, &pair.q, draw);
  }
}

TEST(RejectionDistribution, TokensFollowTheModelWhenADrafterIsCertain) {
  const std::vector<Pair> pairs = make_pairs();
  const auto& weights = pairs[0].p.weights;
  const auto largest = static_cast<size_t>(std::ranges::max_element(weights) - weights.begin());
  const int32_t likeliest = pairs[0].p.ids[largest];
  expect_tokens_of_the_model(pairs[0], nullptr, [&](int64_t) { return likeliest; });
  expect_tokens_of_the_model(pairs[4], nullptr,
                             [](int64_t position) { return static_cast<int32_t>(position % 16); });
}

TEST(RejectionDistribution, AsManyTokensAreAcceptedAsTheDistributionsHaveInCommon) {
  for (const Pair& pair : make_pairs()) {
    int64_t num_accepted = 0;
    const int64_t count = num_draws() / 5;
    for (int64_t i = 0; i < count; ++i) {
      const int32_t drafted = draw_bonus(pair.q, kSeed, i);
      num_accepted += accept_or_resample(pair.p, &pair.q, drafted, kSeed, i).accepted ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(num_accepted) / static_cast<double>(count),
                common_share(pair.p, pair.q), 0.006)
        << pair.name;
  }
}

TEST(RejectionDistribution, AWrongModelWouldBeNoticed) {
  Pair pair = make_pairs()[0];
  const Distribution drawn = pair.p;
  const std::vector<double> expected = shares(drawn, 16);
  uint64_t& largest = *std::ranges::max_element(pair.p.weights);
  pair.p.total += largest / 20;
  largest += largest / 20;
  const std::vector<double> wrong = shares(pair.p, 16);
  std::vector<int64_t> counts(16);
  for (int64_t i = 0; i < 1'000'000; ++i) {
    const int32_t drafted = draw_bonus(pair.q, kSeed, i);
    ++counts[static_cast<size_t>(accept_or_resample(drawn, &pair.q, drafted, kSeed, i).token)];
  }
  EXPECT_LT(misfit(counts, expected), 1);
  EXPECT_GT(misfit(counts, wrong), 1);
}

// A model and a drafter whose distributions depend on the token before.
struct Chain {
  static constexpr size_t kSize = 5;
  std::vector<Distribution> model, drafter;

  Chain() {
    Memory memory;
    std::mt19937_64 random(8);
    std::normal_distribution<float> normal(0.0f, 1.0f);
    Sampler sampler(memory, kSize);
    model.resize(kSize);
    drafter.resize(kSize);
    for (size_t previous = 0; previous < kSize; ++previous) {
      std::vector<float> row(kSize), other(kSize);
      for (size_t i = 0; i < kSize; ++i) {
        row[i] = normal(random);
        other[i] = row[i] + normal(random);
      }
      sampler.distribution({row}, {}, {}, model[previous]);
      sampler.distribution({other}, {{.top_k = 4}}, {}, drafter[previous]);
    }
  }

  // Drafts `depth` tokens, verifies them, and goes on after the first that is replaced, or after
  // the bonus token.
  void round(std::vector<int32_t>& tokens, int64_t depth) const {
    std::vector<int32_t> drafted = {tokens.back()};
    const auto first = std::ssize(tokens);
    for (int64_t i = 0; i < depth; ++i) {
      const Distribution& q = drafter[static_cast<size_t>(drafted.back())];
      drafted.push_back(draw_bonus(q, kSeed, first + i));
    }
    for (int64_t i = 0; i < depth; ++i) {
      const auto previous = static_cast<size_t>(tokens.back());
      const RejectionOutcome outcome =
          accept_or_resample(model[previous], &drafter[previous],
                             drafted[static_cast<size_t>(i) + 1], kSeed, first + i);
      tokens.push_back(outcome.token);
      if (!outcome.accepted) return;
    }
    tokens.push_back(draw_bonus(model[static_cast<size_t>(tokens.back())], kSeed, first + depth));
  }
};

TEST(RejectionDistribution, TransitionsOfALongOutputFollowTheModel) {
  const Chain chain;
  std::vector<int32_t> tokens = {0};
  const int64_t count = num_draws();
  for (int64_t round = 0; std::ssize(tokens) < count; ++round) chain.round(tokens, 1 + round % 4);
  // By the token before, and by the last but one: it mustn't matter.
  std::vector<std::vector<int64_t>> counts(Chain::kSize * Chain::kSize,
                                           std::vector<int64_t>(Chain::kSize));
  for (size_t i = 2; i < tokens.size(); ++i) {
    const auto before = static_cast<size_t>(tokens[i - 2]) * Chain::kSize;
    ++counts[before + static_cast<size_t>(tokens[i - 1])][static_cast<size_t>(tokens[i])];
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    EXPECT_LT(misfit(counts[i], shares(chain.model[i % Chain::kSize], Chain::kSize)), 1) << i;
  }
}

TEST(RejectionDistribution, WithoutADraftTheTokenIsTheSamplers) {
  Memory memory;
  Sampler sampler(memory, 16);
  std::vector<float> row(16);
  for (size_t i = 0; i < row.size(); ++i) row[i] = std::sin(static_cast<float>(i * i));
  SamplingOptions options{{.temperature = 1.3f, .top_k = 12, .seed = 77}};
  Distribution p;
  sampler.distribution({row}, options, {}, p);
  for (int64_t position = 0; position < 1000; ++position) {
    ASSERT_EQ(draw_bonus(p, 77, position), sampler.draw({row}, options, {}, position).id);
  }
}

}  // namespace
}  // namespace paceline
