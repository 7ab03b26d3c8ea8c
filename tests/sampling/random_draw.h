// Random rows of logits and random ways to draw from them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "sampling/sampling_options.h"
#include "sampling/token_history.h"
#include "sampling/token_mask.h"

namespace paceline::testing {

struct RandomDraw {
  std::vector<float> logits;
  SamplingOptions options;
  TokenHistory history;
  std::vector<uint64_t> allowed;  // of a constraint
  int64_t position = 0;
};

// All kinds of logits: spread, in steps, with ties, mostly impossible, peaked, equal, huge, tiny,
// with infinities and NaN; options alone and together.
class RandomDraws {
 public:
  explicit RandomDraws(uint64_t seed) : random_(seed) {}

  size_t any_width() {
    return any_of<size_t>({1, 2, 3, 5, 31, 63, 64, 65, 127, 300, 511, 700, 1025, 2500, 5000});
  }
  RandomDraw next(size_t width) {
    RandomDraw row;
    make_logits(row.logits, width);
    make_options(row, width);
    for (uint64_t i = random_() % 24; i > 0; --i) {
      const int32_t id = any_id(width);
      if (random_() % 3 == 0) row.history.add_prompt({&id, 1});
      if (random_() % 3 != 0) row.history.add_output(id);
    }
    if (chance(5)) make_mask(row, width);
    if (chance(5)) make_allowed(row, width);
    row.position = static_cast<int64_t>(random_() % 100'000);
    return row;
  }
  bool chance(uint64_t one_in) { return random_() % one_in == 0; }

 private:
  static constexpr float kInfinite = std::numeric_limits<float>::infinity();

  template <class T>
  T any_of(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }
  int32_t any_id(size_t width) { return static_cast<int32_t>(random_() % width); }

  void make_logits(std::vector<float>& logits, size_t width) {
    const float spread =
        any_of({0.0f, 1e-40f, 1e-6f, 0.01f, 0.3f, 1.0f, 3.0f, 10.0f, 300.0f, 1e37f});
    const float mean = any_of({0.0f, 0.0f, -50.0f, 20.0f, -1e4f});
    const uint64_t kind = random_() % 6;
    std::normal_distribution<float> normal(0.0f, 1.0f);
    logits.resize(width);
    for (float& x : logits) {
      x = mean + spread * normal(random_);
      if (kind == 0) x = std::round(x);
      if (kind == 1 && random_() % 10 != 0) x = -kInfinite;
    }
    for (uint64_t i = kind == 2 ? 4 : 0; i > 0; --i) logits[random_() % width] += 4.0f * spread;
    if (kind == 3 && chance(2)) logits[random_() % width] = -std::numeric_limits<float>::max();
    if (chance(40)) logits[random_() % width] = kInfinite;
    if (chance(40)) logits[random_() % width] = std::numeric_limits<float>::quiet_NaN();
    if (chance(60)) std::fill(logits.begin(), logits.end(), -kInfinite);
    if (chance(20)) logits[random_() % width] = -0.0f;
  }

  void make_options(RandomDraw& row, size_t width) {
    SamplingOptions& options = row.options;
    options.order = any_of({SamplerOrder::standard, SamplerOrder::mlx});
    options.temperature =
        any_of({1.0f, 1.0f, 0.7f, 2.0f, 0.1f, 1e-3f, 1e-6f, 1e-38f, 1e-44f, 0.0f});
    if (chance(2)) options.top_k = any_of({1, 2, 5, 50, 200, 1500, 100'000});
    if (chance(2)) options.top_p = any_of({0.9f, 0.5f, 0.25f, 0.95f, 1e-6f, 0.999f, 0.0f});
    if (chance(3)) options.min_p = any_of({0.05f, 0.3f, 1.0f, 1e-7f});
    if (chance(3)) options.typical_p = any_of({0.9f, 0.5f, 0.2f, 0.01f, 0.999f});
    if (chance(3)) options.top_n_sigma = any_of({1.0f, 0.3f, 2.5f, 100.0f});
    if (chance(3)) options.repetition_penalty = any_of({1.2f, 0.8f, 100.0f});
    if (chance(3)) options.frequency_penalty = any_of({0.5f, -2.0f});
    if (chance(3)) options.presence_penalty = any_of({2.0f, -0.3f});
    options.seed = random_();
    for (uint64_t i = chance(4) ? random_() % 5 : 0; i > 0; --i) {
      const int32_t id = any_id(width);
      const auto has_id = [id](const auto& entry) { return entry.first == id; };
      if (std::ranges::any_of(options.logit_bias, has_id)) continue;
      options.logit_bias.emplace_back(id, any_of({-100.0f, 1.0f, 5.5f, -kInfinite}));
    }
    options.num_top_logprobs = any_of({0, 1, 3, 20});
    for (uint64_t i = chance(6) ? random_() % 9 : 0; i > 0; --i) {
      options.logprob_token_ids.push_back(any_id(width));
    }
  }

  void make_mask(RandomDraw& row, size_t width) {
    std::vector<int32_t> allowed;
    for (uint64_t i = chance(2) ? random_() % 40 : 0; i > 0; --i) allowed.push_back(any_id(width));
    std::vector<std::vector<int32_t>> banned;
    for (uint64_t i = random_() % 5; i > 0; --i) {
      std::vector<int32_t> sequence;
      const auto output = row.history.output();
      if (!output.empty() && chance(2)) sequence.push_back(output.back());
      sequence.push_back(any_id(width + 3));
      banned.push_back(std::move(sequence));
    }
    row.options.mask = std::make_shared<const TokenMask>(std::move(allowed), std::move(banned));
  }

  void make_allowed(RandomDraw& row, size_t width) {
    row.allowed.resize(width / 64 + (chance(3) ? 0 : 1));
    const uint64_t kind = random_() % 4;
    for (uint64_t& word : row.allowed) {
      word = kind == 0 ? 0 : kind == 1 ? ~uint64_t{0} : random_() & random_();
    }
  }

  std::mt19937_64 random_;
};

}  // namespace paceline::testing
