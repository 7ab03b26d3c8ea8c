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
#include "base/sampling_numbers.h"

namespace paceline {

class TokenMask;

struct SamplingOptions : SamplingNumbers {
  // Token id, added value; -inf: never.
  std::vector<std::pair<int32_t, float>> logit_bias = {};
  std::shared_ptr<const TokenMask> mask = {};  // none: every token may come
  // Reported beside a drawn token instead of the likeliest, in this order.
  std::vector<int32_t> logprob_token_ids = {};
};

// A number of SamplingNumbers: its default is the one there, its name and range stand here alone.
struct SamplingNumber {
  std::string_view name;
  std::variant<float SamplingNumbers::*, int32_t SamplingNumbers::*> member;
  NumberRange range;
};

inline constexpr SamplingNumber kSamplingNumbers[] = {
    {"temperature", &SamplingNumbers::temperature, {0, 2}},
    {"top_p", &SamplingNumbers::top_p, {0, 1}},
    {"top_k", &SamplingNumbers::top_k, {-1, std::numeric_limits<int32_t>::max()}},
    {"min_p", &SamplingNumbers::min_p, {0, 1}},
    {"typical_p", &SamplingNumbers::typical_p, {0, 1, true}},
    {"top_n_sigma", &SamplingNumbers::top_n_sigma, {-1, 100}},
    // Beyond these the logits would leave the range of floats.
    {"repetition_penalty", &SamplingNumbers::repetition_penalty, {0.01, 100}},
    {"frequency_penalty", &SamplingNumbers::frequency_penalty, {-2, 2}},
    {"presence_penalty", &SamplingNumbers::presence_penalty, {-2, 2}},
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
constexpr size_t kMaxLogprobTokenIds = 256;

// Throws Error invalid naming the field, the value found and the range: the numbers as in the
// table, logit_bias ids in [0, vocab_size), each once, and finite or -inf, and the limits above.
void check_sampling_options(const SamplingOptions& options, int64_t vocab_size);

}  // namespace paceline
