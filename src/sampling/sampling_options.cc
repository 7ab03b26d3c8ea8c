#include "sampling/sampling_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace paceline {

namespace {

constexpr size_t kMaxBiasEntries = 1024;
constexpr size_t kMaxLogprobIds = 128;
constexpr float kForbiddingBias = -std::numeric_limits<float>::infinity();
constexpr int32_t kMaxTopLogprobs = 20;

// NaN is in no range.
template <class T>
void check_range(std::string_view field, T value, bool in_range, std::string_view expected) {
  if (!in_range)
    throw Error(ErrorCode::invalid,
                fmt::format("{}: found {}, expected {}", field, value, expected));
}

void check_logit_bias(std::span<const std::pair<int32_t, float>> entries, int64_t vocab_size) {
  if (entries.size() > kMaxBiasEntries) {
    throw Error(ErrorCode::invalid, fmt::format("logit_bias: found {} entries, expected at most {}",
                                                entries.size(), kMaxBiasEntries));
  }
  std::vector<int32_t> ids;
  ids.reserve(entries.size());
  for (const auto& [id, bias] : entries) {
    if (id < 0 || id >= vocab_size) {
      throw Error(
          ErrorCode::invalid,
          fmt::format("logit_bias: found token id {}, expected one in [0, {})", id, vocab_size));
    }
    if (!std::isfinite(bias) && bias != kForbiddingBias) {
      throw Error(
          ErrorCode::invalid,
          fmt::format("logit_bias[{}]: found {}, expected a finite number or -inf", id, bias));
    }
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) {
    throw Error(ErrorCode::invalid,
                fmt::format("logit_bias: found token id {} twice, expected each id once", *twice));
  }
}

void check_logprob_ids(std::span<const int32_t> ids, int64_t vocab_size) {
  if (ids.size() > kMaxLogprobIds) {
    throw Error(ErrorCode::invalid,
                fmt::format("logprob_token_ids: found {} ids, expected at most {}", ids.size(),
                            kMaxLogprobIds));
  }
  for (const int32_t id : ids) {
    check_range("logprob_token_ids", id, id >= 0 && id < vocab_size,
                fmt::format("a token id in [0, {})", vocab_size));
  }
}

}  // namespace

void check_sampling_options(const SamplingOptions& options, int64_t vocab_size) {
  const auto& o = options;
  check_range("temperature", o.temperature, o.temperature >= 0 && o.temperature <= 2,
              "a number in [0, 2]");
  check_range("top_k", o.top_k, o.top_k >= 0, "a whole number from 0 (off) on");
  check_range("top_p", o.top_p, o.top_p > 0 && o.top_p <= 1, "a number in (0, 1]");
  check_range("min_p", o.min_p, o.min_p >= 0 && o.min_p <= 1, "a number in [0, 1]");
  check_range("repetition_penalty", o.repetition_penalty,
              o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty),
              "a finite number above 0");
  check_range("frequency_penalty", o.frequency_penalty,
              o.frequency_penalty >= -2 && o.frequency_penalty <= 2, "a number in [-2, 2]");
  check_range("presence_penalty", o.presence_penalty,
              o.presence_penalty >= -2 && o.presence_penalty <= 2, "a number in [-2, 2]");
  check_range("num_top_logprobs", o.num_top_logprobs,
              o.num_top_logprobs >= 0 && o.num_top_logprobs <= kMaxTopLogprobs,
              "a whole number from 0 to 20");
  check_logit_bias(o.logit_bias, vocab_size);
  check_logprob_ids(o.logprob_token_ids, vocab_size);
}

}  // namespace paceline
