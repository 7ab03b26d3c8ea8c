// SamplingOptions are the settings of choosing the next token from a row of logits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/number_range.h"

namespace paceline {

class TokenMask;

// Both begin with penalties, logit bias and mask, and end with the draw.
enum class SamplerOrder : uint8_t {
  standard,  // temperature, top-n-sigma, min-p, top-k, top-p, typical-p
  mlx,       // top-n-sigma, top-p, min-p, top-k, typical-p, temperature
};

struct SamplingOptions {
  float temperature = 1.0f;         // 0: argmax, ties to the lowest id
  int32_t top_k = 0;                // 0 and below: off
  float top_p = 1.0f;               // 1: off
  float min_p = 0.0f;               // 0: off
  float typical_p = 1.0f;           // 1: off
  float top_n_sigma = 0.0f;         // 0 and below: off
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

// A number of SamplingOptions: its default is the one above, its name and range stand here alone.
struct SamplingNumber {
  std::string_view name;
  std::variant<float SamplingOptions::*, int32_t SamplingOptions::*> member;
  NumberRange range;
};

inline constexpr SamplingNumber kSamplingNumbers[] = {
    {"temperature", &SamplingOptions::temperature, {0, 2}},
    {"top_p", &SamplingOptions::top_p, {0, 1, true}},
    {"top_k", &SamplingOptions::top_k, {-1, std::numeric_limits<int32_t>::max()}},
    {"min_p", &SamplingOptions::min_p, {0, 1}},
    {"typical_p", &SamplingOptions::typical_p, {0, 1, true}},
    {"top_n_sigma", &SamplingOptions::top_n_sigma, {-1, 100}},
    // Beyond these the logits would leave the range of floats.
    {"repetition_penalty", &SamplingOptions::repetition_penalty, {0.01, 100}},
    {"frequency_penalty", &SamplingOptions::frequency_penalty, {-2, 2}},
    {"presence_penalty", &SamplingOptions::presence_penalty, {-2, 2}},
};

// nullptr: no number has the name.
constexpr const SamplingNumber* find_sampling_number(std::string_view name) {
  for (const SamplingNumber& number : kSamplingNumbers) {
    if (number.name == name) return &number;
  }
  return nullptr;
}

constexpr int32_t kMaxTopLogprobs = 20;
constexpr size_t kMaxBiasEntries = 1024;
constexpr size_t kMaxLogprobTokenIds = 128;

// Throws Error invalid naming the field, the value found and the range: the numbers as in the
// table, logit_bias ids in [0, vocab_size), each once, and finite or -inf, and the limits above.
void check_sampling_options(const SamplingOptions& options, int64_t vocab_size);

}  // namespace paceline
