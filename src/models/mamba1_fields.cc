#include "models/mamba1_fields.h"

#include "base/divide_up.h"

namespace paceline {

void read_mamba1(const HfConfig& config, const Mamba1Fields& fields, DecoderConfig& decoder) {
  if (!decoder.has_states()) return;
  constexpr int64_t kUsualShare = 16;
  const auto rank = config.find(fields.step_rank);
  const bool is_automatic = !rank || (rank->is_string() && rank->string() == "auto");
  decoder.mamba1 =
      Mamba1Config{.inner = config.integer(fields.expand, 2) * decoder.hidden_size,
                   .state_size = config.integer(fields.state_size, 16),
                   .state_size_field = std::string(fields.state_size),
                   .step_rank = is_automatic ? divide_up(decoder.hidden_size, kUsualShare)
                                             : config.integer(fields.step_rank),
                   .taps = config.integer(fields.taps, 4),
                   .convolution_bias = config.boolean(fields.convolution_bias, true),
                   .has_bias = config.boolean(fields.projection_bias, false),
                   .activation = decoder.activation};
}

}  // namespace paceline
