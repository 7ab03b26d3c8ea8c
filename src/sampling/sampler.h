// Sampler draws one token from one row of logits; the draw depends on the row, the history, the
// seed and the position alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/sample.h"
#include "sampling/distribution.h"
#include "sampling/sampling_options.h"
#include "sampling/token_history.h"

namespace paceline {

class BlockedRow;
class Memory;

// A row of the model's logits.
struct LogitsRow {
  std::span<const float> logits;           // [vocab_size]
  std::optional<float> log_sum_exp = {};   // log(sum(exp(logits))), for log-probabilities
  std::span<const uint64_t> allowed = {};  // the tokens to draw from (copy_allowed); none: all
};

// Scratch for rows of up to the vocabulary size; reused, one thread at a time. Options have passed
// check_sampling_options and histories hold ids below vocab_size.
class Sampler {
 public:
  // Throws Error unsupported for a vocabulary of more than kMaxWeights tokens.
  Sampler(Memory& memory, int64_t vocab_size);
  ~Sampler();

  // The row is left as it is. `position` is the position of the token to be drawn in
  // its sequence; with the seed it keys the counter-based generator. Temperature 0 takes the
  // largest logit after penalties and bias, ties to the lowest id. Without the row's log_sum_exp
  // logprob and top_logprobs stay unset.
  Sample draw(const LogitsRow& row, const SamplingOptions& options, const TokenHistory& history,
              int64_t position);

  // What draw() draws from, into `out`; at temperature 0 the one token that it takes. Nothing
  // unless the status is ok.
  SampleStatus distribution(const LogitsRow& row, const SamplingOptions& options,
                            const TokenHistory& history, Distribution& out);

  // A token that another rule than draw() chose, as draw() would report it.
  Sample chosen(const LogitsRow& row, const SamplingOptions& options, int32_t id);

  // The log-probability of `id` (-inf for a token of probability 0) and the top entries of a raw
  // row, as used for prompts; the row has its log_sum_exp.
  Sample score(const LogitsRow& row, int32_t id, int32_t num_top_logprobs);

 private:
  struct Scratch;

  SampleStatus scan_adjusted(const LogitsRow& row, const SamplingOptions& options,
                             const TokenHistory& history);
  // False when every token of the row may be drawn; candidates are untouched then.
  bool truncate_row(const SamplingOptions& options);
  int32_t choose(const SamplingOptions& options, uint64_t key);
  Sample with_logprobs(BlockedRow& row, float log_sum_exp, int32_t id,
                       const SamplingOptions& options);

  int64_t vocab_size_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace paceline
