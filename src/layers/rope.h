// Rope holds the rotary frequencies of one kind of layer and makes a batch's table of angles.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "layers/scratch.h"

namespace paceline {

class Backend;

// The scalings of transformers' modeling_rope_utils that change frequencies at load.
enum class RopeScaling : uint8_t { none, linear, by_wavelength, yarn, by_frequency };

struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;
  double original_max_position = 0.0;  // by_wavelength, yarn
  double low_freq_factor = 1.0;        // by_wavelength
  double high_freq_factor = 4.0;       // by_wavelength
  double beta_fast = 32.0;             // yarn
  double beta_slow = 1.0;              // yarn
  bool whole_dimensions = true;        // yarn: the ramp begins and ends at whole dimensions
  double attention_factor = 1.0;       // multiplies cos and sin
  // by_frequency: the divisors of the rotary_dim / 2 frequencies
  std::vector<float> frequency_divisors = {};

  bool operator==(const RopeConfig&) const = default;
};

class Rope {
 public:
  // The first rotary_dim elements of each head are rotated (in most models all); even.
  Rope(const RopeConfig& config, int64_t rotary_dim, Backend& backend);

  // [rows, rotary_dim / 2, 2] cosines and sines, taken from `scratch`.
  Tensor table(Backend& backend, std::span<const int32_t> positions, Scratch& scratch) const;
  // The same written to `table`.
  void write_table(Backend& backend, std::span<const int32_t> positions, const Tensor& table) const;
  int64_t num_frequencies() const { return inv_freq_.view.size(0); }

 private:
  OwnedTensor inv_freq_;  // [rotary_dim / 2] float32
  float attention_factor_;
};

}  // namespace paceline
