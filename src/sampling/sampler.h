// Sampler draws one token from one row of logits; the draw depends on the row, the history, the
// seed and the position alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "sampling/sample.h"
#include "sampling/sampling_options.h"
#include "sampling/token_history.h"

namespace paceline {

class BlockedRow;

struct TokenWeight {
  int32_t id = 0;
  uint64_t weight = 0;  // proportional to the probability
};

struct Distribution {
  SampleStatus status = SampleStatus::ok;
  std::vector<TokenWeight> tokens = {};  // by ascending id, weights above 0
};

// Scratch for rows of up to the vocabulary size; reused, one thread at a time. Options have passed
// check_sampling_options and histories hold ids below vocab_size.
class Sampler {
 public:
  // Throws Error unsupported for a vocabulary of more than kMaxWeights tokens.
  Sampler(Backend& backend, Memory& memory, int64_t vocab_size);
  ~Sampler();

  // `logits` [vocab_size] is left as it is. `position` is the position of the token to be drawn in
  // its sequence; with the seed it keys the counter-based generator. Temperature 0 takes the
  // largest logit after penalties and bias, ties to the lowest id. `want_logprobs` false leaves
  // logprob and top_logprobs unset (they cost a pass over the row).
  Sample draw(std::span<const float> logits, const SamplingOptions& options,
              const TokenHistory& history, int64_t position, bool want_logprobs);

  // What draw() draws from: the tokens that penalties, bias and truncation leave, with their
  // weights.
  Distribution distribution(std::span<const float> logits, const SamplingOptions& options,
                            const TokenHistory& history);

  // The log-probability of `id` (-inf for a token of probability 0) and the top entries of a raw
  // row, as used for prompts.
  Sample score(std::span<const float> logits, int32_t id, int32_t num_top_logprobs);

 private:
  struct Scratch;

  SampleStatus scan_adjusted(std::span<const float> logits, const SamplingOptions& options,
                             const TokenHistory& history);
  int32_t choose(const SamplingOptions& options, double uniform);
  Sample with_logprobs(BlockedRow& row, std::span<const float> logits, int32_t id,
                       const SamplingOptions& options);

  Backend& backend_;
  int64_t vocab_size_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace paceline
