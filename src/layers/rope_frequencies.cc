#include "layers/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "layers/rope.h"

namespace paceline {
namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;

float to_float(double value) { return static_cast<float>(value); }

// theta^(2 index / dimensions)
float power_of_theta(double theta, int64_t index, int64_t dimensions) {
  const float exponent = static_cast<float>(2 * index) / static_cast<float>(dimensions);
  return to_float(std::pow(double{to_float(theta)}, double{exponent}));
}

// Frequencies of long wavelengths are divided by the factor, those of short ones kept, others
// blended (rope type "llama3": _compute_llama3_parameters).
float scale_by_wavelength(float frequency, const RopeConfig& config) {
  const float wavelength = to_float(kTwoPi) / frequency;
  const double original = config.original_max_position;
  if (wavelength < to_float(original / config.high_freq_factor)) return frequency;
  const float factor = to_float(config.factor);
  if (wavelength > to_float(original / config.low_freq_factor)) return frequency / factor;
  const float kept = (to_float(original) / wavelength - to_float(config.low_freq_factor)) /
                     to_float(config.high_freq_factor - config.low_freq_factor);
  return (1.0f - kept) * frequency / factor + kept * frequency;
}

// The dimension that makes `rotations` turns over the original context.
double yarn_dimension(double rotations, int64_t rotary_dim, const RopeConfig& config) {
  return static_cast<double>(rotary_dim) *
         std::log(config.original_max_position / (rotations * kTwoPi)) /
         (2.0 * std::log(config.theta));
}

// YaRN (Peng et al., 2023): a ramp over the dimensions from keeping to dividing
// (_compute_yarn_parameters).
float scale_yarn(float power, int64_t index, int64_t rotary_dim, const RopeConfig& config) {
  double low = yarn_dimension(config.beta_fast, rotary_dim, config);
  double high = yarn_dimension(config.beta_slow, rotary_dim, config);
  if (config.whole_dimensions) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rotary_dim - 1));
  if (high == low) high += 0.001;
  const float ramp = (static_cast<float>(index) - to_float(low)) / to_float(high - low);
  const float kept = 1.0f - std::clamp(ramp, 0.0f, 1.0f);
  return 1.0f / (to_float(config.factor) * power) * (1.0f - kept) + 1.0f / power * kept;
}

// The theta of a sequence of `length` tokens, which is more than the original context
// (_compute_dynamic_ntk_parameters).
double dynamic_theta(int64_t length, int64_t rotary_dim, const RopeConfig& config) {
  const double stretch = config.factor * static_cast<double>(length) / config.original_max_position;
  const auto dimensions = static_cast<double>(rotary_dim);
  return config.theta * std::pow(stretch - (config.factor - 1.0), dimensions / (dimensions - 2.0));
}

float frequency_of(int64_t index, int64_t rotary_dim, const RopeConfig& config, int64_t stretched) {
  if (config.exponent_divisor > 0) rotary_dim = config.exponent_divisor;
  const bool is_dynamic = config.scaling == RopeScaling::dynamic && stretched > 0;
  const double theta = is_dynamic ? dynamic_theta(stretched, rotary_dim, config) : config.theta;
  const float power = power_of_theta(theta, index, rotary_dim);
  switch (config.scaling) {
    case RopeScaling::none:
    case RopeScaling::dynamic:
      break;
    case RopeScaling::linear:
      return 1.0f / power / to_float(config.factor);
    case RopeScaling::proportional:
      return index < config.rotated_pairs ? 1.0f / power / to_float(config.factor) : 0.0f;
    case RopeScaling::by_wavelength:
      return scale_by_wavelength(1.0f / power, config);
    case RopeScaling::yarn:
      return scale_yarn(power, index, rotary_dim, config);
    case RopeScaling::by_frequency: {
      const bool is_long = stretched > 0 && !config.long_divisors.empty();
      const auto& divisors = is_long ? config.long_divisors : config.frequency_divisors;
      return 1.0f / (divisors[static_cast<size_t>(index)] * power);
    }
  }
  return 1.0f / power;
}

}  // namespace

std::vector<float> rope_frequencies(const RopeConfig& config, int64_t rotary_dim,
                                    int64_t stretched) {
  const auto is_whole = [&](const std::vector<float>& divisors) {
    return std::ssize(divisors) == rotary_dim / 2;
  };
  PL_CHECK(config.scaling != RopeScaling::by_frequency ||
               (is_whole(config.frequency_divisors) &&
                (config.long_divisors.empty() || is_whole(config.long_divisors))),
           "rope: a divisor for each frequency");
  std::vector<float> frequencies;
  for (int64_t i = 0; i < rotary_dim / 2; ++i) {
    const float frequency = frequency_of(i, rotary_dim, config, stretched);
    frequencies.push_back(config.backwards ? -frequency : frequency);
  }
  return frequencies;
}

}  // namespace paceline
