// SamplingNumbers are the settings of choosing a token that the CPU's sampler and the kernels for
// GPUs read alike: plain numbers, so that a copy of the struct is a copy of them all.
#pragma once

#include <cstdint>
#include <type_traits>

namespace paceline {

// Both begin with penalties, logit bias and mask, and end with the draw.
enum class SamplerOrder : uint8_t {
  standard,  // temperature, top-n-sigma, min-p, top-k, top-p, typical-p
  mlx,       // top-n-sigma, top-p, min-p, top-k, typical-p, temperature
};

struct SamplingNumbers {
  float temperature = 1.0f;         // 0: argmax, ties to the lowest id
  int32_t top_k = 0;                // 0 and below: off
  float top_p = 1.0f;               // 1: off; 0: the likeliest token
  float min_p = 0.0f;               // 0: off
  float typical_p = 1.0f;           // 1: off
  float top_n_sigma = 0.0f;         // 0 and below: off
  float repetition_penalty = 1.0f;  // 1: off; each token of prompt and output once
  float frequency_penalty = 0.0f;   // output only, times the count
  float presence_penalty = 0.0f;    // output only, once
  int32_t num_top_logprobs = 0;     // 0 to 20; the drawn token's own is always reported
  uint64_t seed = 0;
  SamplerOrder order = SamplerOrder::standard;
};
static_assert(std::is_trivially_copyable_v<SamplingNumbers>, "GPUs get its bytes");

// Whether tokens that already occurred lose some of their logit. Without branches: on a GPU all
// that is asked is read at once.
constexpr bool penalises(const SamplingNumbers& numbers) {
  const bool changes = (numbers.repetition_penalty != 1.0f) | (numbers.frequency_penalty != 0.0f) |
                       (numbers.presence_penalty != 0.0f);
  return changes;
}

// Whether a filter is on.
constexpr bool truncates(const SamplingNumbers& numbers) {
  return numbers.top_n_sigma > 0.0f || numbers.min_p > 0.0f || numbers.top_k > 0 ||
         numbers.top_p < 1.0f || numbers.typical_p < 1.0f;
}

}  // namespace paceline
