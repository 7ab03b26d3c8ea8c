// Reads the fields of config.json that describe Mamba 1 layers, which families name differently.
#pragma once

#include <string_view>

#include "models/hf_config.h"

namespace paceline {

// What a family calls its fields.
struct Mamba1Fields {
  std::string_view expand;
  std::string_view state_size;
  std::string_view step_rank;  // "auto": a 16th of the hidden size, rounded up
  std::string_view taps;
  std::string_view convolution_bias;
  std::string_view projection_bias;
};

// Sets `mamba1` of a decoder with such layers, without norms. Its layers, hidden_size and
// activation must be set.
void read_mamba1(const HfConfig& config, const Mamba1Fields& fields, DecoderConfig& decoder);

}  // namespace paceline
