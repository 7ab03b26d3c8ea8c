#include "models/delta_net_fields.h"

#include <fmt/format.h>

namespace paceline {

DeltaNetConfig read_delta_net(const HfConfig& config, const DeltaNetDefaults& defaults) {
  const DeltaNetConfig delta{
      .key_heads = config.integer("linear_num_key_heads", defaults.key_heads),
      .value_heads = config.integer("linear_num_value_heads", defaults.value_heads),
      .key_dim = config.integer("linear_key_head_dim", defaults.key_dim),
      .value_dim = config.integer("linear_value_head_dim", defaults.value_dim),
      .taps = config.integer("linear_conv_kernel_dim", 4)};
  if (delta.value_heads % delta.key_heads != 0) {
    config.invalid("linear_num_value_heads", fmt::format("{} isn't a multiple of the {} key heads",
                                                         delta.value_heads, delta.key_heads));
  }
  return delta;
}

}  // namespace paceline
