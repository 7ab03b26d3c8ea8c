// DeepSeek V2 and V3 and what has their blocks (transformers' modeling_deepseek_v2, _deepseek_v3,
// _glm4_moe_lite, _youtu, _mistral4 and configuration_sarvam_mla): multi-head latent attention and
// mixtures of experts behind some dense layers.
#include <fmt/format.h>

#include "models/latent_fields.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

// Of the files' projections, not of what the cache holds.
constexpr int64_t kAnyHeadDim = 64;

constexpr CommonDefaults kV2Defaults = {
    .vocab_size = 102400, .num_heads = 32, .head_dim = kAnyHeadDim, .intermediate_size = 11008};
constexpr CommonDefaults kV3Defaults = {.vocab_size = 129280,
                                        .num_heads = 128,
                                        .head_dim = kAnyHeadDim,
                                        .intermediate_size = 18432,
                                        .max_position = 4096};
constexpr CommonDefaults kGlmDefaults = {.vocab_size = 154880,
                                         .num_heads = 20,
                                         .head_dim = kAnyHeadDim,
                                         .intermediate_size = 10240,
                                         .max_position = 202752,
                                         .norm_eps = 1e-5};
constexpr CommonDefaults kYoutuDefaults = {.vocab_size = 128256,
                                           .num_heads = 16,
                                           .head_dim = kAnyHeadDim,
                                           .intermediate_size = 6144,
                                           .max_position = 131072,
                                           .tied_head = true};
constexpr CommonDefaults kSarvamDefaults = {.vocab_size = 262144,
                                            .num_heads = 64,
                                            .head_dim = kAnyHeadDim,
                                            .intermediate_size = 16384,
                                            .max_position = 4096};
constexpr CommonDefaults kMistral4Defaults = {.vocab_size = 131072,
                                              .num_heads = 32,
                                              .head_dim = kAnyHeadDim,
                                              .intermediate_size = 12288,
                                              .max_position = 1048576};

// What transformers' class has without `rope_parameters`.
const Json& mistral4_rope() {
  static const Json rope = parse_json(
      R"({"rope_type": "yarn", "rope_theta": 10000.0, "factor": 128.0, "beta_fast": 32.0,
          "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
          "original_max_position_embeddings": 8192, "llama_4_scaling_beta": 0.1})",
      "Mistral 4's rope");
  return rope;
}

DecoderConfig read_blocks(const HfConfig& config, const WeightReader& weights,
                          const CommonDefaults& common, const LatentDefaults& latent) {
  DecoderConfig decoder = read_common(config, weights, common);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_latent_attention(config, latent, decoder);
  return decoder;
}

DeepSeekExperts v3_experts() {
  return {.mixture = {.experts_key = "n_routed_experts",
                      .num_experts = 256,
                      .experts_per_token = 8,
                      .expert_size = 2048},
          .routing = {.num_groups = 8, .groups_kept = 4, .scale = 2.5}};
}

DecoderConfig read_v3(const HfConfig& config, const WeightReader& weights,
                      const CommonDefaults& common, const LatentDefaults& latent,
                      const DeepSeekExperts& experts) {
  DecoderConfig decoder = read_blocks(config, weights, common, latent);
  decoder.mixture = read_deepseek_experts(config, experts);
  decoder.mixture->has_choice_bias = true;
  return decoder;
}

}  // namespace

// Its router's scores are a softmax, and groups count by their best expert; transformers ignores
// norm_topk_prob.
DecoderConfig read_deepseek_v2(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder =
      read_blocks(config, weights, kV2Defaults, {.has_interleave_field = false});
  MixtureConfig mixture = read_deepseek_experts(
      config,
      {.mixture = {.experts_key = "n_routed_experts", .num_experts = 64, .expert_size = 1407},
       .num_shared = 2});
  RoutingParams& routing = mixture.routing;
  routing.score = ExpertScore::softmax;
  routing.normalise = false;
  routing.groups_by_highest = true;
  const std::string method = config.string("topk_method", "greedy");
  if (method == "greedy") {
    routing.num_groups = routing.groups_kept = 1;
  } else if (method != "group_limited_greedy") {
    config.unsupported(
        "topk_method",
        fmt::format("{} isn't supported; greedy and group_limited_greedy are", shown_text(method)));
  }
  decoder.mixture = mixture;
  mix_layers_behind(config, 0, decoder.layers);
  return decoder;
}

DecoderConfig read_deepseek_v3(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_v3(config, weights, kV3Defaults, {}, v3_experts());
  mix_layers_behind(config, 3, decoder.layers);
  read_unused_layers(config, 1, decoder);
  return decoder;
}

DecoderConfig read_sarvam_mla(const HfConfig& config, const WeightReader& weights) {
  DeepSeekExperts experts = v3_experts();
  experts.mixture.num_experts = 128;
  experts.routing.num_groups = experts.routing.groups_kept = 1;
  if (config.has("num_shared_experts")) experts.shared_key = "num_shared_experts";
  DecoderConfig decoder = read_v3(config, weights, kSarvamDefaults, {.query_rank = {}}, experts);
  mix_layers_behind(config, 1, decoder.layers);
  read_unused_layers(config, 0, decoder);
  return decoder;
}

DecoderConfig read_glm4_moe_lite(const HfConfig& config, const WeightReader& weights) {
  // transformers takes head_dim as another name of qk_rope_head_dim.
  const int64_t rope_dim = config.has("head_dim") ? config.integer("head_dim") : kAnyHeadDim;
  DecoderConfig decoder =
      read_v3(config, weights, kGlmDefaults,
              {.query_rank = 768, .nope_dim = 192, .rope_dim = rope_dim, .value_dim = 256},
              {.mixture = {.experts_key = "n_routed_experts",
                           .num_experts = 64,
                           .experts_per_token = 4,
                           .expert_size = 1536},
               .routing = {.scale = 1.8}});
  mix_all_layers(decoder.layers);
  decoder.layers.front().is_mixture = false;
  mix_listed_layers(config, decoder.layers);
  read_unused_layers(config, 1, decoder);
  return decoder;
}

// Dense.
DecoderConfig read_youtu(const HfConfig& config, const WeightReader& weights) {
  return read_blocks(config, weights, kYoutuDefaults, {});
}

// Scores are a softmax; queries grow with their position.
DecoderConfig read_mistral4(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder =
      read_blocks(config, weights, kMistral4Defaults,
                  {.query_rank = 1024,
                   .rank = 256,
                   .nope_dim = 64,
                   .rope = {.otherwise = &mistral4_rope(), .grows_queries = true},
                   .rope_of_whole_head = true});
  decoder.mixture = read_deepseek_experts(config, {.mixture = {.experts_key = "n_routed_experts",
                                                               .num_experts = 128,
                                                               .experts_per_token = 4,
                                                               .expert_size = 2048}});
  decoder.mixture->routing.score = ExpertScore::softmax;
  mix_layers_behind(config, 0, decoder.layers);
  return decoder;
}

}  // namespace paceline
