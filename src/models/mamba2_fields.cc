#include "models/mamba2_fields.h"

#include <fmt/format.h>

namespace paceline {
namespace {

// A bound of time_step_limit; transformers 5 writes an infinite one as {"__float__": "Infinity"}.
float read_bound(const JsonCursor& bound) {
  constexpr std::string_view kTag = "__float__";
  constexpr double kLargest = 1e30;
  if (bound.is_object()) {
    const std::string& name = bound.at(kTag).string();
    if (name == "Infinity") return std::numeric_limits<float>::infinity();
    bound.at(kTag).fail(ErrorCode::invalid, fmt::format("{}, expected Infinity", shown_text(name)));
  }
  return static_cast<float>(bound.number({.min = 0, .max = kLargest}));
}

GateRange read_time_steps(const HfConfig& config) {
  constexpr std::string_view kLimit = "time_step_limit";
  GateRange range;
  const auto found = config.find(kLimit);
  if (!found) return range;
  const auto bounds = found->items();
  if (bounds.size() != 2) {
    config.invalid(kLimit, fmt::format("{} numbers, expected 2, the least and the most time step",
                                       bounds.size()));
  }
  range = {.low = read_bound(bounds[0]), .high = read_bound(bounds[1])};
  if (range.low > range.high) config.invalid(kLimit, "the least time step is above the most");
  return range;
}

int64_t read_head_columns(const HfConfig& config, const Mamba2Fields& fields, int64_t inner,
                          int64_t heads) {
  const auto found = config.find(fields.head_dim);
  const bool is_automatic = !found || (found->is_string() && found->string() == "auto");
  const int64_t head_dim = is_automatic ? inner / heads : config.integer(fields.head_dim);
  if (head_dim * heads != inner) {
    config.invalid(
        is_automatic ? fields.heads : fields.head_dim,
        fmt::format("{} heads of {} columns aren't the {} inner columns", heads, head_dim, inner));
  }
  return head_dim;
}

}  // namespace

void read_bamba_block(const HfConfig& config, DecoderConfig& decoder) {
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.output_bias = decoder.qkv_bias;
  decoder.mlp_bias = config.boolean("mlp_bias", false);
  decoder.norms = {.before_attention = "input_layernorm", .before_mlp = "pre_ff_layernorm"};
  decoder.final_norm = "final_layernorm";
  decoder.mlp = "feed_forward";
}

int64_t read_expanded_size(const HfConfig& config, int64_t hidden_size) {
  return config.integer("mamba_expand", 2) * hidden_size;
}

void read_mamba2(const HfConfig& config, const Mamba2Fields& fields, int64_t inner,
                 DecoderConfig& decoder) {
  if (!decoder.has_states()) return;
  Mamba2Config mamba{.heads = config.integer(fields.heads, fields.default_heads),
                     .groups = config.integer(fields.groups, fields.default_groups),
                     .state_size = config.integer(fields.state_size, fields.default_state_size),
                     .state_size_field = std::string(fields.state_size),
                     .taps = config.integer(fields.taps, 4),
                     .convolution_bias = config.boolean(fields.convolution_bias, true),
                     .input_bias = config.boolean(fields.projection_bias, false),
                     .activation = decoder.activation,
                     .norm_eps = decoder.norm_eps,
                     .time_steps = read_time_steps(config)};
  mamba.head_dim = read_head_columns(config, fields, inner, mamba.heads);
  mamba.output_bias = mamba.input_bias;
  if (mamba.heads % mamba.groups != 0) {
    config.invalid(fields.groups,
                   fmt::format("{} groups don't divide the {} heads", mamba.groups, mamba.heads));
  }
  decoder.mamba2 = mamba;
}

}  // namespace paceline
