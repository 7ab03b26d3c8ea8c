// Rope holds the rotary frequencies of one kind of layer and makes a batch's table of angles.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/operand_span.h"
#include "layers/scratch.h"

namespace paceline {

class Backend;

// The scalings of transformers' modeling_rope_utils. The frequencies of by_frequency with
// long_divisors, and those of dynamic, depend on a sequence's length: see stretched_length.
enum class RopeScaling : uint8_t {
  none,
  linear,
  by_wavelength,
  yarn,
  by_frequency,
  dynamic,
  proportional
};

struct RopeConfig {
  double theta = 10000.0;
  int64_t rotary_dim = 0;  // where it isn't DecoderConfig::rotary_dim; 0: it is
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;
  int64_t rotated_pairs = 0;  // proportional: the others have frequency 0
  // n of the frequencies theta^(-2 i / n); 0: the number of rotated elements.
  int64_t exponent_divisor = 0;
  double original_max_position = 0.0;  // by_wavelength, yarn, dynamic, and with long_divisors
  double low_freq_factor = 1.0;        // by_wavelength
  double high_freq_factor = 4.0;       // by_wavelength
  double beta_fast = 32.0;             // yarn
  double beta_slow = 1.0;              // yarn
  bool whole_dimensions = true;        // yarn: the ramp begins and ends at whole dimensions
  bool backwards = false;              // angles are less than 0
  double attention_factor = 1.0;       // multiplies cos and sin
  double long_attention_factor = 0.0;  // with long_divisors, where they apply; 0: the same
  // by_frequency: the divisors of the rotary_dim / 2 frequencies
  std::vector<float> frequency_divisors = {};
  // Those of sequences beyond the original context; none: the same.
  std::vector<float> long_divisors = {};

  // The length that decides the frequencies of a sequence of up to `length` tokens: the shortest
  // one with the same frequencies; 0 within the original context, or where no length changes them.
  int64_t stretched_length(int64_t length) const;

  bool operator==(const RopeConfig&) const = default;
};

// Rows [first_row, first_row + num_rows) of a batch have the frequencies of a stretched length.
struct StretchedRows {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t length = 0;  // RopeConfig::stretched_length, more than 0
};

// What Rope::table() takes of the arena: [rows, num_frequencies, 2].
Tensor take_rope_table(Scratch& scratch, int64_t rows, int64_t num_frequencies);

class Rope {
 public:
  // The first rotary_dim elements of each head are rotated (in most models all); even.
  Rope(const RopeConfig& config, int64_t rotary_dim, Backend& backend);

  // [rows, rotary_dim / 2, 2] cosines and sines, taken from `scratch`.
  Tensor table(Backend& backend, Indices<int32_t> positions,
               std::span<const StretchedRows> stretched, Scratch& scratch) const;
  // The same written to `table`.
  void write_table(Backend& backend, Indices<int32_t> positions,
                   std::span<const StretchedRows> stretched, const Tensor& table) const;
  int64_t num_frequencies() const { return inv_freq_.view.size(0); }

 private:
  RopeConfig config_;
  int64_t rotary_dim_;
  OwnedTensor inv_freq_;       // [rotary_dim / 2] float32
  OwnedTensor long_inv_freq_;  // the same, of long_divisors; else empty
  float attention_factor_, long_attention_factor_;
};

}  // namespace paceline
