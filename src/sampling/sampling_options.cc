#include "sampling/sampling_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/request_error.h"

namespace paceline {

namespace {

constexpr float kForbiddingBias = -std::numeric_limits<float>::infinity();

template <class T>
void check_number(std::string_view field, T value, const NumberRange& range) {
  if (range.contains(value)) return;
  const auto noun = std::is_integral_v<T> ? "an integer" : "a number";
  throw invalid_field(field, fmt::format("found {}, expected {}", value, range_words(noun, range)));
}

void check_logit_bias(std::span<const std::pair<int32_t, float>> entries, int64_t vocab_size) {
  if (entries.size() > kMaxBiasEntries) {
    throw invalid_field("logit_bias", fmt::format("found {} entries, expected at most {}",
                                                  entries.size(), kMaxBiasEntries));
  }
  std::vector<int32_t> ids;
  ids.reserve(entries.size());
  for (const auto& [id, bias] : entries) {
    if (id < 0 || id >= vocab_size) {
      throw invalid_field(
          "logit_bias",
          fmt::format("the token id {} is outside the vocabulary (0..{})", id, vocab_size - 1));
    }
    if (!std::isfinite(bias) && bias != kForbiddingBias) {
      const std::string place = fmt::format("logit_bias[{}]", id);
      throw invalid_field(place, fmt::format("found {}, expected a finite number or -inf", bias));
    }
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) {
    throw invalid_field("logit_bias",
                        fmt::format("found token id {} twice, expected each id once", *twice));
  }
}

void check_logprob_ids(std::span<const int32_t> ids, int64_t vocab_size) {
  if (ids.size() > kMaxLogprobTokenIds) {
    throw invalid_field("logprob_token_ids", fmt::format("found {} ids, expected at most {}",
                                                         ids.size(), kMaxLogprobTokenIds));
  }
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocab_size) continue;
    throw invalid_field("logprob_token_ids",
                        fmt::format("found {}, expected a token id in [0, {})", id, vocab_size));
  }
}

}  // namespace

void check_sampling_options(const SamplingOptions& options, int64_t vocab_size) {
  for (const SamplingNumber& number : kSamplingNumbers) {
    std::visit([&](auto member) { check_number(number.name, options.*member, number.range); },
               number.member);
  }
  check_number("num_top_logprobs", options.num_top_logprobs, {0, kMaxTopLogprobs});
  check_logit_bias(options.logit_bias, vocab_size);
  check_logprob_ids(options.logprob_token_ids, vocab_size);
}

}  // namespace paceline
