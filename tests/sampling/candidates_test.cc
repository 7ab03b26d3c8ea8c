// Cuts by share, in exact arithmetic: a share between two units of weight is rounded up.
#include "sampling/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "sampling/truncation.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Whether part >= fraction * whole, without rounding; both are below 2^52.
bool reaches(uint64_t part, float fraction, uint64_t whole) {
  int exponent = 0;
  const auto digits = static_cast<uint64_t>(std::ldexp(std::frexp(fraction, &exponent), 24));
  using Wide = unsigned __int128;
  const int shift = 24 - exponent;  // fraction = digits / 2^shift
  if (shift > 70) return part > 0 || digits == 0;
  return (Wide{part} << shift) >= Wide{digits} * whole;
}

// A row whose likeliest element weighs about `most` units, so that single units matter.
class LightRow {
 public:
  LightRow(std::mt19937_64& random, double most)
      : logits_(2 + random() % 200),
        row_(static_cast<int64_t>(logits_.size())),
        candidates_(memory_, static_cast<int64_t>(logits_.size())) {
    std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
    for (float& x : logits_) x = -4.0f * uniform(random);
    row_.scan(logits_);
    candidates_.collect(row_, kLowest);
    candidates_.weigh(Weigher(static_cast<float>(std::log(kWeightOne / most)), 1.0f));
    for (size_t i = 0; i < logits_.size(); ++i) {
      order_.push_back({.key = rank_key(logits_[i], static_cast<int32_t>(i)),
                        .weight = candidates_.weights()[i]});
    }
    std::sort(order_.begin(), order_.end(),
              [](const RankedWeight& a, const RankedWeight& b) { return a.key > b.key; });
  }

  Candidates& candidates() { return candidates_; }
  const std::vector<RankedWeight>& order() const { return order_; }  // the likeliest first

 private:
  Memory memory_;
  std::vector<float> logits_;
  BlockedRow row_;
  Candidates candidates_;
  std::vector<RankedWeight> order_;
};

std::vector<int32_t> first_ids(const std::vector<RankedWeight>& order, size_t count) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(id_of_key(order[i].key));
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<int32_t> ids_of(const Candidates& candidates) {
  return {candidates.ids().begin(), candidates.ids().end()};
}

TEST(Candidates, TopPKeepsTheFewestThatReachTheExactShare) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
  const int num_rounds = scaled(4000, 400'000);
  for (int round = 0; round < num_rounds; ++round) {
    LightRow row(random, 50.0);
    const uint64_t total = row.candidates().total_weight();
    ASSERT_GT(total, 0u);
    const float top_p = round % 50 == 0 ? 1.0f : round % 50 == 1 ? 0.0f : uniform(random);
    size_t count = 0;
    uint64_t sum = 0;
    while (count == 0 || !reaches(sum, top_p, total)) sum += row.order()[count++].weight;
    row.candidates().keep_top_p(top_p, total);
    ASSERT_EQ(ids_of(row.candidates()), first_ids(row.order(), count))
        << "round " << round << ", top_p " << top_p << ", total " << total;
  }
}

TEST(Candidates, TopPOfNothingKeepsSomething) {
  std::mt19937_64 random(13);
  LightRow row(random, 0.1);
  ASSERT_EQ(row.candidates().total_weight(), 0u);
  row.candidates().keep_top_p(0.5f, 0);
  EXPECT_GT(row.candidates().size(), 0);
}

TEST(Candidates, MinPKeepsWhatReachesTheExactShareOfTheLikeliest) {
  std::mt19937_64 random(12);
  std::uniform_real_distribution<float> uniform(0.0f, 60.0f);
  const int num_rounds = scaled(4000, 400'000);
  for (int round = 0; round < num_rounds; ++round) {
    LightRow row(random, 50.0);
    const float min_p = std::max(1e-3f, uniform(random)) * 0x1p-43f;
    size_t count = 0;
    while (count < row.order().size() && row.order()[count].weight > 0 &&
           reaches(row.order()[count].weight, min_p, kWeightOne)) {
      ++count;
    }
    keep_min_p(row.candidates(), min_p);
    ASSERT_EQ(ids_of(row.candidates()), first_ids(row.order(), count))
        << "round " << round << ", min_p " << min_p;
  }
}

}  // namespace
}  // namespace paceline
