// A Sampler on the reference backend, with short calls.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "sampling/distribution.h"
#include "sampling/sampler.h"
#include "tensor/memory.h"

namespace paceline {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct TokenWeight {
  int32_t id = 0;
  uint64_t weight = 0;  // proportional to the probability
};

struct WeighedTokens {
  SampleStatus status = SampleStatus::ok;
  std::vector<TokenWeight> tokens = {};  // by ascending id, weights above 0
};

class SamplerFixture : public testing::Test {
 protected:
  Sampler sampler(size_t vocab_size) { return Sampler(memory_, static_cast<int64_t>(vocab_size)); }

  // What a draw draws from.
  WeighedTokens distribution(const std::vector<float>& logits, const SamplingOptions& options,
                             const TokenHistory& history = {}) {
    WeighedTokens found;
    Distribution distribution;
    found.status = sampler(logits.size()).distribution({logits}, options, history, distribution);
    for (size_t i = 0; i < distribution.ids.size(); ++i) {
      found.tokens.push_back({distribution.ids[i], distribution.weights[i]});
    }
    return found;
  }

  // The ids that remain to draw from.
  std::vector<int32_t> kept(const std::vector<float>& logits, const SamplingOptions& options) {
    std::vector<int32_t> ids;
    for (const TokenWeight& token : distribution(logits, options).tokens) ids.push_back(token.id);
    return ids;
  }

  Sample draw(const std::vector<float>& logits, const SamplingOptions& options,
              const TokenHistory& history = {}, int64_t position = 0) {
    return sampler(logits.size()).draw(with_sum(logits), options, history, position);
  }

  LogitsRow with_sum(const std::vector<float>& logits) {
    float sum = 0.0f;
    const Tensor row(const_cast<float*>(logits.data()), DType::f32, {1, std::ssize(logits)});
    backend_->log_sum_exp(row, std::span(&sum, 1));
    return {.logits = logits, .log_sum_exp = sum};
  }

  std::unique_ptr<Backend> backend_ = make_reference_backend();
  Memory memory_;
};

inline SamplingOptions options_with(float SamplingOptions::*field, float value) {
  SamplingOptions options;
  options.*field = value;
  return options;
}

inline SamplingOptions greedy() { return options_with(&SamplingOptions::temperature, 0.0f); }

}  // namespace paceline
