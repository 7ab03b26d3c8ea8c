// GPT-2, GPT-BigCode (StarCoder 1), GPT-Neo, GPT-J and CodeGen (transformers' modeling_gpt2,
// _gpt_bigcode, _gpt_neo, _gptj, _codegen): layer norms, an MLP without a gate, biases. The first
// three have learned positions, GPT-BigCode one head of keys and values, GPT-Neo windows in every
// second layer; in GPT-J and CodeGen attention and MLP stand side by side behind one norm, and
// neighbours rotate in a part of each head.
#include <fmt/format.h>

#include "models/family.h"

namespace paceline {
namespace {

constexpr SizeNames kGptNames = {.hidden_size = "n_embd",
                                 .intermediate_size = "n_inner",
                                 .num_heads = "n_head",
                                 .num_kv_heads = "",
                                 .head_dim = "",
                                 .max_position = "n_positions",
                                 .or_usual = true};

constexpr CommonDefaults kGpt2Defaults = {.vocab_size = 50257,
                                          .num_heads = 12,
                                          .inner_factor = 4,
                                          .max_position = 1024,
                                          .tied_head = true,
                                          .norm_eps_key = "layer_norm_epsilon",
                                          .norm_eps = 1e-5,
                                          .hidden_size = 768,
                                          .names = kGptNames};
constexpr CommonDefaults kGptNeoDefaults = {
    .vocab_size = 50257,
    .num_heads = 16,
    .inner_factor = 4,
    .tied_head = true,
    .norm_eps_key = "layer_norm_epsilon",
    .norm_eps = 1e-5,
    .hidden_size = 2048,
    .names = {.num_heads = "num_heads", .num_kv_heads = "", .head_dim = ""}};
constexpr CommonDefaults kGptJDefaults = {.vocab_size = 50400,
                                          .num_heads = 16,
                                          .inner_factor = 4,
                                          .norm_eps_key = "layer_norm_epsilon",
                                          .norm_eps = 1e-5,
                                          .hidden_size = 4096,
                                          .names = kGptNames};

// What the number of layers is called, with a default.
struct LayerCount {
  std::string_view key = "n_layer";
  int64_t otherwise = 0;
};

DecoderConfig read_any_gpt(const HfConfig& config, const WeightReader& weights,
                           const CommonDefaults& defaults, const LayerCount& count,
                           std::string_view activation) {
  DecoderConfig decoder = read_common(config, weights, defaults);
  read_plain_mlp(config, "activation_function", activation, decoder);
  decoder.mlp_bias = true;
  use_layer_norms(decoder);
  decoder.norms = {.before_attention = "ln_1", .before_mlp = "ln_2"};
  decoder.final_norm = "ln_f";
  decoder.attention_names.layer = "attn";
  const std::string_view key = config.has(count.key) ? count.key : "num_hidden_layers";
  decoder.layers = uniform_layers(config.integer(key, count.otherwise), 0);
  return decoder;
}

DecoderConfig read_positioned_gpt(const HfConfig& config, const WeightReader& weights,
                                  std::string_view activation) {
  constexpr int64_t kLayers = 12;
  DecoderConfig decoder =
      read_any_gpt(config, weights, kGpt2Defaults, {.otherwise = kLayers}, activation);
  decoder.mlp_names.up = "c_fc";
  decoder.mlp_names.down = "c_proj";
  decoder.qkv_bias = decoder.output_bias = true;
  decoder.fused_qkv = true;
  decoder.attention_names = {.layer = "attn", .qkv = "c_attn", .output = "c_proj"};
  if (!config.boolean("scale_attn_weights", true)) decoder.attention_scale = 1.0f;
  use_learned_positions(0, decoder);
  return decoder;
}

// `attention_types` has lists of kinds of layers, each with how often it is repeated.
void set_neo_windows(const HfConfig& config, std::vector<LayerConfig>& layers) {
  constexpr std::string_view kKey = "attention_types";
  constexpr int64_t kWindow = 256;
  const int64_t window = config.integer("window_size", kWindow);
  size_t next = 0;
  const auto add = [&](bool is_local) {
    if (next == layers.size()) config.invalid(kKey, "more entries than layers");
    layers[next++].window = is_local ? window : 0;
  };
  const auto types = config.find(kKey);
  if (!types) {
    constexpr int kPairs = 12;
    for (int i = 0; i < 2 * kPairs; ++i) add(i % 2 != 0);
  }
  for (const JsonCursor& type : types ? types->items() : std::vector<JsonCursor>()) {
    const auto parts = type.items();
    if (parts.size() != 2) type.fail(ErrorCode::invalid, "expected a list and a number");
    const int64_t repeats = parts[1].integer({.min = 0, .max = 1024});
    for (int64_t i = 0; i < repeats; ++i) {
      for (const JsonCursor& kind : parts[0].items()) {
        const std::string& name = kind.string();
        if (name != "global" && name != "local") {
          kind.fail(ErrorCode::unsupported,
                    fmt::format("{} isn't supported; global and local are", shown_text(name)));
        }
        add(name == "local");
      }
    }
  }
  if (next != layers.size()) {
    config.invalid(kKey, fmt::format("{} entries for {} layers", next, layers.size()));
  }
}

}  // namespace

DecoderConfig read_gpt2(const HfConfig& config, const WeightReader& weights) {
  return read_positioned_gpt(config, weights, "gelu_new");
}

DecoderConfig read_gpt_bigcode(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_positioned_gpt(config, weights, "gelu_pytorch_tanh");
  if (config.boolean("multi_query", true)) {
    decoder.num_kv_heads = 1;
  } else {
    decoder.grouped_qkv = true;
  }
  return decoder;
}

// Scores have no factor.
DecoderConfig read_gpt_neo(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 24;
  DecoderConfig decoder = read_any_gpt(config, weights, kGptNeoDefaults,
                                       {.key = "num_layers", .otherwise = kLayers}, "gelu_new");
  decoder.mlp_names.up = "c_fc";
  decoder.mlp_names.down = "c_proj";
  decoder.output_bias = true;
  decoder.attention_names.layer = "attn.attention";
  decoder.attention_names.output = "out_proj";
  decoder.attention_scale = 1.0f;
  set_neo_windows(config, decoder.layers);
  use_learned_positions(0, decoder);
  return decoder;
}

DecoderConfig read_gptj(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kLayers = 28, kRotaryDim = 64;
  DecoderConfig decoder =
      read_any_gpt(config, weights, kGptJDefaults, {.otherwise = kLayers}, "gelu_new");
  decoder.mlp_names.up = "fc_in";
  decoder.mlp_names.down = "fc_out";
  decoder.attention_names.output = "out_proj";
  decoder.norms.before_mlp.clear();
  decoder.parallel_block = true;
  decoder.head_bias = true;
  decoder.rope_pairs = RopePairs::neighbours;
  decoder.rotary_dim = config.integer("rotary_dim", kRotaryDim);
  if (decoder.rotary_dim > decoder.head_dim || decoder.rotary_dim % 2 != 0) {
    config.invalid("rotary_dim",
                   fmt::format("{} of a head's {} elements, expected an even number of them",
                               decoder.rotary_dim, decoder.head_dim));
  }
  decoder.ropes = {RopeConfig{}};
  return decoder;
}

// Its matrix of queries, keys and values keeps the order of the 4 devices that trained it.
DecoderConfig read_codegen(const HfConfig& config, const WeightReader& weights) {
  constexpr int64_t kDevices = 4;
  DecoderConfig decoder = read_gptj(config, weights);
  if (decoder.hidden_size % kDevices != 0) {
    config.invalid("n_embd",
                   fmt::format("{}, expected a multiple of {}", decoder.hidden_size, kDevices));
  }
  decoder.fused_qkv = true;
  decoder.qkv_shards = kDevices;
  return decoder;
}

}  // namespace paceline
