#include "layers/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "kernels/backend.h"

namespace paceline {
namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;

// Frequencies of long wavelengths are divided by the factor, those of short ones kept, others
// blended (rope type "llama3": transformers' _compute_llama3_parameters).
double scale_by_wavelength(double inv_freq, const RopeConfig& config) {
  const double wavelength = kTwoPi / inv_freq;
  const double longest_kept = config.original_max_position / config.high_freq_factor;
  const double shortest_scaled = config.original_max_position / config.low_freq_factor;
  if (wavelength < longest_kept) return inv_freq;
  if (wavelength > shortest_scaled) return inv_freq / config.factor;
  const double kept = (config.original_max_position / wavelength - config.low_freq_factor) /
                      (config.high_freq_factor - config.low_freq_factor);
  return (1.0 - kept) * inv_freq / config.factor + kept * inv_freq;
}

// The dimension that makes `rotations` turns over the original context.
double yarn_dimension(double rotations, int64_t rotary_dim, const RopeConfig& config) {
  return static_cast<double>(rotary_dim) *
         std::log(config.original_max_position / (rotations * kTwoPi)) /
         (2.0 * std::log(config.theta));
}

// YaRN (Peng et al., 2023): a ramp over the dimensions from keeping to dividing
// (transformers' _compute_yarn_parameters).
double scale_yarn(double inv_freq, int64_t index, int64_t rotary_dim, const RopeConfig& config) {
  double low = yarn_dimension(config.beta_fast, rotary_dim, config);
  double high = yarn_dimension(config.beta_slow, rotary_dim, config);
  if (config.whole_dimensions) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rotary_dim - 1));
  if (high == low) high += 0.001;
  const double divided = std::clamp((static_cast<double>(index) - low) / (high - low), 0.0, 1.0);
  return inv_freq / config.factor * divided + inv_freq * (1.0 - divided);
}

double scaled_inv_freq(int64_t index, int64_t rotary_dim, const RopeConfig& config) {
  const double exponent = 2.0 * static_cast<double>(index) / static_cast<double>(rotary_dim);
  const double inv_freq = std::pow(config.theta, -exponent);
  switch (config.scaling) {
    case RopeScaling::none:
      return inv_freq;
    case RopeScaling::linear:
      return inv_freq / config.factor;
    case RopeScaling::by_wavelength:
      return scale_by_wavelength(inv_freq, config);
    case RopeScaling::yarn:
      return scale_yarn(inv_freq, index, rotary_dim, config);
    case RopeScaling::by_frequency:
      return inv_freq / static_cast<double>(config.frequency_divisors[static_cast<size_t>(index)]);
  }
  return inv_freq;
}

std::vector<float> inv_freqs(const RopeConfig& config, int64_t rotary_dim) {
  PL_CHECK(config.scaling != RopeScaling::by_frequency ||
               static_cast<int64_t>(config.frequency_divisors.size()) == rotary_dim / 2,
           "rope: a divisor for each frequency");
  std::vector<float> frequencies;
  for (int64_t i = 0; i < rotary_dim / 2; ++i) {
    frequencies.push_back(static_cast<float>(scaled_inv_freq(i, rotary_dim, config)));
  }
  return frequencies;
}

}  // namespace

Rope::Rope(const RopeConfig& config, int64_t rotary_dim, Backend& backend)
    : inv_freq_(write_vector(backend, inv_freqs(config, rotary_dim))),
      attention_factor_(static_cast<float>(config.attention_factor)) {}

Tensor Rope::table(Backend& backend, std::span<const int32_t> positions, Scratch& scratch) const {
  const Tensor table =
      scratch.take(DType::f32, {static_cast<int64_t>(positions.size()), inv_freq_.view.size(0), 2});
  write_table(backend, positions, table);
  return table;
}

void Rope::write_table(Backend& backend, std::span<const int32_t> positions,
                       const Tensor& table) const {
  backend.rope_table(positions, inv_freq_.view, attention_factor_, table);
}

}  // namespace paceline
