#include "models/rope_fields.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace paceline {
namespace {

constexpr std::string_view kOriginalContext = "original_max_position_embeddings";
constexpr double kLargestDivisor = 1e6;

// The object that describes a rope, and its surroundings.
struct RopeSource {
  HfConfig rope;
  HfConfig config;
  RopeFields kind;
  bool nested = false;  // in an object for each kind of layer
  double theta = 0;
  int64_t max_position = 0;
  int64_t rotary_dim = 0;
};

// The magnitude correction of YaRN for a context stretched `factor` times.
double yarn_magnitude(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

// An mscale of 0 counts as absent, as in transformers.
double read_yarn_attention_factor(const HfConfig& rope, double factor) {
  if (rope.has("attention_factor")) return rope.number("attention_factor");
  const double mscale = rope.number("mscale");
  const double mscale_all_dim = rope.number("mscale_all_dim");
  if (mscale == 0.0 || mscale_all_dim == 0.0) return yarn_magnitude(factor, 1.0);
  return yarn_magnitude(factor, mscale) / yarn_magnitude(factor, mscale_all_dim);
}

// The context before scaling. With one object for all layers, the top level takes precedence, and
// so does the default of a family whose class has the field there.
double read_original_context(const RopeSource& source) {
  const bool at_the_top = !source.nested && source.config.has(kOriginalContext);
  const int64_t of_family = source.kind.default_original_context;
  if (!at_the_top && of_family > 0) return static_cast<double>(of_family);
  const HfConfig& holder = at_the_top ? source.config : source.rope;
  return static_cast<double>(holder.integer(kOriginalContext, source.max_position));
}

std::vector<float> read_divisors(const HfConfig& rope, std::string_view key) {
  constexpr NumberRange kDivisors = {.min = 1.0 / kLargestDivisor, .max = kLargestDivisor};
  const auto found = rope.find(key);
  if (!found) rope.invalid(key, "missing, expected a list of numbers");
  std::vector<float> divisors;
  for (const JsonCursor& item : found->items()) {
    divisors.push_back(static_cast<float>(item.number(kDivisors)));
  }
  return divisors;
}

// The factor of the angles of a context stretched from `original`; 1 when it isn't (LongRoPE).
double read_longrope_attention_factor(const RopeSource& source) {
  const HfConfig& rope = source.rope;
  if (rope.has("attention_factor")) return rope.number("attention_factor");
  const double original = read_original_context(source);
  const double factor = rope.has("factor") ? rope.number("factor")
                                           : static_cast<double>(source.max_position) / original;
  if (factor <= 1.0) return 1.0;
  if (original <= 1.0) {
    rope.invalid(kOriginalContext, fmt::format("{}, longrope needs more than 1", original));
  }
  return std::sqrt(1.0 + std::log(factor) / std::log(original));
}

// LongRoPE (Ding et al., 2024): each frequency has its own divisor, and another one in sequences
// beyond the original context (transformers' _compute_longrope_parameters).
RopeConfig read_divided(const RopeSource& source) {
  const HfConfig& rope = source.rope;
  const int64_t rotary_dim = source.rotary_dim;
  RopeConfig divided{.theta = source.theta, .scaling = RopeScaling::by_frequency};
  const auto read = [&](std::string_view key) {
    std::vector<float> divisors = read_divisors(rope, key);
    if (std::ssize(divisors) == rotary_dim / 2) return divisors;
    rope.invalid(key, fmt::format("{} factors, expected {}, one for each two of the {} rotated "
                                  "elements of a head",
                                  divisors.size(), rotary_dim / 2, rotary_dim));
  };
  divided.long_divisors = read("long_factor");
  divided.frequency_divisors = read("short_factor");
  if (source.kind.has_mscales) {
    divided.attention_factor = rope.number("short_mscale");
    divided.long_attention_factor = rope.number("long_mscale");
  } else {
    divided.attention_factor = read_longrope_attention_factor(source);
    if (divided.long_divisors == divided.frequency_divisors) divided.long_divisors.clear();
  }
  if (!divided.long_divisors.empty()) divided.original_max_position = read_original_context(source);
  return divided;
}

RopeConfig read_dynamic(const RopeSource& source) {
  if (source.rotary_dim <= 2) {
    source.rope.unsupported("rope_type", "dynamic with 2 rotated elements of a head has no base");
  }
  if (source.kind.may_have_alpha && source.rope.has("alpha")) {
    const auto width = static_cast<double>(source.rotary_dim);
    return {.theta = source.theta * std::pow(source.rope.number("alpha"), width / (width - 2.0))};
  }
  return {.theta = source.theta,
          .scaling = RopeScaling::dynamic,
          .factor = source.rope.number("factor"),
          .original_max_position = static_cast<double>(source.max_position)};
}

RopeConfig read_llama3(const RopeSource& source) {
  const HfConfig& rope = source.rope;
  const RopeConfig read{.theta = source.theta,
                        .scaling = RopeScaling::by_wavelength,
                        .factor = rope.number("factor"),
                        .original_max_position = read_original_context(source),
                        .low_freq_factor = rope.number("low_freq_factor"),
                        .high_freq_factor = rope.number("high_freq_factor")};
  if (read.high_freq_factor > read.low_freq_factor) return read;
  rope.invalid("high_freq_factor",
               fmt::format("{}, expected more than low_freq_factor, which is {}",
                           read.high_freq_factor, read.low_freq_factor));
}

// A factor of null is the ratio of the contexts, as in transformers; an absent one is an error.
double read_yarn_factor(const RopeSource& source, double original) {
  if (!source.rope.is_null("factor")) return source.rope.number("factor");
  return static_cast<double>(source.max_position) / original;
}

RopeConfig read_yarn(const RopeSource& source) {
  const HfConfig& rope = source.rope;
  const auto unless_zero = [&](std::string_view key, double otherwise) {
    const double value = rope.number(key);
    return value == 0.0 ? otherwise : value;
  };
  if (source.theta <= 1.0) {
    rope.invalid("rope_theta", fmt::format("{}, yarn needs more than 1", source.theta));
  }
  const double original = read_original_context(source);
  const double factor = read_yarn_factor(source, original);
  return {.theta = source.theta,
          .scaling = RopeScaling::yarn,
          .factor = factor,
          .original_max_position = original,
          .beta_fast = unless_zero("beta_fast", 32.0),
          .beta_slow = unless_zero("beta_slow", 1.0),
          .whole_dimensions = rope.boolean("truncate", true),
          .attention_factor = read_yarn_attention_factor(rope, factor)};
}

constexpr std::string_view kShare = "partial_rotary_factor";

// Where the share of the head that rotates stands.
const HfConfig& share_holder(const RopeSource& source) {
  return source.rope.has(kShare) ? source.rope : source.config;
}

std::string read_rope_type(const RopeSource& source) {
  const std::string type = source.rope.string("rope_type", source.rope.string("type", "default"));
  return type == "deepseek_yarn" ? "yarn" : type;
}

// Of a stretched rope with mscale_all_dim, whose factor is given then (transformers'
// yarn_apply_mscale in modeling_deepseek_v3).
double read_score_factor(const RopeSource& source) {
  const double share = source.rope.number("mscale_all_dim");
  if (read_rope_type(source) == "default" || share == 0.0) return 1.0;
  const double stretch = source.rope.number("factor");
  const double factor = stretch <= 1.0 ? 1.0 : 0.1 * share * std::log(stretch) + 1.0;
  return factor * factor;
}

bool is_proportional(const RopeSource& source) {
  return source.kind.may_be_proportional && read_rope_type(source) == "proportional";
}

// The first frequencies of a head are those of a whole one, and the others 0 (Gemma 4's and LFM3's
// full attention: _compute_proportional_rope_parameters).
RopeConfig read_proportional(const RopeSource& source) {
  const double share = share_holder(source).number(kShare, 1.0);
  return {
      .theta = source.theta,
      .scaling = RopeScaling::proportional,
      .factor = source.rope.number("factor", 1.0),
      .rotated_pairs = static_cast<int64_t>(share * static_cast<double>(source.rotary_dim) / 2.0)};
}

RopeConfig read_rope(const RopeSource& source) {
  const HfConfig& rope = source.rope;
  std::string type = read_rope_type(source);
  if (source.kind.every_scaling_is_longrope) {
    if (type == "su" || type == "yarn") type = "longrope";
    if (type != "default" && type != "longrope") {
      rope.unsupported("rope_type", fmt::format("{} isn't supported in this family; default and "
                                                "longrope are",
                                                shown_text(type)));
    }
  }
  if (source.kind.may_be_of_images && type == "mrope") type = "default";
  if (type == "default") return {.theta = source.theta};
  if (is_proportional(source)) return read_proportional(source);
  if (type == "linear") {
    return {.theta = source.theta,
            .scaling = RopeScaling::linear,
            .factor = rope.number("factor"),
            .original_max_position = static_cast<double>(source.max_position)};
  }
  if (type == "dynamic") return read_dynamic(source);
  if (type == "llama3") return read_llama3(source);
  if (type == "yarn") return read_yarn(source);
  if (type == "longrope") return read_divided(source);
  rope.unsupported("rope_type",
                   fmt::format("{} isn't supported; default, linear, dynamic, llama3, yarn and "
                               "longrope are",
                               shown_text(type)));
}

// A non-empty object; else nothing.
std::optional<JsonCursor> find_object(const HfConfig& config, std::string_view key) {
  auto found = config.find(key);
  if (found && found->object().empty()) found.reset();
  return found;
}

// `only`: the model has one kind of layer, whose rope needn't be nested.
std::optional<JsonCursor> find_parameters(const HfConfig& config, const RopeFields& kind,
                                          bool only) {
  const auto parameters = find_object(config, "rope_parameters");
  if (only || !parameters) return parameters;
  for (const std::string_view layer_type : {"full_attention", "sliding_attention"}) {
    if (parameters->contains(layer_type)) return parameters->find(kind.layer_type);
  }
  config.invalid("rope_parameters",
                 "expected an object for each kind of layer: full_attention, sliding_attention");
}

RopeSource find_rope(const HfConfig& config, const RopeFields& kind, bool only,
                     int64_t max_position) {
  static const Json empty = Json(Json::Object());
  const auto scaling = kind.scaled ? find_object(config, "rope_scaling") : std::nullopt;
  auto found = find_parameters(config, kind, only);
  if (scaling && found && !only) {
    config.invalid("rope_scaling", "found beside rope_parameters; remove one of the two");
  }
  if (scaling) found = scaling;
  const auto nested = found ? found->find(kind.layer_type) : std::nullopt;
  if (nested) found = nested;
  if (!found) {
    const Json& otherwise = kind.otherwise != nullptr ? *kind.otherwise : empty;
    found = config.object().below("rope_parameters", otherwise);
    if (!only) found = found->below(kind.layer_type, otherwise);
  }
  RopeSource source{.rope = HfConfig(*found),
                    .config = config,
                    .kind = kind,
                    .nested = nested || !only,
                    .max_position = max_position};
  const double theta = kind.theta_key.empty() ? kind.default_theta
                                              : config.number(kind.theta_key, kind.default_theta);
  source.theta = source.rope.number("rope_theta", theta);
  return source;
}

// The rotated elements of a head, rounded down; an odd number is stretched by one (transformers).
int64_t rotated_share_of(const RopeSource& source, int64_t head_dim) {
  const HfConfig& holder = share_holder(source);
  const std::string_view key = source.rope.has(kShare) ? kShare : source.kind.share_key;
  const double share =
      is_proportional(source) ? 1.0 : holder.number(key, source.kind.default_share);
  if (share != 1.0 && !source.kind.rotates_part) {
    holder.unsupported(key, fmt::format("{} isn't supported in this family, whose heads rotate as "
                                        "a whole; 1 is",
                                        share));
  }
  const auto rotary_dim = static_cast<int64_t>(static_cast<double>(head_dim) * share);
  const bool is_whole_odd = rotary_dim == head_dim && head_dim % 2 != 0;
  if (rotary_dim >= 2 && !is_whole_odd) return rotary_dim;
  holder.invalid(
      holder.has(key) ? key : "head_dim",
      fmt::format("{} of a head's {} elements rotate, expected an even number, or a part "
                  "of the head of at least 2",
                  rotary_dim, head_dim));
}

}  // namespace

bool describes_rope(const HfConfig& config) {
  return find_object(config, "rope_scaling") || find_object(config, "rope_parameters");
}

void read_ropes(const HfConfig& config, std::initializer_list<RopeFields> kinds,
                DecoderConfig& decoder) {
  for (const RopeFields& kind : kinds) {
    RopeSource source = find_rope(config, kind, kinds.size() == 1, decoder.max_position);
    const int64_t share =
        rotated_share_of(source, kind.head_dim > 0 ? kind.head_dim : decoder.head_dim);
    source.rotary_dim = share + share % 2;
    if (decoder.ropes.empty()) decoder.rotary_dim = source.rotary_dim;
    decoder.ropes.push_back(read_rope(source));
    if (source.rotary_dim != decoder.rotary_dim) {
      decoder.ropes.back().rotary_dim = source.rotary_dim;
    }
    if (share % 2 != 0) decoder.ropes.back().exponent_divisor = share;
    if (kind.scales_scores) {
      decoder.attention_scale =
          static_cast<float>(double{decoder.attention_scale} * read_score_factor(source));
    }
    if (kind.grows_queries) {
      decoder.query_growth = {.beta = source.rope.number("llama_4_scaling_beta"),
                              .context = static_cast<int64_t>(read_original_context(source))};
    }
  }
}

}  // namespace paceline
