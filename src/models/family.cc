#include "models/family.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/error.h"

namespace paceline {
namespace {

constexpr std::array<Family, 7> kFamilies = {{
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"qwen2", read_qwen2},
    {"qwen3", read_qwen3},
    {"gemma2", read_gemma2},
    {"gemma3", read_gemma3},
    {"gemma3_text", read_gemma3},
}};

// The text model's own object inside a multi-modal config.json. Fields that only the outer object
// has (tie_word_embeddings, dtype, vocab_size in some files) are kept.
Json text_config_of(const Json& json, std::string_view where) {
  const Json* nested = json.find_value("text_config");
  if (nested == nullptr) return json;
  Json::Object merged = nested->as_object(fmt::format("{}: text_config", where));
  for (const auto& [key, value] : json.as_object(where)) {
    if (key != "text_config" && nested->find(key) == nullptr) merged.emplace_back(key, value);
  }
  return Json(std::move(merged));
}

std::string family_name(const HfConfig& config, const WeightReader& weights) {
  std::string name = config.string("model_type", "");
  if (!name.empty()) return name;
  return weights.contains("layers.0.self_attn.q_norm.weight") ? "qwen3" : "qwen2";
}

const Family& find_family(const std::string& name, const HfConfig& config) {
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.model_type == name) return family;
    known += known.empty() ? "" : ", ";
    known += family.model_type;
  }
  throw Error(ErrorCode::unsupported, fmt::format("{}: \"{}\" isn't supported; {} are",
                                                  config.path("model_type"), name, known));
}

DType read_weight_dtype(const HfConfig& config) {
  const std::string_view key = config.has("dtype") ? "dtype" : "torch_dtype";
  const std::string name = config.string(key, "float32");
  const auto dtype = parse_dtype(name);
  if (!dtype || *dtype == DType::i32) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: \"{}\" isn't supported; float32, float16 and bfloat16 are",
                            config.path(key), name));
  }
  return *dtype;
}

int64_t read_head_dim(const HfConfig& config, const WeightReader& weights, int64_t num_heads,
                      int64_t fallback) {
  if (config.has("head_dim")) return config.integer("head_dim", {}, {2, 4096});
  if (const auto shape = weights.shape_of("layers.0.self_attn.q_proj.weight")) {
    if (shape->rank() == 2 && (*shape)[0] > 0 && (*shape)[0] % num_heads == 0) {
      return (*shape)[0] / num_heads;
    }
  }
  return fallback;
}

void check_heads(const HfConfig& config, const DecoderConfig& decoder) {
  if (decoder.num_heads % decoder.num_kv_heads != 0) {
    throw Error(ErrorCode::invalid, fmt::format("{}: {} does not divide num_attention_heads {}",
                                                config.path("num_key_value_heads"),
                                                decoder.num_kv_heads, decoder.num_heads));
  }
  if (decoder.head_dim < 2 || decoder.rotary_dim % 2 != 0 || decoder.rotary_dim < 2) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: {} (rotated: {}), expected an even number of at least 2",
                            config.path("head_dim"), decoder.head_dim, decoder.rotary_dim));
  }
}

}  // namespace

std::span<const Family> families() { return kFamilies; }

DecoderConfig read_decoder_config(const Json& json, const WeightReader& weights,
                                  std::string_view where) {
  json.as_object(where);
  const Json text_config = text_config_of(json, where);
  const HfConfig config(text_config, std::string(where));
  const std::string name = family_name(config, weights);
  DecoderConfig decoder = find_family(name, config).read(config, weights);
  decoder.family = name;
  check_heads(config, decoder);
  return decoder;
}

DecoderConfig read_common(const HfConfig& config, const WeightReader& weights,
                          const CommonDefaults& defaults) {
  const auto unless_zero = [](int64_t value) {
    return value == 0 ? std::nullopt : std::optional<int64_t>(value);
  };
  DecoderConfig decoder;
  decoder.vocab_size = config.integer("vocab_size", unless_zero(defaults.vocab_size));
  decoder.hidden_size = config.integer("hidden_size", {}, {1, 1 << 20});
  decoder.intermediate_size = config.integer("intermediate_size", {}, {1, 1 << 22});
  decoder.num_heads =
      config.integer("num_attention_heads", unless_zero(defaults.num_heads), {1, 65536});
  decoder.num_kv_heads = config.integer(
      "num_key_value_heads", unless_zero(defaults.num_kv_heads).value_or(decoder.num_heads),
      {1, decoder.num_heads});
  decoder.head_dim = read_head_dim(
      config, weights, decoder.num_heads,
      unless_zero(defaults.head_dim).value_or(decoder.hidden_size / decoder.num_heads));
  decoder.rotary_dim = static_cast<int64_t>(static_cast<double>(decoder.head_dim) *
                                            config.number("partial_rotary_factor", 1.0));
  decoder.max_position =
      config.integer("max_position_embeddings", defaults.max_position, {1, 1 << 30});
  decoder.norm_eps = static_cast<float>(config.number("rms_norm_eps", 1e-6));
  decoder.attention_scale = 1.0f / std::sqrt(static_cast<float>(decoder.head_dim));
  decoder.tied_head = config.boolean("tie_word_embeddings", defaults.tied_head);
  decoder.dtype = read_weight_dtype(config);
  return decoder;
}

std::vector<LayerConfig> uniform_layers(int64_t num_layers, int64_t window) {
  return std::vector<LayerConfig>(static_cast<size_t>(num_layers), {.window = window});
}

std::vector<LayerConfig> windowed_layers(const std::vector<bool>& sliding, int64_t window) {
  std::vector<LayerConfig> layers;
  for (const bool slides : sliding) layers.push_back({.window = slides ? window : 0});
  return layers;
}

}  // namespace paceline
