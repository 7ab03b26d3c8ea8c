// The families against transformers: float32 logits within 1e-4, greedy tokens equal, on every ISA.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "tests/kernels/chosen_isa.h"
#include "tests/models/test_model.h"

namespace paceline::testing {
namespace {

constexpr float kTolerance = 1e-4f;
constexpr float kFeatureMatters = 100 * kTolerance;
constexpr double kInt8Error = 0.05;
constexpr double kMixtureInt8Error = 0.15;  // some rows get other experts

std::vector<RunOptions> all_backends() {
  std::vector<RunOptions> runs = {{.backend = BackendKind::reference}};
  for (const Isa isa : isas_to_run()) {
    runs.push_back({.backend = BackendKind::cpu, .isa = isa, .num_threads = 2});
  }
  return runs;
}

class ModelGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(ModelGolden, LogitsAndGreedyTokensAreTransformers) {
  const Golden golden = read_golden(GetParam(), golden_kind(GetParam()));
  float largest = 0.0f;
  for (const RunOptions& run : all_backends()) {
    TestModel model(golden.directory, run);
    SCOPED_TRACE(std::string(model.backend().name()));
    const float difference = max_difference(model.logits(golden.prompt_ids), golden.logits);
    largest = std::max(largest, difference);
    EXPECT_LE(difference, kTolerance);
    EXPECT_EQ(
        model.scratch_used(),
        forward_scratch_bytes(model.config(), std::ssize(golden.prompt_ids), AdapterUse::none));
    EXPECT_EQ(model.greedy(golden.prompt_ids, std::ssize(golden.greedy_ids)), golden.greedy_ids);
  }
  RecordProperty("largest_difference", std::to_string(largest));
}

// The root mean square error relative to the root mean square of the logits.
double relative_error(std::span<const float> logits, std::span<const float> expected) {
  double errors = 0, all = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = double{logits[i]} - double{expected[i]};
    errors += difference * difference;
    all += double{expected[i]} * double{expected[i]};
  }
  return std::sqrt(errors / all);
}

TEST_P(ModelGolden, LogitsWithAnInt8CacheAreNear) {
  const Golden golden = read_golden(GetParam(), golden_kind(GetParam()));
  for (RunOptions run : all_backends()) {
    run.kv_dtype = DType::i8;
    TestModel model(golden.directory, run);
    SCOPED_TRACE(std::string(model.backend().name()));
    const double error = relative_error(model.logits(golden.prompt_ids), golden.logits);
    EXPECT_LE(error, model.config().mixture ? kMixtureInt8Error : kInt8Error);
    EXPECT_GT(error, 0.0);
  }
}

TEST_P(ModelGolden, EverySpellingOfTheConfigIsTheSameModel) {
  const Golden golden = read_golden(GetParam(), golden_kind(GetParam()));
  for (const std::string& variant : golden.config_variants) {
    SCOPED_TRACE(variant);
    TestModel model(golden.directory, {.backend = BackendKind::reference},
                    {.config_file = variant});
    EXPECT_LE(max_difference(model.logits(golden.prompt_ids), golden.logits), kTolerance);
  }
}

// How to switch each feature off; the goldens list their features.
const std::map<std::string, ModelChanges>& features_off() {
  static const std::map<std::string, ModelChanges> changes = {
      {"rope_scaling",
       {.config =
            [](DecoderConfig& c) {
              for (RopeConfig& rope : c.ropes) rope.scaling = RopeScaling::none;
            }}},
      {"attention_soft_cap", {.config = [](DecoderConfig& c) { c.attention_soft_cap = 0; }}},
      {"final_soft_cap", {.config = [](DecoderConfig& c) { c.final_soft_cap = 0; }}},
      {"window",
       {.config =
            [](DecoderConfig& c) {
              for (LayerConfig& layer : c.layers) layer.window = 0;
            }}},
      {"qk_norm",
       {.config = [](DecoderConfig& c) { c.qk_norm = QkNorm::none; },
        .hidden_weights = {"q_norm", "k_norm", "q_layernorm", "k_layernorm", "query_layernorm",
                           "key_layernorm"}}},
      {"long_factors",
       {.config =
            [](DecoderConfig& c) {
              for (RopeConfig& rope : c.ropes) rope.long_divisors.clear();
            }}},
      {"no_rope",
       {.config =
            [](DecoderConfig& c) {
              for (LayerConfig& layer : c.layers) layer.rope_index = 0;
            }}},
      {"partial_rotary", {.config = [](DecoderConfig& c) { c.rotary_dim = c.head_dim; }}},
      {"query_growth", {.config = [](DecoderConfig& c) { c.query_growth = {}; }}},
      {"residual_scale", {.config = [](DecoderConfig& c) { c.residual_scale = 1; }}},
      {"logits_scale", {.config = [](DecoderConfig& c) { c.logits_scale = 1; }}},
      {"rope_pairs",
       {.config =
            [](DecoderConfig& c) {
              const bool is_halves = c.rope_pairs == RopePairs::halves;
              c.rope_pairs = is_halves ? RopePairs::neighbours : RopePairs::halves;
            }}},
      {"parallel_block",
       {.config =
            [](DecoderConfig& c) {
              c.parallel_block = false;
              c.norms.before_mlp = c.norms.before_attention;
            }}},
      {"layer_norm",
       {.config =
            [](DecoderConfig& c) {
              c.norm_kind = NormKind::rms;
              c.norm_bias = false;
            },
        .hidden_weights = {"norm.bias"}}},
      {"norm_bias",
       {.config = [](DecoderConfig& c) { c.norm_bias = false; }, .hidden_weights = {"norm.bias"}}},
      {"mlp_bias",
       {.config = [](DecoderConfig& c) { c.mlp_bias = false; },
        .hidden_weights = {"c_fc.bias", "c_proj.bias", "gate_proj.bias", "up_proj.bias",
                           "down_proj.bias"}}},
      {"attention_bias",
       {.config =
            [](DecoderConfig& c) {
              c.qkv_bias = false;
              c.output_bias = false;
              if (c.latent) c.latent->has_bias = false;
            },
        .hidden_weights = {"q_proj.bias", "k_proj.bias", "v_proj.bias", "o_proj.bias", "dense.bias",
                           "q_a_proj.bias", "kv_a_proj_with_mqa.bias"}}},
      {"latent_norms", {.config = [](DecoderConfig& c) { c.latent->norm_eps = 100.0f; }}},
      {"score_scale",
       {.config =
            [](DecoderConfig& c) {
              c.attention_scale = 1.0f / std::sqrt(static_cast<float>(c.latent->query_dim()));
            }}},
      {"embedding_scale", {.config = [](DecoderConfig& c) { c.embedding_scale = 1; }}},
      {"local_rope_theta",
       {.config =
            [](DecoderConfig& c) {
              for (LayerConfig& layer : c.layers) layer.rope_index = 0;
            }}},
      {"attention_scale",
       {.config =
            [](DecoderConfig& c) {
              c.attention_scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
            }}},
      {"post_norms",
       {.config =
            [](DecoderConfig& c) {
              c.norms.after_attention.clear();
              c.norms.after_mlp.clear();
            },
        .hidden_weights = {"post_attention_layernorm", "post_feedforward_layernorm"}}},
      {"norms_behind",
       {.config =
            [](DecoderConfig& c) {
              c.norms.after_attention.clear();
              c.norms.after_mlp.clear();
            },
        .hidden_weights = {"post_self_attn_layernorm", "post_mlp_layernorm"}}},
      {"tied_head", {.random_head = true}},
      {"expert_choice",
       {.config = [](DecoderConfig& c) { --c.mixture->routing.experts_per_token; }}},
      {"expert_norm",
       {.config =
            [](DecoderConfig& c) {
              c.mixture->routing.normalise = !c.mixture->routing.normalise;
            }}},
      {"attention_sinks",
       {.config = [](DecoderConfig& c) { c.attention_sinks = false; },
        .hidden_weights = {"sinks"}}},
      {"clamped_activation", {.config = [](DecoderConfig& c) { c.activation = Activation::silu; }}},
      {"expert_bias",
       {.config = [](DecoderConfig& c) { c.mixture->expert_bias = false; },
        .hidden_weights = {"gate_proj.bias", "up_proj.bias", "down_proj.bias"}}},
      {"router_bias",
       {.config = [](DecoderConfig& c) { c.mixture->router_bias = false; },
        .hidden_weights = {"router.bias"}}},
      {"expert_scale", {.config = [](DecoderConfig& c) { c.mixture->routing.scale = 1; }}},
      {"expert_groups",
       {.config =
            [](DecoderConfig& c) {
              c.mixture->routing.num_groups = c.mixture->routing.groups_kept = 1;
            }}},
      {"choice_bias",
       {.config = [](DecoderConfig& c) { c.mixture->has_choice_bias = false; },
        .hidden_weights = {"e_score_correction_bias", "gate.expert_bias"}}},
      {"shared_expert",
       {.config =
            [](DecoderConfig& c) {
              c.mixture->routing.shared = SharedExpert::none;
              if (c.mixture->scales_inputs) c.mixture->shared_size = 0;
            },
        .hidden_weights = {"shared_expert", "shared_mlp"}}},
      {"gate_cutoffs",
       {.config =
            [](DecoderConfig& c) {
              for (LayerConfig& layer : c.layers) layer.gate_deviations.reset();
            }}},
      {"corrected_scale",
       {.config = [](DecoderConfig& c) { c.alternating->scales_corrected = false; }}},
      {"value_norm", {.config = [](DecoderConfig& c) { c.value_norm = false; }}},
      {"layer_scalars",
       {.config = [](DecoderConfig& c) { c.layer_scalars = false; },
        .hidden_weights = {"layer_scalar"}}},
      {"layer_inputs",
       {.config = [](DecoderConfig& c) { c.layer_inputs.reset(); },
        .hidden_weights = {"per_layer"}}},
      {"expert_scales",
       {.config = [](DecoderConfig& c) { c.mixture->scales_experts = false; },
        .hidden_weights = {"per_expert_scale"}}},
      {"clip", {.config = [](DecoderConfig& c) { c.clip_qkv = 0; }}},
      {"alibi", {.config = [](DecoderConfig& c) { c.distance_scores.reset(); }}},
      {"embedding_norm",
       {.config = [](DecoderConfig& c) { c.embedding_norm = false; },
        .hidden_weights = {"word_embeddings_layernorm"}}},
      {"chunks",
       {.config =
            [](DecoderConfig& c) {
              for (LayerConfig& layer : c.layers) {
                layer.window = 0;
                layer.chunked = false;
              }
            }}},
      {"expert_jitter", {.config = [](DecoderConfig& c) { c.mixture->routing.jitter = 0; }}},
      {"long_scale",
       {.config =
            [](DecoderConfig& c) {
              for (RopeConfig& rope : c.ropes) rope.long_attention_factor = 0;
            }}},
      {"layer_thetas",
       {.config =
            [](DecoderConfig& c) {
              for (RopeConfig& rope : c.ropes) rope.theta = 10000.0;
            }}},
      {"shared_gate",
       {.config = [](DecoderConfig& c) { c.mixture->routing.shared = SharedExpert::plain; },
        .hidden_weights = {"shared_expert_gate"}}},
  };
  return changes;
}

TEST_P(ModelGolden, WithoutAnyOneFeatureTheGoldenIsMissed) {
  const Golden golden = read_golden(GetParam(), golden_kind(GetParam()));
  for (const std::string& feature : golden.features) {
    SCOPED_TRACE(feature);
    ASSERT_TRUE(features_off().contains(feature));
    TestModel model(golden.directory, {.backend = BackendKind::reference},
                    features_off().at(feature));
    EXPECT_GT(max_difference(model.logits(golden.prompt_ids), golden.logits), kFeatureMatters);
  }
}

INSTANTIATE_TEST_SUITE_P(all, ModelGolden, ::testing::ValuesIn(golden_names()),
                         [](const auto& golden) { return golden.param; });
INSTANTIATE_TEST_SUITE_P(mixed, ModelGolden, ::testing::ValuesIn(golden_names("mixed")),
                         [](const auto& golden) { return golden.param; });
INSTANTIATE_TEST_SUITE_P(latents, ModelGolden, ::testing::ValuesIn(golden_names("latents")),
                         [](const auto& golden) { return golden.param; });

}  // namespace
}  // namespace paceline::testing
