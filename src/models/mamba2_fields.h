// Reads the fields of config.json that describe Mamba 2 layers, which families name differently.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/hf_config.h"

namespace paceline {

// A family's defaults, and what its fields are called.
struct Mamba2Fields {
  std::string_view heads = "mamba_n_heads";
  std::string_view head_dim = "mamba_d_head";  // "auto": inner columns / heads
  std::string_view groups = "mamba_n_groups";
  std::string_view state_size = "mamba_d_state";
  std::string_view taps = "mamba_d_conv";
  std::string_view convolution_bias = "mamba_conv_bias";
  std::string_view projection_bias = "mamba_proj_bias";
  int64_t default_heads = 128;
  int64_t default_groups = 1;
  int64_t default_state_size = 256;
};

// Sets `mamba2` of a decoder with such layers, whose heads have `inner` columns together. Its
// layers, norm_eps and activation must be set. Throws Error invalid naming a field that contradicts
// another.
void read_mamba2(const HfConfig& config, const Mamba2Fields& fields, int64_t inner,
                 DecoderConfig& decoder);

// The fields and names of Bamba's blocks, which Falcon-H1 shares, but for their layers.
void read_bamba_block(const HfConfig& config, DecoderConfig& decoder);

// mamba_expand * hidden_size.
int64_t read_expanded_size(const HfConfig& config, int64_t hidden_size);

}  // namespace paceline
