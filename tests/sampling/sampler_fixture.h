// A Sampler on the reference backend, with short calls.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "sampling/candidates.h"
#include "sampling/penalties.h"
#include "sampling/sampler.h"
#include "sampling/truncation.h"
#include "sampling/weights.h"
#include "tensor/memory.h"

namespace paceline {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct TokenWeight {
  int32_t id = 0;
  uint64_t weight = 0;  // proportional to the probability
};

struct Distribution {
  SampleStatus status = SampleStatus::ok;
  std::vector<TokenWeight> tokens = {};  // by ascending id, weights above 0
};

class SamplerFixture : public testing::Test {
 protected:
  Sampler sampler(size_t vocab_size) { return Sampler(memory_, static_cast<int64_t>(vocab_size)); }

  // The distribution of a draw, computed with the sampler's parts.
  Distribution distribution(const std::vector<float>& logits, const SamplingOptions& options,
                            const TokenHistory& history = {}) {
    Distribution found;
    found.status = sampler(logits.size()).draw({logits}, options, history, 0).status;
    if (found.status != SampleStatus::ok) return found;
    std::vector<float> adjusted = logits;
    apply_penalties(adjusted, options, history);
    BlockedRow row(std::ssize(adjusted));
    row.scan(adjusted);
    if (options.temperature == 0.0f) {
      found.tokens.push_back({row.argmax(), kWeightOne});
      return found;
    }
    Candidates candidates(memory_, std::ssize(adjusted));
    std::vector<uint64_t> block_sums(static_cast<size_t>(row.num_blocks()));
    if (!truncate(row, options, block_sums, candidates)) candidates.collect(row, -kInf);
    candidates.weigh(Weigher(row.max(), options.temperature));
    for (size_t i = 0; i < candidates.ids().size(); ++i) {
      if (candidates.weights()[i] == 0) continue;
      found.tokens.push_back({candidates.ids()[i], candidates.weights()[i]});
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
