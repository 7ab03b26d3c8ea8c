// SamplingOptions are the settings of choosing the next token from a row of logits.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline {

class TokenMask;

enum class SamplerOrder : uint8_t {
  standard,  // penalties, logit bias, mask, temperature, min-p, top-k, top-p, draw
  mlx,       // penalties, logit bias, mask, top-p, min-p, top-k, temperature, draw
};

struct SamplingOptions {
  float temperature = 1.0f;         // 0: argmax, ties to the lowest id
  int32_t top_k = 0;                // 0: off
  float top_p = 1.0f;               // 1: off
  float min_p = 0.0f;               // 0: off
  float repetition_penalty = 1.0f;  // 1: off; each token of prompt and output once
  float frequency_penalty = 0.0f;   // output only, times the count
  float presence_penalty = 0.0f;    // output only, once
  // Token id, added value; -inf: never.
  std::vector<std::pair<int32_t, float>> logit_bias = {};
  std::shared_ptr<const TokenMask> mask = {};  // none: every token may come
  SamplerOrder order = SamplerOrder::standard;
  uint64_t seed = 0;
  int32_t num_top_logprobs = 0;  // 0 to 20; the drawn token's own is always reported
  // Reported beside a drawn token instead of the likeliest, in this order.
  std::vector<int32_t> logprob_token_ids = {};
};

// Throws Error invalid naming the field, the value found and the range: temperature in [0, 2]
// finite, top_p in (0, 1], min_p in [0, 1], top_k >= 0, repetition_penalty > 0, the other penalties
// in
// [-2, 2], logit_bias ids in [0, vocab_size), each once, and finite or -inf, at most 1,024 entries,
// num_top_logprobs in [0, 20], and at most 128 logprob_token_ids in [0, vocab_size).
void check_sampling_options(const SamplingOptions& options, int64_t vocab_size);

}  // namespace paceline
