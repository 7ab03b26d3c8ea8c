#include "load/gguf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/json_cursor.h"
#include "layers/rope_frequencies.h"
#include "models/hf_config.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

// Adds keys of one architecture.
class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufArchitecture& architecture, GgufHeader& header)
      : architecture_(architecture), header_(header) {}

  const GgufArchitecture& architecture() const { return architecture_; }
  void size(std::string_view name, int64_t value) {
    if (!header_.has_key(key(name))) header_.add_size(key(name), static_cast<uint32_t>(value));
  }
  void number(std::string_view name, double value) {
    if (!header_.has_key(key(name))) header_.add_number(key(name), static_cast<float>(value));
  }
  void boolean(std::string_view name, bool value) { header_.add_boolean(key(name), value); }
  void string(std::string_view name, std::string_view value) {
    header_.add_string(key(name), value);
  }
  void integers(std::string_view name, const std::vector<int32_t>& values) {
    header_.add_integers(key(name), values);
  }
  void booleans(std::string_view name, const std::vector<bool>& values) {
    header_.add_booleans(key(name), values);
  }

 private:
  std::string key(std::string_view name) const {
    return fmt::format("{}.{}", architecture_.name, name);
  }

  const GgufArchitecture& architecture_;
  GgufHeader& header_;
};

[[noreturn]] void refuse_config(std::string_view where, const std::string& what) {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {}", where, what));
}

// Fields of config.json that are keys, where the model's family reads them.
void add_own_fields(const Json& json, std::string_view where, ArchitectureKeys& keys) {
  constexpr std::string_view kFurtherLayers = "nextn_predict_layers";  // which aren't written
  const JsonCursor root(json, std::string(where));
  const auto nested = root.find("text_config");
  const HfConfig config(nested ? *nested : root);
  for (const GgufNamePair& field : keys.architecture().fields) {
    if (config.has(field.ours)) keys.number(field.theirs, config.number(field.ours));
  }
  for (const GgufNamePair& field : keys.architecture().sizes) {
    if (field.theirs == kFurtherLayers || !config.has(field.ours)) continue;
    keys.size(field.theirs, config.integer(field.ours));
  }
}

// The magnitude correction of YaRN.
double yarn_magnitude(double factor) { return factor <= 1.0 ? 1.0 : 1.0 + 0.1 * std::log(factor); }

constexpr double kTolerance = 2e-6;  // of numbers that files have as float32

bool is_near(double a, double b) { return std::abs(a - b) <= kTolerance * std::abs(b); }

void add_yarn(const RopeConfig& rope, ArchitectureKeys& keys) {
  constexpr double kUsualFast = 32.0, kUsualSlow = 1.0;
  keys.string("rope.scaling.type", "yarn");
  keys.number("rope.scaling.factor", rope.factor);
  keys.size("rope.scaling.original_context_length",
            static_cast<int64_t>(rope.original_max_position));
  if (rope.beta_fast != kUsualFast) keys.number("rope.scaling.yarn_beta_fast", rope.beta_fast);
  if (rope.beta_slow != kUsualSlow) keys.number("rope.scaling.yarn_beta_slow", rope.beta_slow);
  const bool is_usual = is_near(rope.attention_factor, yarn_magnitude(rope.factor));
  if (!is_usual && !keys.architecture().has_latents) {
    keys.number("rope.scaling.yarn_attn_factor", rope.attention_factor);
  }
}

// What divides the frequencies of a plain rope.
std::vector<float> divisors_of(const RopeConfig& rope, int64_t rotary_dim) {
  const auto plain = rope_frequencies({.theta = rope.theta}, rotary_dim, 0);
  auto divisors = rope_frequencies(rope, rotary_dim, 0);
  for (size_t i = 0; i < divisors.size(); ++i) divisors[i] = plain[i] / divisors[i];
  return divisors;
}

GgufTables add_scaling(const RopeConfig& rope, const DecoderConfig& config, std::string_view where,
                       ArchitectureKeys& keys) {
  GgufTables tables;
  switch (rope.scaling) {
    case RopeScaling::none:
      return tables;
    case RopeScaling::linear:
      keys.string("rope.scaling.type", "linear");
      keys.number("rope.scaling.factor", rope.factor);
      return tables;
    case RopeScaling::yarn:
      add_yarn(rope, keys);
      return tables;
    case RopeScaling::by_wavelength:
      tables["rope_freqs.weight"] = divisors_of(rope, config.rotary_dim);
      return tables;
    case RopeScaling::by_frequency:
      if (rope.attention_factor != 1.0) {
        keys.number("rope.scaling.attn_factor", rope.attention_factor);
      }
      if (keys.architecture().rope != GgufRope::long_factors) {
        tables["rope_freqs.weight"] = rope.frequency_divisors;
        return tables;
      }
      tables["rope_factors_short.weight"] = rope.frequency_divisors;
      tables["rope_factors_long.weight"] =
          rope.long_divisors.empty() ? rope.frequency_divisors : rope.long_divisors;
      if (rope.original_max_position > 0) {
        keys.size("rope.scaling.original_context_length",
                  static_cast<int64_t>(rope.original_max_position));
      }
      return tables;
    default:
      refuse_config(
          where,
          "its rope's scaling has no keys in GGUF files; linear, yarn, longrope and llama3 "
          "have some");
  }
}

GgufTables add_ropes(const DecoderConfig& config, std::string_view where, ArchitectureKeys& keys) {
  if (config.ropes.empty()) return {};
  keys.size("rope.dimension_count", config.rotary_dim);
  if (keys.architecture().has_position_sections) {
    // Positions of a text are the same in all sections, so one may have all frequencies.
    keys.integers("rope.dimension_sections",
                  {static_cast<int32_t>(config.rotary_dim / 2), 0, 0, 0});
  }
  keys.number("rope.freq_base", config.ropes[0].theta);
  if (config.ropes.size() > 1) keys.number("rope.freq_base_swa", config.ropes[1].theta);
  if (keys.architecture().rope == GgufRope::growing) {
    keys.number("attention.temperature_scale", config.query_growth.beta);
    keys.size("attention.temperature_length", config.query_growth.context);
  }
  return add_scaling(config.ropes[0], config, where, keys);
}

// Windows, and which layers have one where that isn't the architecture's pattern.
void add_windows(const DecoderConfig& config, ArchitectureKeys& keys) {
  const int64_t pattern = keys.architecture().window_pattern;
  int64_t window = 0;
  std::vector<bool> windowed;
  bool is_usual = true;
  for (const LayerConfig& layer : config.layers) {
    window = std::max(window, layer.window);
    const auto index = static_cast<int64_t>(windowed.size());
    windowed.push_back(layer.window > 0);
    is_usual &= windowed.back() == (pattern == 0 || (index + 1) % pattern != 0);
  }
  if (window > 0 || keys.architecture().default_window > 0) {
    keys.size("attention.sliding_window", window);
  }
  if (window > 0 && !is_usual) keys.booleans("attention.sliding_window_pattern", windowed);
}

void add_mixture(const DecoderConfig& config, ArchitectureKeys& keys) {
  const MixtureConfig& mixture = *config.mixture;
  const RoutingParams& routing = mixture.routing;
  const GgufArchitecture& architecture = keys.architecture();
  keys.size("expert_count", routing.num_experts);
  keys.size("expert_used_count", routing.experts_per_token);
  keys.size("expert_feed_forward_length", mixture.expert_size);
  if (mixture.shared_size > 0) keys.size("expert_shared_feed_forward_length", mixture.shared_size);
  // 3 of gpt-oss: of the chosen logits alone.
  const int64_t softmax = architecture.expert_gating == 3 ? 3 : 1;
  keys.size("expert_gating_func", routing.score == ExpertScore::sigmoid ? 2 : softmax);
  keys.boolean("expert_weights_norm", routing.normalise);
  if (config.convolution) {
    const auto is_mixture = [](const LayerConfig& layer) { return layer.is_mixture; };
    const auto dense = std::ranges::find_if(config.layers, is_mixture) - config.layers.begin();
    keys.size("leading_dense_block_count", dense);
  }
  if (routing.num_groups > 1) {
    keys.size("expert_group_count", routing.num_groups);
    keys.size("expert_group_used_count", routing.groups_kept);
  }
  if (routing.scale != 1.0f) keys.number("expert_weights_scale", routing.scale);
}

// Layers that aren't attention, for architectures whose files list them.
std::vector<bool> recurrent_layers_of(const DecoderConfig& config) {
  std::vector<bool> recurrent;
  for (const LayerConfig& layer : config.layers) {
    recurrent.push_back(layer.mixer != MixerKind::attention);
  }
  return recurrent;
}

void add_delta_nets(const DecoderConfig& config, ArchitectureKeys& keys) {
  constexpr int64_t kUsualInterval = 4;
  const DeltaNetConfig& net = *config.delta_net;
  keys.size("ssm.conv_kernel", net.taps);
  keys.size("ssm.state_size", net.key_dim);
  keys.size("ssm.group_count", net.key_heads);
  keys.size("ssm.time_step_rank", net.value_heads);
  keys.size("ssm.inner_size", net.value_heads * net.value_dim);
  keys.size("full_attention_interval", kUsualInterval);
  const std::vector<bool> recurrent = recurrent_layers_of(config);
  bool is_usual = true;
  for (size_t i = 0; i < recurrent.size(); ++i) {
    is_usual &= recurrent[i] == ((i + 1) % kUsualInterval != 0);
  }
  if (!is_usual) keys.booleans("attention.recurrent_layers", recurrent);
}

void add_latents(const DecoderConfig& config, const Json& json, ArchitectureKeys& keys) {
  const LatentConfig& latent = *config.latent;
  if (latent.query_rank > 0) keys.size("attention.q_lora_rank", latent.query_rank);
  keys.size("attention.kv_lora_rank", latent.rank);
  for (const std::string_view rope : {"rope_parameters", "rope_scaling"}) {
    const Json* const fields = json.find_value(rope);
    const Json* const share = fields == nullptr ? nullptr : fields->find_value("mscale_all_dim");
    if (share == nullptr || !share->number() || *share->number() == 0.0) continue;
    keys.number("rope.scaling.yarn_log_multiplier", 0.1 * *share->number());
    break;
  }
}

// Key heads by layer, 0 where a layer isn't attention.
void add_listed_heads(const DecoderConfig& config, ArchitectureKeys& keys) {
  std::vector<int32_t> heads;
  for (const bool is_recurrent : recurrent_layers_of(config)) {
    heads.push_back(is_recurrent ? 0 : static_cast<int32_t>(config.num_kv_heads));
  }
  keys.integers("attention.head_count_kv", heads);
}

void add_sizes(const DecoderConfig& config, ArchitectureKeys& keys) {
  keys.size("block_count", config.num_stored_layers());
  keys.size("context_length", config.max_position);
  keys.size("embedding_length", config.hidden_size);
  if (config.intermediate_size > 0) keys.size("feed_forward_length", config.intermediate_size);
  keys.size("vocab_size", config.vocab_size);
  keys.size("attention.head_count", config.num_heads);
  if (config.convolution) {
    add_listed_heads(config, keys);
  } else {
    keys.size("attention.head_count_kv", config.num_kv_heads);
  }
  const auto& latent = config.latent;
  keys.size("attention.key_length", latent ? latent->nope_dim + latent->rope_dim : config.head_dim);
  keys.size("attention.value_length", latent ? latent->value_dim : config.head_dim);
  keys.number(config.norm_kind == NormKind::rms ? "attention.layer_norm_rms_epsilon"
                                                : "attention.layer_norm_epsilon",
              config.norm_eps);
}

// What Gemma's files have beside the others'.
void add_scores(const DecoderConfig& config, ArchitectureKeys& keys) {
  if (!keys.architecture().four_norms) return;
  keys.number("attention.scale", config.attention_scale);
  keys.number("attn_logit_softcapping", config.attention_soft_cap);
  keys.number("final_logit_softcapping", config.final_soft_cap);
}

bool same_rope(const RopeConfig& a, const RopeConfig& b, int64_t rotary_dim) {
  if (a == b) return true;
  if (!is_near(a.attention_factor, b.attention_factor) ||
      a.long_divisors.size() != b.long_divisors.size()) {
    return false;
  }
  // A length far beyond the original context shows the long divisors.
  for (const int64_t stretched : {int64_t{0}, int64_t{1} << 30}) {
    const auto found = rope_frequencies(a, rotary_dim, a.stretched_length(stretched));
    const auto expected = rope_frequencies(b, rotary_dim, b.stretched_length(stretched));
    if (!std::ranges::equal(found, expected, is_near)) return false;
  }
  return true;
}

bool same_ropes(const DecoderConfig& a, const DecoderConfig& b) {
  return std::ranges::equal(a.ropes, b.ropes, [&](const RopeConfig& one, const RopeConfig& other) {
    return same_rope(one, other, a.rotary_dim);
  });
}

// Without what is said in another way, or of the files alone.
DecoderConfig comparable(DecoderConfig config, const DecoderConfig& like) {
  config.family = like.family;
  config.dtype = like.dtype;
  config.norm_weight_offset = like.norm_weight_offset;
  config.num_unused_layers = like.num_unused_layers;
  config.tied_head = like.tied_head;
  config.ropes = like.ropes;
  config.mlp = like.mlp;
  config.mlp_names = like.mlp_names;
  config.fused_gate_up = like.fused_gate_up;
  config.fused_qkv = like.fused_qkv;
  if (config.mixture && like.mixture) {
    config.mixture->names = like.mixture->names;
    if (is_near(config.mixture->routing.scale, like.mixture->routing.scale)) {
      config.mixture->routing.scale = like.mixture->routing.scale;
    }
  }
  for (float DecoderConfig::*member :
       {&DecoderConfig::norm_eps, &DecoderConfig::embedding_scale, &DecoderConfig::attention_scale,
        &DecoderConfig::residual_scale, &DecoderConfig::logits_scale}) {
    if (is_near(config.*member, like.*member)) config.*member = like.*member;
  }
  return config;
}

}  // namespace

const GgufArchitecture& architecture_to_write(const DecoderConfig& config, std::string_view where) {
  const GgufArchitecture* const found =
      find_gguf_architecture(config.family, config.mixture.has_value());
  if (found == nullptr) {
    refuse_config(where, fmt::format("model_type {} has no architecture in GGUF files",
                                     quoted_name(config.family)));
  }
  constexpr GgufMixers kWritten[] = {GgufMixers::attention, GgufMixers::delta_nets,
                                     GgufMixers::convolutions};
  if (std::ranges::find(kWritten, found->mixers) == std::end(kWritten)) {
    refuse_config(where,
                  fmt::format("models of architecture {} are read from GGUF files, but not written",
                              found->name));
  }
  return *found;
}

GgufTables add_config_keys(const DecoderConfig& config, const Json& json,
                           const GgufArchitecture& architecture, std::string_view where,
                           GgufHeader& header) {
  if (config.clip_qkv > 0 && architecture.model_type != "olmo") {
    refuse_config(where, fmt::format("clip_qkv: GGUF files of architecture {} have no key for it",
                                     architecture.name));
  }
  header.add_string("general.architecture", architecture.name);
  ArchitectureKeys keys(architecture, header);
  add_own_fields(json, where, keys);
  add_sizes(config, keys);
  add_scores(config, keys);
  add_windows(config, keys);
  if (config.delta_net) add_delta_nets(config, keys);
  if (config.latent) add_latents(config, json, keys);
  if (config.mixture) add_mixture(config, keys);
  return add_ropes(config, where, keys);
}

void check_same_computation(const DecoderConfig& config, const DecoderConfig& read,
                            const GgufArchitecture& architecture, std::string_view where) {
  const DecoderConfig found = comparable(read, config);
  const auto refuse = [&](std::string_view what) {
    refuse_config(where, fmt::format("GGUF files of architecture {} can't describe the model's {}",
                                     architecture.name, what));
  };
  if (!same_ropes(read, config)) refuse("rope");
  if (found.layers != config.layers) refuse("layers: their windows, ropes or mixtures");
  if (found.mixture != config.mixture) refuse("mixture of experts");
  if (found.activation != config.activation) refuse("activation (hidden_act)");
  if (found.attention_scale != config.attention_scale) refuse("scale of attention scores");
  if (found.norms != config.norms) refuse("norms");
  if (found != config) refuse("config");
}

}  // namespace paceline
