// RowSampler draws tokens from rows of logits where a backend has them, so that only tokens and
// their log-probabilities cross to the CPU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/sample.h"
#include "base/token_count.h"
#include "tensor/tensor.h"

namespace paceline {

// How the token of one row is drawn; the settings are those of sampling/sampling_options.h, within
// its ranges, and the filters' order is that of `is_mlx_order`. Spans are read while begin() runs,
// ids are below the vocabulary's size and in a span once.
struct RowDraw {
  float temperature = 1.0f;
  int32_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  float typical_p = 1.0f;
  float top_n_sigma = 0.0f;
  float repetition_penalty = 1.0f;
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  bool is_mlx_order = false;
  uint64_t seed = 0;
  int64_t position = 0;                      // of the token to be drawn
  std::span<const TokenCount> history = {};  // of prompt and output, for penalties
  std::span<const std::pair<int32_t, float>> logit_bias = {};
  std::span<const uint64_t> allowed = {};  // a bit for each token that may; none: all
  std::optional<int32_t> forced = {};      // the token, without a draw
  bool wants_logprob = false;              // of the token, and those below
  int32_t num_top_logprobs = 0;            // at most kMaxTopLogprobs
  std::span<const int32_t> logprob_token_ids = {};
};

// Draws the tokens of sampling/Sampler on the same logits, with the same log-probabilities of the
// logarithm that Backend::log_sum_exp() has. One batch of draws after another: begin(), draw() for
// all of their rows, finish().
class RowSampler {
 public:
  virtual ~RowSampler() = default;

  // Throws Error unsupported for a vocabulary of more than kMaxWeights tokens.
  virtual void begin(std::span<const RowDraw> draws, int64_t vocab_size) = 0;
  // Draws [first, first + rows) from `logits` [rows, vocab]. It may return before they are drawn:
  // later operations of the backend come after it.
  virtual void draw(int64_t first, const Tensor& logits) = 0;
  // Waits for the draws; a sample for each.
  virtual void finish(std::span<Sample> samples) = 0;
};

}  // namespace paceline
