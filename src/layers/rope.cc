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

// The theta of a sequence of `length` tokens, which is more than the original context
// (transformers' _compute_dynamic_ntk_parameters).
double dynamic_theta(int64_t length, int64_t rotary_dim, const RopeConfig& config) {
  const double stretch = config.factor * static_cast<double>(length) / config.original_max_position;
  const auto dimensions = static_cast<double>(rotary_dim);
  return config.theta * std::pow(stretch - (config.factor - 1.0), dimensions / (dimensions - 2.0));
}

double scaled_inv_freq(int64_t index, int64_t rotary_dim, const RopeConfig& config,
                       int64_t stretched) {
  if (config.exponent_divisor > 0) rotary_dim = config.exponent_divisor;
  const double exponent = 2.0 * static_cast<double>(index) / static_cast<double>(rotary_dim);
  const bool is_dynamic = config.scaling == RopeScaling::dynamic && stretched > 0;
  const double theta = is_dynamic ? dynamic_theta(stretched, rotary_dim, config) : config.theta;
  const double inv_freq = std::pow(theta, -exponent);
  switch (config.scaling) {
    case RopeScaling::none:
    case RopeScaling::dynamic:
      return inv_freq;
    case RopeScaling::linear:
      return inv_freq / config.factor;
    case RopeScaling::by_wavelength:
      return scale_by_wavelength(inv_freq, config);
    case RopeScaling::yarn:
      return scale_yarn(inv_freq, index, rotary_dim, config);
    case RopeScaling::by_frequency: {
      const bool is_long = stretched > 0 && !config.long_divisors.empty();
      const auto& divisors = is_long ? config.long_divisors : config.frequency_divisors;
      return inv_freq / static_cast<double>(divisors[static_cast<size_t>(index)]);
    }
  }
  return inv_freq;
}

std::vector<float> inv_freqs(const RopeConfig& config, int64_t rotary_dim, int64_t stretched) {
  const auto is_whole = [&](const std::vector<float>& divisors) {
    return std::ssize(divisors) == rotary_dim / 2;
  };
  PL_CHECK(config.scaling != RopeScaling::by_frequency ||
               (is_whole(config.frequency_divisors) &&
                (config.long_divisors.empty() || is_whole(config.long_divisors))),
           "rope: a divisor for each frequency");
  std::vector<float> frequencies;
  for (int64_t i = 0; i < rotary_dim / 2; ++i) {
    frequencies.push_back(static_cast<float>(scaled_inv_freq(i, rotary_dim, config, stretched)));
  }
  return frequencies;
}

}  // namespace

int64_t RopeConfig::stretched_length(int64_t length) const {
  const auto original = static_cast<int64_t>(original_max_position);
  if (length <= original) return 0;
  if (scaling == RopeScaling::dynamic) return length;
  if (scaling == RopeScaling::by_frequency && !long_divisors.empty()) return original + 1;
  return 0;
}

Rope::Rope(const RopeConfig& config, int64_t rotary_dim, Backend& backend)
    : config_(config),
      rotary_dim_(rotary_dim),
      inv_freq_(write_vector(backend, inv_freqs(config, rotary_dim, 0))),
      attention_factor_(static_cast<float>(config.attention_factor)) {
  if (!config.long_divisors.empty()) {
    long_inv_freq_ = write_vector(backend, inv_freqs(config, rotary_dim, 1));
  }
}

Tensor Rope::table(Backend& backend, std::span<const int32_t> positions,
                   std::span<const StretchedRows> stretched, Scratch& scratch) const {
  const Tensor table =
      scratch.take(DType::f32, {static_cast<int64_t>(positions.size()), inv_freq_.view.size(0), 2});
  write_table(backend, positions, stretched, table);
  return table;
}

void Rope::write_table(Backend& backend, std::span<const int32_t> positions,
                       std::span<const StretchedRows> stretched, const Tensor& table) const {
  backend.rope_table(positions, inv_freq_.view, attention_factor_, table);
  for (const StretchedRows& rows : stretched) {
    const int64_t length = config_.stretched_length(rows.length);
    if (length == 0) continue;  // another rope of the model is stretched
    const auto of_rows =
        positions.subspan(static_cast<size_t>(rows.first_row), static_cast<size_t>(rows.num_rows));
    const Tensor part = table.slice(0, rows.first_row, rows.first_row + rows.num_rows);
    if (config_.scaling != RopeScaling::dynamic) {
      backend.rope_table(of_rows, long_inv_freq_.view, attention_factor_, part);
      continue;
    }
    const OwnedTensor inv_freq = write_vector(backend, inv_freqs(config_, rotary_dim_, length));
    backend.rope_table(of_rows, inv_freq.view, attention_factor_, part);
  }
}

}  // namespace paceline
