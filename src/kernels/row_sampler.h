// RowSampler draws tokens from rows of logits where a backend has them, so that only tokens and
// their log-probabilities cross to the CPU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/sample.h"
#include "base/sampling_numbers.h"
#include "base/token_count.h"
#include "tensor/tensor.h"

namespace paceline {

// How the token of one row is drawn; the numbers are within the ranges of
// sampling/sampling_options.h. Spans are read while begin() runs, ids are below the vocabulary's
// size and in a span once.
struct RowDraw : SamplingNumbers {
  int64_t position = 0;                      // of the token to be drawn
  std::span<const TokenCount> history = {};  // of prompt and output, for penalties
  std::span<const std::pair<int32_t, float>> logit_bias = {};
  std::span<const uint64_t> allowed = {};  // a bit for each token that may; none: all
  std::optional<int32_t> forced = {};      // the token, without a draw
  bool wants_logprob = false;              // of the token, and num_top_logprobs or those below
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
