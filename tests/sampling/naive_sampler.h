// NaiveSampler implements the sampling rules directly: one full stable sort, doubles, std::exp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sampling/race.h"
#include "sampling/sampling_options.h"
#include "sampling/token_history.h"
#include "sampling/token_mask.h"

namespace paceline {

struct NaiveToken {
  int32_t id = 0;
  double weight = 0;
};

struct NaiveChoice {
  std::vector<NaiveToken> kept;  // by ascending id
  // The smallest relative distance of any comparison from its opposite result, except exact ones.
  double margin = std::numeric_limits<double>::infinity();
};

class NaiveSampler {
 public:
  NaiveSampler(std::vector<float> logits, const SamplingOptions& options,
               const TokenHistory& history)
      : logits_(std::move(logits)), options_(options) {
    penalise(history);
    for (size_t i = 0; i < logits_.size(); ++i)
      if (logits_[i] > -std::numeric_limits<float>::infinity())
        order_.push_back(static_cast<int32_t>(i));
    std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
      return logits_[static_cast<size_t>(a)] > logits_[static_cast<size_t>(b)];
    });
  }

  NaiveChoice choose() {
    if (options_.temperature == 0.0f) {
      order_.resize(1);
      return {{{order_[0], 1.0}}, choice_.margin};
    }
    if (options_.order == SamplerOrder::mlx) {
      weigh(1.0);
      top_p();
      min_p();
      top_k();
      weigh(options_.temperature);
    } else {
      weigh(options_.temperature);
      min_p();
      top_k();
      top_p();
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      near(weights_[i], 0x1p-44, 1e-4);
      if (weights_[i] > 0x1p-44) choice_.kept.push_back({order_[i], weights_[i]});
    }
    std::sort(choice_.kept.begin(), choice_.kept.end(),
              [](auto& a, auto& b) { return a.id < b.id; });
    return choice_;
  }

  // Token i comes after -log(1 - u_i) / weight, and the first is drawn.
  static int32_t draw(NaiveChoice& choice, uint64_t key) {
    double least = std::numeric_limits<double>::infinity(), second = least;
    int32_t first = -1;
    for (const auto& token : choice.kept) {
      const double noise = static_cast<double>(token_noise(key, token.id));
      const double time = -std::log1p(-(noise + 0.5) * 0x1p-64) / token.weight;
      if (time < least) first = token.id;
      second = std::min(second, std::max(time, least));
      least = std::min(least, time);
    }
    choice.margin = std::min(choice.margin, (second - least) / least);
    return first;
  }

 private:
  void forbid(std::span<const int32_t> output) {
    const auto& allowed = options_.mask->allowed();
    for (size_t i = 0; i < logits_.size(); ++i) {
      bool is_allowed = allowed.empty() || std::count(allowed.begin(), allowed.end(), i) > 0;
      for (const std::vector<int32_t>& banned : options_.mask->banned()) {
        std::vector<int32_t> with_this(output.begin(), output.end());
        with_this.push_back(static_cast<int32_t>(i));
        if (banned.size() > with_this.size()) continue;
        is_allowed = is_allowed && !std::equal(banned.rbegin(), banned.rend(), with_this.rbegin());
      }
      if (!is_allowed) logits_[i] = -std::numeric_limits<float>::infinity();
    }
  }
  void penalise(const TokenHistory& history) {
    for (const auto& token : history.tokens()) {
      float& x = logits_[static_cast<size_t>(token.id)];
      x = x > 0 ? x / options_.repetition_penalty : x * options_.repetition_penalty;
      if (token.in_output > 0) {
        x -= static_cast<float>(token.in_output) * options_.frequency_penalty;
        x -= options_.presence_penalty;
      }
    }
    for (const auto& [id, bias] : options_.logit_bias) logits_[static_cast<size_t>(id)] += bias;
    if (options_.mask) forbid(history.output());
  }

  // `slack` scales the effect of rounding.
  void near(double value, double bound, double slack) {
    const bool exact = value == bound || value == 1.0;
    if (!exact)
      choice_.margin = std::min(choice_.margin, std::abs(value / bound - 1) / slack * 1e-5);
  }

  void weigh(double temperature) {
    weights_.clear();
    const double max = logits_[static_cast<size_t>(order_[0])];
    for (int32_t id : order_)
      weights_.push_back(std::exp((double{logits_[static_cast<size_t>(id)]} - max) / temperature));
  }

  void resize(size_t count) {
    order_.resize(count);
    weights_.resize(count);
  }

  void min_p() {
    if (options_.min_p == 0.0f) return;
    size_t count = 0;
    for (double weight : weights_) {
      near(weight, options_.min_p, 1e-4);
      count += weight >= double{options_.min_p} ? 1 : 0;
    }
    resize(count);
  }

  void top_k() {
    if (options_.top_k > 0) resize(std::min(order_.size(), static_cast<size_t>(options_.top_k)));
  }

  void top_p() {
    if (options_.top_p == 1.0f) return;
    const double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    const double target = double{options_.top_p} * total;
    const bool all_equal = weights_.back() == 1.0;
    double sum = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      sum += weights_[i];
      if (!all_equal) choice_.margin = std::min(choice_.margin, std::abs(sum - target) / total);
      if (sum >= target) return resize(i + 1);
    }
  }

  std::vector<float> logits_;
  const SamplingOptions& options_;
  std::vector<int32_t> order_;   // candidates by (probability down, id up)
  std::vector<double> weights_;  // of order_
  NaiveChoice choice_;
};

}  // namespace paceline
