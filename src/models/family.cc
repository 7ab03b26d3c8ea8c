#include "models/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "models/field_rules.h"
#include "models/refused_kinds.h"
#include "models/score_layers.h"

namespace paceline {
namespace {

constexpr std::string_view kTiedHead = "tie_word_embeddings";

constexpr auto kFamilies = std::to_array<Family>({
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"iquestcoder", read_iquestcoder},
    {"internlm3", read_internlm3},
    {"apertus", read_apertus},
    {"seed_oss", read_seed_oss},
    {"arcee", read_arcee},
    {"helium", read_helium},
    {"ernie4_5", read_ernie4_5},
    {"cwm", read_cwm},
    {"ministral", read_ministral},
    {"qwen2", read_qwen2},
    {"qwen3", read_qwen3},
    {"qwen2_vl", read_qwen2_vl},
    {"qwen2_vl_text", read_qwen2_vl},
    {"qwen2_5_vl", read_qwen2_vl},
    {"qwen2_5_vl_text", read_qwen2_vl},
    {"qwen3_vl", read_qwen3_vl},
    {"qwen3_vl_text", read_qwen3_vl},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3", read_gemma3},
    {"gemma3_text", read_gemma3},
    {"gemma3n", read_gemma3n},
    {"gemma3n_text", read_gemma3n},
    {"gemma4", read_gemma4},
    {"gemma4_text", read_gemma4},
    {"gemma4_unified", read_gemma4_unified},
    {"gemma4_unified_text", read_gemma4_unified},
    {"phi3", read_phi3},
    {"smollm3", read_smollm3},
    {"olmo2", read_olmo2},
    {"olmo3", read_olmo3},
    {"granite", read_granite},
    {"glm", read_glm},
    {"glm4", read_glm4},
    {"exaone4", read_exaone4},
    {"cohere", read_cohere},
    {"cohere2", read_cohere2},
    {"stablelm", read_stablelm},
    {"starcoder2", read_starcoder2},
    {"ministral3", read_ministral3},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3_moe", read_qwen3_moe},
    {"mellum", read_mellum},
    {"qwen3_next", read_qwen3_next},
    {"qwen3_5", read_qwen3_5},
    {"qwen3_5_text", read_qwen3_5},
    {"qwen3_5_moe", read_qwen3_5_moe},
    {"qwen3_5_moe_text", read_qwen3_5_moe},
    {"olmo_hybrid", read_olmo_hybrid},
    {"lfm2", read_lfm2},
    {"lfm2_moe", read_lfm2_moe},
    {"lfm3", read_lfm3},
    {"olmoe", read_olmoe},
    {"mixtral", read_mixtral},
    {"glm4_moe", read_glm4_moe},
    {"solar_open", read_solar_open},
    {"dots1", read_dots1},
    {"minimax_m2", read_minimax_m2},
    {"deepseek_v2", read_deepseek_v2},
    {"deepseek_v3", read_deepseek_v3},
    {"kimi_k2", read_deepseek_v3},
    {"sarvam_mla", read_sarvam_mla},
    {"glm4_moe_lite", read_glm4_moe_lite},
    {"youtu", read_youtu},
    {"mistral4", read_mistral4},
    {"minicpm3", read_minicpm3},
    {"kimi_linear", read_kimi_linear},
    {"gpt_oss", read_gpt_oss},
    {"granitemoe", read_granite_moe},
    {"granitemoeshared", read_granite_moe_shared},
    {"granitemoehybrid", read_granite_moe_hybrid},
    {"mamba", read_mamba},
    {"falcon_mamba", read_falcon_mamba},
    {"jamba", read_jamba},
    {"mamba2", read_mamba2_alone},
    {"bamba", read_bamba},
    {"falcon_h1", read_falcon_h1},
    {"bert", read_bert},
    {"roberta", read_roberta},
    {"camembert", read_roberta},
    {"xlm-roberta", read_roberta},
    {"distilbert", read_distilbert},
    {"modernbert", read_modernbert},
    {"nomic_bert", read_nomic_bert},
    {"gte", read_gte},
    {"new", read_new_gte},
    {"eurobert", read_eurobert},
    {"mpnet", read_mpnet},
    {"deberta-v2", read_deberta_v2},
    {"nemotron_h", read_nemotron_h},
    {"nemotron", read_nemotron},
    {"hunyuan_v1_dense", read_hunyuan},
    {"hunyuan_v1_moe", read_hunyuan_moe},
    {"ernie4_5_moe", read_ernie4_5_moe},
    {"olmo", read_olmo},
    {"phi", read_phi},
    {"gpt_neox", read_gpt_neox},
    {"gptj", read_gptj},
    {"gpt2", read_gpt2},
    {"gpt_bigcode", read_gpt_bigcode},
    {"opt", read_opt},
    {"falcon", read_falcon},
    {"bloom", read_bloom},
    {"mpt", read_mpt},
    {"codegen", read_codegen},
    {"nanochat", read_nanochat},
    {"granite_swa", read_granite_swa},
    {"granitemoe_swa", read_granite_moe_swa},
    {"sarvam_moe", read_sarvam_moe},
    {"exaone_moe", read_exaone_moe},
    {"phimoe", read_phimoe},
    {"llama4", read_llama4},
    {"llama4_text", read_llama4},
    {"biogpt", read_biogpt},
    {"xglm", read_xglm},
    {"gpt-sw3", read_gpt2},
    {"gpt_neo", read_gpt_neo},
    {"persimmon", read_persimmon},
    {"exaone", read_exaone},
    {"jais2", read_jais2},
    {"flex_olmo", read_flex_olmo},
    {"vaultgemma", read_vaultgemma},
    {"hyperclovax", read_hyperclovax},
});

// The text model's object inside a multi-modal config.json, with missing fields from the outer one
// (dtype, vocab_size in some files). The head belongs to the outer model, so an outer
// tie_word_embeddings takes precedence, as in transformers 5.
Json text_config_of(const JsonCursor& root) {
  const auto nested = root.find("text_config");
  if (!nested) return root.node().json();
  const bool outer_tie = root.find(kTiedHead).has_value();
  Json::Object merged;
  for (const auto& [key, value] : nested->object()) {
    if (key != kTiedHead || !outer_tie) merged.emplace_back(key, value);
  }
  for (const auto& [key, value] : root.object()) {
    const bool wins = key == kTiedHead && outer_tie;
    if (key != "text_config" && (wins || !nested->contains(key))) {
      merged.emplace_back(key, value);
    }
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
  config.unsupported("model_type", unsupported_words(name, known));
}

const Family& find_checked_family(const std::string& name, const HfConfig& config) {
  const Family& family = find_family(name, config);
  check_refused_fields(config, name);
  return family;
}

DType read_weight_dtype(const HfConfig& config) {
  const std::string_view key = config.has("dtype") ? "dtype" : "torch_dtype";
  const std::string name = config.string(key, "float32");
  const auto dtype = parse_dtype(name);
  if (!dtype || *dtype == DType::i32) {
    config.unsupported(key, fmt::format("{} isn't supported; float32, float16 and bfloat16 are",
                                        shown_text(name)));
  }
  return *dtype;
}

int64_t read_head_dim(const HfConfig& config, const WeightReader& weights,
                      const DecoderConfig& decoder, const CommonDefaults& defaults) {
  const int64_t num_heads = decoder.num_heads;
  const int64_t fallback = defaults.head_dim.value_or(decoder.hidden_size / num_heads);
  if (defaults.names.head_dim.empty()) return fallback;
  if (config.has("head_dim")) return config.integer("head_dim");
  if (const auto shape = weights.shape_of("layers.0.self_attn.q_proj.weight")) {
    if (shape->rank() == 2 && (*shape)[0] > 0 && (*shape)[0] % num_heads == 0) {
      return (*shape)[0] / num_heads;
    }
  }
  return fallback;
}

void check_heads(const HfConfig& config, const DecoderConfig& decoder) {
  if (decoder.num_heads % decoder.num_kv_heads != 0) {
    config.invalid("num_key_value_heads", fmt::format("{} does not divide num_attention_heads {}",
                                                      decoder.num_kv_heads, decoder.num_heads));
  }
  constexpr int64_t kMaxHeadDim = 4096;
  if (decoder.head_dim < 2 || decoder.head_dim > kMaxHeadDim) {
    config.invalid("head_dim", fmt::format("hidden_size / num_attention_heads is {}, expected 2 "
                                           "to {}",
                                           decoder.head_dim, kMaxHeadDim));
  }
}

// Attention in both directions, with the windows that transformers makes of `sliding_window`. Of
// `use_bidirectional_attention` it takes half the window on either side (modeling_gemma3), of
// `is_causal: false` the whole window on either side, its end included (masking_utils).
// In Gemma 4 the first is a word, which its reader has obeyed.
void read_directions(const HfConfig& config, DecoderConfig& decoder) {
  const bool is_gemma4 = decoder.family.starts_with("gemma4");
  const bool is_gemma3 = decoder.family == "gemma3" || decoder.family == "gemma3_text";
  const bool both_ways = !is_gemma4 && config.boolean("use_bidirectional_attention", false);
  const bool is_causal = config.boolean("is_causal", true) && !decoder.bidirectional;
  if (both_ways && !is_gemma3) {
    config.unsupported(
        "use_bidirectional_attention",
        fmt::format("true is supported for gemma3_text, not for {}", decoder.family));
  }
  const bool is_encoder = decoder.bidirectional;  // its family has set the windows
  decoder.bidirectional = is_encoder || both_ways || !is_causal;
  for (LayerConfig& layer : decoder.layers) {
    if (layer.window == 0) continue;
    if (both_ways) layer.window = layer.window / 2 + 1;
    if (!is_causal && !is_encoder) layer.window += 1;
  }
}

// Whether the model has a head for tokens. Models of embeddings are published without one. Dummy
// weights have no shapes.
bool has_head(const WeightReader& weights, bool tied) {
  return tied || !weights.shape_of("embed_tokens.weight") || weights.contains("lm_head.weight");
}

}  // namespace

std::span<const Family> families() { return kFamilies; }

void check_model_kind(const Json& json, std::string_view where) {
  const Json text_config = text_config_of(JsonCursor(json, std::string(where)));
  const HfConfig config(JsonCursor(text_config, std::string(where)));
  const std::string name = config.string("model_type", "");
  if (!name.empty()) find_checked_family(name, config);
}

DecoderConfig read_decoder_config(const Json& json, const WeightReader& weights,
                                  std::string_view where) {
  const Json text_config = text_config_of(JsonCursor(json, std::string(where)));
  const HfConfig config(JsonCursor(text_config, std::string(where)));
  const std::string name = family_name(config, weights);
  const Family& family = find_checked_family(name, config);
  DecoderConfig decoder = family.read(config, weights);
  decoder.family = name;
  read_directions(config, decoder);
  decoder.has_head = decoder.has_head && has_head(weights, decoder.tied_head);
  decoder.classifies = find_score_layers(weights, JsonCursor(json, std::string(where))) != nullptr;
  if (decoder.has_states() && decoder.bidirectional) {  // a state sees what came before it
    config.unsupported("is_causal", "false isn't supported beside layers with states");
  }
  return decoder;
}

DecoderConfig read_common(const HfConfig& config, const WeightReader& weights,
                          const CommonDefaults& defaults) {
  DecoderConfig decoder;
  decoder.vocab_size = config.integer("vocab_size", defaults.vocab_size);
  const SizeNames& names = defaults.names;
  constexpr SizeNames kUsual;
  const auto one_of = [&](std::string_view own, std::string_view usual) {
    return names.or_usual && !config.has(own) ? usual : own;
  };
  decoder.hidden_size =
      config.integer(one_of(names.hidden_size, kUsual.hidden_size), defaults.hidden_size);
  const auto inner = defaults.inner_factor > 0
                         ? std::optional(defaults.inner_factor * decoder.hidden_size)
                         : defaults.intermediate_size;
  decoder.intermediate_size = config.integer(names.intermediate_size, inner);
  decoder.num_heads = config.integer(one_of(names.num_heads, kUsual.num_heads), defaults.num_heads);
  decoder.num_kv_heads = decoder.num_heads;
  if (!names.num_kv_heads.empty()) {
    const auto num_kv_heads = config.integer_or_null(
        names.num_kv_heads, defaults.num_kv_heads.value_or(decoder.num_heads));
    decoder.num_kv_heads = num_kv_heads.value_or(decoder.num_heads);
  }
  decoder.head_dim = read_head_dim(config, weights, decoder, defaults);
  decoder.max_position =
      config.integer(one_of(names.max_position, kUsual.max_position), defaults.max_position);
  const bool has_eps = !defaults.norm_eps_key.empty();
  decoder.norm_eps = static_cast<float>(
      has_eps ? config.number(defaults.norm_eps_key, defaults.norm_eps) : defaults.norm_eps);
  decoder.attention_scale = 1.0f / std::sqrt(static_cast<float>(decoder.head_dim));
  decoder.tied_head = config.boolean(kTiedHead, defaults.tied_head);
  decoder.dtype = read_weight_dtype(config);
  check_heads(config, decoder);
  return decoder;
}

void read_plain_mlp(const HfConfig& config, std::string_view key, std::string_view otherwise,
                    DecoderConfig& decoder) {
  decoder.gated_mlp = false;
  decoder.self_gated_mlp = config.string(key, otherwise) == "relu2";
  decoder.activation =
      decoder.self_gated_mlp ? Activation::relu : read_activation(config, key, otherwise);
}

void use_layer_norms(DecoderConfig& decoder) {
  decoder.norm_kind = NormKind::layer;
  decoder.norm_bias = true;
}

void use_learned_positions(int64_t first, DecoderConfig& decoder) {
  decoder.num_positions = decoder.max_position;
  decoder.first_position = first;
  for (LayerConfig& layer : decoder.layers) layer.rope_index = kNoRope;
}

void use_alibi(DistanceScoreKind kind, DecoderConfig& decoder) {
  decoder.distance_scores = {.kind = kind,
                             .num_heads = decoder.num_heads,
                             .reach = decoder.max_position - 1,
                             .scale = decoder.attention_scale,
                             .causal = true};
  for (LayerConfig& layer : decoder.layers) layer.rope_index = kNoRope;
}

float read_clip(const HfConfig& config) {
  return static_cast<float>(config.number_or_null("clip_qkv", 0.0).value_or(0.0));
}

const BlockNorms kNormsBehind = {.before_attention = "",
                                 .after_attention = "post_attention_layernorm",
                                 .before_mlp = "",
                                 .after_mlp = "post_feedforward_layernorm"};

const BlockNorms kNormsAround = {.before_attention = "input_layernorm",
                                 .after_attention = "post_attention_layernorm",
                                 .before_mlp = "pre_feedforward_layernorm",
                                 .after_mlp = "post_feedforward_layernorm"};

int64_t read_optional_window(const HfConfig& config) {
  return config.has("sliding_window") ? config.integer("sliding_window") : 0;
}

std::vector<bool> sliding_pattern(int64_t num_layers, int64_t pattern) {
  std::vector<bool> sliding;
  for (int64_t i = 0; i < num_layers; ++i) sliding.push_back((i + 1) % pattern != 0);
  return sliding;
}

int64_t read_num_layers(const HfConfig& config) { return config.integer("num_hidden_layers"); }

std::vector<bool> read_rotating_layers(const HfConfig& config, int64_t num_layers) {
  constexpr std::string_view kKey = "no_rope_layers";
  std::vector<bool> rotates;
  const auto listed = config.find(kKey);
  if (!listed) {
    const int64_t interval = config.integer("no_rope_layer_interval");
    for (int64_t i = 0; i < num_layers; ++i) rotates.push_back((i + 1) % interval != 0);
    return rotates;
  }
  const auto items = listed->items();
  if (static_cast<int64_t>(items.size()) < num_layers) {
    config.invalid(kKey, fmt::format("{} entries for {} layers", items.size(), num_layers));
  }
  for (int64_t i = 0; i < num_layers; ++i) {
    rotates.push_back(items[static_cast<size_t>(i)].integer({.min = 0, .max = 1}) == 1);
  }
  return rotates;
}

std::vector<LayerConfig> uniform_layers(int64_t num_layers, int64_t window) {
  return std::vector<LayerConfig>(static_cast<size_t>(num_layers), {.window = window});
}

bool read_mixers(const HfConfig& config, const MixerName& other, std::vector<LayerConfig>& layers) {
  const std::string_view key = config.has("layer_types") ? "layer_types" : "layers_block_type";
  const auto types = config.find(key);
  if (!types) return false;
  const auto names = types->items();
  if (names.size() != layers.size()) {
    config.invalid(key, fmt::format("{} entries for {} layers", names.size(), layers.size()));
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string& name = names[i].string();
    if (name == "full_attention" || name == "attention") continue;
    if (name != other.name && name != other.old_name) {
      names[i].fail(ErrorCode::unsupported,
                    fmt::format("{} isn't supported; full_attention and {} are", shown_text(name),
                                other.name));
    }
    layers[i].mixer = other.kind;
  }
  return true;
}

std::vector<LayerConfig> windowed_layers(const HfConfig& config, const std::vector<bool>& sliding,
                                         std::optional<int64_t> window) {
  std::vector<LayerConfig> layers;
  for (const bool slides : sliding) {
    if (slides && !window) {
      config.invalid("sliding_window", "null, or not in use, but there are layers that slide");
    }
    layers.push_back({.window = slides ? *window : 0});
  }
  return layers;
}

}  // namespace paceline
