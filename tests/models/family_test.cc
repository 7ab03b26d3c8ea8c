// read_decoder_config names unsupported fields, and reads multi-modal config.json files.
#include "models/family.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/json.h"
#include "base/mapped_file.h"
#include "models/refused_kinds.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"
#include "weights/checkpoint.h"

namespace paceline {
namespace {

constexpr std::string_view kShape =
    R"("vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
       "num_attention_heads": 4, "num_key_value_heads": 2)";

Json config_with(const std::string& family, const std::string& fields) {
  return parse_json(R"({"model_type": ")" + family + "\", " + std::string(kShape) + fields + "}",
                    "test");
}

DecoderConfig read(const Json& json, Checkpoint& checkpoint) {
  return read_decoder_config(json, WeightReader(checkpoint), "config.json");
}

DecoderConfig read(const Json& json) {
  Memory memory;
  return read(json, *make_dummy_checkpoint(DType::f32, 0, memory));
}

TEST(Families, AttentionInBothDirections) {
  for (const char* const family : {"llama", "qwen3", "gemma2"}) {
    SCOPED_TRACE(family);
    expect_error(ErrorCode::unsupported, {"config.json: use_bidirectional_attention", family},
                 [&] { read(config_with(family, R"(, "use_bidirectional_attention": true)")); });
    EXPECT_TRUE(read(config_with(family, R"(, "is_causal": false)")).bidirectional);
    EXPECT_FALSE(
        read(config_with(family, R"(, "is_causal": true, "use_bidirectional_attention": false)"))
            .bidirectional);
  }
  const auto window = [](const std::string& fields) {
    const DecoderConfig config =
        read(config_with("gemma3_text", R"(, "sliding_window": 24)" + fields));
    EXPECT_EQ(config.bidirectional, !fields.empty());
    return config.layers[0].window;
  };
  EXPECT_EQ(window(""), 24);
  EXPECT_EQ(window(R"(, "use_bidirectional_attention": true)"), 13);
  EXPECT_EQ(window(R"(, "is_causal": false)"), 25);
  EXPECT_EQ(window(R"(, "is_causal": false, "use_bidirectional_attention": true)"), 14);
}

TEST(Families, OtherKindsOfModelsAreRefusedWithTheReasonAndWhatRuns) {
  const auto expect_reason = [](const std::string& family, const std::string& reason) {
    expect_error(ErrorCode::unsupported,
                 {"config.json: model_type: \"" + family + "\" isn't supported, because", reason,
                  "; llama, mistral, "},
                 [&] { read(config_with(family, "")); });
  };
  expect_reason("zamba2", "aren't attention");
  expect_reason("longcat_flash", "differ from those");
  expect_reason("deepseek_v32", "an indexer");
  expect_reason("electra", "an encoder");
  expect_reason("t5", "attends to the output of an encoder");
  expect_reason("siglip", "images or sound");
  expect_error(ErrorCode::unsupported, {"\"other\" isn't supported; llama, "},
               [] { read(config_with("other", "")); });
}

// tests/goldens/configs/causal_types.json are the keys of transformers'
// MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.
TEST(Families, EveryCausalTypeOfTransformersRunsOrIsRefusedWithAReason) {
  const std::string path = source_path("tests/goldens/configs/causal_types.json");
  const Json types = parse_json(read_text_file(path, 1 << 16), path);
  int running = 0;
  for (const Json& type : types.as_array(path)) {
    const std::string& name = type.as_string(path);
    const bool runs = std::ranges::find(families(), name, &Family::model_type) != families().end();
    const bool is_explained = unsupported_words(name, "").find("because") != std::string::npos;
    EXPECT_NE(runs, is_explained) << name;
    running += runs ? 1 : 0;
  }
  EXPECT_GT(running, 40);
}

TEST(Families, LatentAttentionHasOneHeadOfWhatTheCacheHolds) {
  const auto latent = [](const std::string& fields) {
    return read(config_with("youtu", R"(, "qk_rope_head_dim": 8)" + fields));
  };
  const DecoderConfig plain = latent(R"(, "kv_lora_rank": 20)");
  EXPECT_EQ(plain.num_kv_heads, 1);
  EXPECT_EQ(plain.head_dim, 28);
  EXPECT_EQ(plain.values_in_keys(), 20);
  EXPECT_EQ(plain.latent->query_rank, 1536);
  EXPECT_EQ(plain.rope_pairs, RopePairs::neighbours);
  // Null is no rank, and false, as in transformers.
  EXPECT_EQ(latent(R"(, "q_lora_rank": null)").latent->query_rank, 0);
  EXPECT_EQ(latent(R"(, "rope_interleave": null)").rope_pairs, RopePairs::halves);
  expect_error(ErrorCode::invalid, {"config.json: kv_lora_rank: 4090 and qk_rope_head_dim 8"},
               [&] { latent(R"(, "kv_lora_rank": 4090)"); });
}

TEST(Families, KimisLayersAndStatesAreThoseOfEitherSpelling) {
  const auto kimi = [](const std::string& fields) {
    return read(config_with("kimi_linear", R"(, "num_experts": 8)" + fields));
  };
  const auto kinds = [](const DecoderConfig& config) {
    std::vector<MixerKind> found;
    for (const LayerConfig& layer : config.layers) found.push_back(layer.mixer);
    return found;
  };
  using enum MixerKind;
  EXPECT_EQ(kinds(kimi("")), (std::vector{delta_net, delta_net}));
  const DecoderConfig listed = kimi(R"(, "linear_head_dim": 128, "num_experts_per_token": 3,
      "moe_renormalize": false, "num_shared_experts": 2, "moe_intermediate_size": 10,
      "model_max_length": 99,
      "linear_attn_config": {"head_dim": 6, "num_heads": 5, "short_conv_kernel_size": 3,
                             "kda_layers": [2], "full_attn_layers": [1]})");
  EXPECT_EQ(kinds(listed), (std::vector{attention, delta_net}));
  EXPECT_EQ(listed.delta_net->key_dim, 6);
  EXPECT_EQ(listed.delta_net->value_heads, 5);
  EXPECT_EQ(listed.delta_net->taps, 3);
  EXPECT_EQ(listed.delta_net->gate_rank, 6);
  EXPECT_EQ(listed.mixture->routing.experts_per_token, 3);
  EXPECT_FALSE(listed.mixture->routing.normalise);
  EXPECT_EQ(listed.mixture->shared_size, 20);
  EXPECT_EQ(listed.max_position, 99);
  EXPECT_FALSE(listed.layers[0].is_mixture);
  EXPECT_TRUE(listed.layers[1].is_mixture);

  const auto lists = [&](const std::string& fields) {
    kimi(R"(, "linear_attn_config": {)" + fields + "}");
  };
  expect_error(ErrorCode::invalid, {"config.json: linear_attn_config.full_attn_layers: missing"},
               [&] { lists(R"("kda_layers": [1, 2])"); });
  expect_error(ErrorCode::invalid, {"linear_attn_config.full_attn_layers[0]", "expected each once"},
               [&] { lists(R"("kda_layers": [1, 2], "full_attn_layers": [2])"); });
  expect_error(ErrorCode::invalid, {"linear_attn_config.kda_layers: layer 2 is neither"},
               [&] { lists(R"("kda_layers": [1], "full_attn_layers": [])"); });
  expect_error(ErrorCode::invalid, {"linear_attn_config.kda_layers[0]: found 4, expected"},
               [&] { lists(R"("kda_layers": [4], "full_attn_layers": [2])"); });
  // Kimi K3 has the same model_type.
  expect_error(ErrorCode::unsupported, {"linear_attn_config.gate_lower_bound", "Kimi K3"},
               [&] { lists(R"("gate_lower_bound": -5.0)"); });
  expect_error(ErrorCode::unsupported, {"attn_res_block_size", "Kimi K3"},
               [&] { kimi(R"(, "attn_res_block_size": 12)"); });
  expect_error(ErrorCode::unsupported, {"mla_use_nope: false isn't supported"},
               [&] { kimi(R"(, "mla_use_nope": false)"); });
}

TEST(Families, Lfm2sLayersAndInnerColumnsAreThoseOfItsFields) {
  const auto lfm2 = [](const std::string& fields) { return read(config_with("lfm2", fields)); };
  EXPECT_FALSE(lfm2("").has_states());
  const DecoderConfig listed = lfm2(R"(, "full_attn_idxs": [1, 30])");
  EXPECT_EQ(listed.layers[0].mixer, MixerKind::convolution);
  EXPECT_EQ(listed.layers[1].mixer, MixerKind::attention);
  EXPECT_EQ(
      lfm2(R"(, "full_attn_idxs": [1], "layer_types": ["full_attention", "conv"])").layers[1].mixer,
      MixerKind::convolution);
  expect_error(ErrorCode::unsupported, {"layer_types[1]", "\"mamba\" isn't supported", "conv"},
               [&] { lfm2(R"(, "layer_types": ["conv", "mamba"])"); });
  expect_error(ErrorCode::invalid, {"layer_types", "1 entries for 2 layers"},
               [&] { lfm2(R"(, "layer_types": ["conv"])"); });

  const auto columns = [&](const std::string& fields) { return lfm2(fields).intermediate_size; };
  EXPECT_EQ(columns(R"(, "block_ff_dim": 12288)"), 8192);
  EXPECT_EQ(columns(R"(, "block_ff_dim": 1000, "block_multiple_of": 10)"), 670);
  EXPECT_EQ(columns(R"(, "block_ff_dim": 1000, "block_ffn_dim_multiplier": null)"), 666);
  EXPECT_EQ(columns(R"(, "block_ff_dim": 1000, "block_auto_adjust_ff_dim": false)"), 1000);
  expect_error(ErrorCode::invalid, {"intermediate_size", "0 columns"},
               [&] { columns(R"(, "block_ff_dim": 1)"); });
  EXPECT_TRUE(lfm2("").tied_head);
  EXPECT_FALSE(lfm2(R"(, "tie_embedding": false)").tied_head);
}

TEST(Families, OlmoHybridsDefaultsFollowItsSizesAndANullThetaIsNoRope) {
  const auto olmo = [](const std::string& fields) {
    return read(config_with("olmo_hybrid", fields));
  };
  const DecoderConfig plain = olmo("");
  EXPECT_EQ(plain.layers[0].mixer, MixerKind::delta_net);
  EXPECT_EQ(plain.layers[1].mixer, MixerKind::attention);  // the last one: there is no fourth
  EXPECT_EQ(plain.delta_net->key_heads, 4);
  EXPECT_EQ(plain.delta_net->key_dim, 6);  // three quarters of 32, in 4 heads
  EXPECT_EQ(plain.delta_net->value_dim, 12);
  EXPECT_EQ(olmo(R"(, "linear_key_head_dim": 5)").delta_net->value_dim, 10);
  EXPECT_EQ(plain.delta_net->beta_scale, 2.0f);
  EXPECT_EQ(olmo(R"(, "linear_allow_neg_eigval": false)").delta_net->beta_scale, 1.0f);
  expect_error(ErrorCode::invalid, {"linear_num_key_heads: 25 heads"},
               [&] { olmo(R"(, "linear_num_key_heads": 25, "linear_num_value_heads": 25)"); });

  const auto rotates = [&](const std::string& fields) {
    return olmo(fields).layers[1].rope_index != kNoRope;
  };
  for (const char* const fields :
       {"", R"(, "rope_theta": 500)", R"(, "rope_parameters": {"rope_theta": 500})",
        R"(, "rope_parameters": {"rope_type": "default"})",
        R"(, "rope_parameters": null, "rope_theta": 500)"}) {
    EXPECT_TRUE(rotates(fields)) << fields;
  }
  for (const char* const fields :
       {R"(, "rope_theta": null)", R"(, "rope_parameters": null)",
        R"(, "rope_parameters": {"rope_type": null})",
        R"(, "rope_parameters": {"rope_type": "default", "rope_theta": null})"}) {
    EXPECT_FALSE(rotates(fields)) << fields;
  }
}

TEST(Families, Lfm3sLayersTakeTurns) {
  const auto lfm3 = [](const std::string& fields) {
    return read(parse_json(R"({"model_type": "lfm3", "vocab_size": 64, "hidden_size": 32,
                               "num_hidden_layers": 7)" +
                               fields + "}",
                           "test"));
  };
  const DecoderConfig plain = lfm3("");
  for (size_t i = 0; i < plain.layers.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(plain.layers[i].mixer,
              i == 2 || i == 4 || i == 6 ? MixerKind::attention : MixerKind::convolution);
    EXPECT_EQ(plain.layers[i].window, i == 4 ? 256 : 0);
    EXPECT_EQ(plain.layers[i].rope_index, i == 4 ? 1 : 0);
  }
  EXPECT_EQ(plain.ropes[0].scaling, RopeScaling::proportional);
  EXPECT_EQ(plain.ropes[0].rotated_pairs, 32);  // half of the 64 of a head
  EXPECT_EQ(plain.ropes[1].theta, 10000.0);
  EXPECT_TRUE(plain.head_gates);
  EXPECT_FALSE(lfm3(R"(, "use_attention_gate": false)").head_gates);
  expect_error(
      ErrorCode::unsupported, {"layer_types[0]", "\"mamba\" isn't supported", "conv"}, [&] {
        lfm3(R"(, "layer_types": ["mamba", "conv", "conv", "conv", "conv", "conv", "conv"])");
      });
  expect_error(ErrorCode::invalid, {"sliding_window"},
               [&] { lfm3(R"(, "sliding_window": null)"); });
}

// transformers ignores it, or fails.
TEST(Families, APartOfAHeadRotatesWhereTransformersLetsIt) {
  for (const std::string family : {"phi3", "glm4", "glm4_moe", "stablelm"}) {
    SCOPED_TRACE(family);
    const DecoderConfig config = read(config_with(family, R"(, "partial_rotary_factor": 0.75)"));
    EXPECT_EQ(config.rotary_dim * 4, config.head_dim * 3);
  }
  for (const std::string family : {"llama", "qwen3", "gemma3_text", "smollm3", "cohere2"}) {
    SCOPED_TRACE(family);
    expect_error(ErrorCode::unsupported, {"partial_rotary_factor: 0.75 isn't supported"},
                 [&] { read(config_with(family, R"(, "partial_rotary_factor": 0.75)")); });
    EXPECT_NO_THROW(read(config_with(family, R"(, "partial_rotary_factor": 1.0)")));
  }
}

TEST(Families, GemmaSActivationIsNotHiddenAct) {
  for (const std::string family : {"gemma2", "gemma3_text"}) {
    SCOPED_TRACE(family);
    const auto activation = [&](const std::string& fields) {
      return read(config_with(family, fields)).activation;
    };
    EXPECT_EQ(activation(R"(, "hidden_act": "gelu")"), Activation::gelu_tanh);
    EXPECT_EQ(activation(R"(, "hidden_activation": "gelu")"), Activation::gelu_erf);
  }
}

TEST(Families, AGptOssWithoutARopeHasTransformers) {
  for (const std::string rope : {"", R"(, "rope_scaling": null)", R"(, "rope_scaling": {})"}) {
    SCOPED_TRACE(rope);
    EXPECT_EQ(read(config_with("gpt_oss", rope)).ropes[0].scaling, RopeScaling::yarn);
  }
}

TEST(Families, NumbersWithoutAMeaningAreRefusedByName) {
  for (const auto& change : {std::pair{"rms_norm_eps", "-1e-6"},
                             {"query_pre_attn_scalar", "0"},
                             {"query_pre_attn_scalar", "-256"},
                             {"attn_logit_softcapping", "-50"},
                             {"final_logit_softcapping", "-30"},
                             {"final_logit_softcapping", "0"}}) {
    const std::string field = change.first, value = change.second;
    SCOPED_TRACE(field);
    expect_error(ErrorCode::invalid, {"config.json: ", field, "expected a number from"},
                 [&] { read(config_with("gemma2", ", \"" + field + "\": " + value)); });
  }
}

Json multi_modal(const std::string& outer, const std::string& inner) {
  return parse_json(R"({"model_type": "mistral3", )" + outer + R"("text_config": {)" + inner +
                        R"("model_type": "mistral", )" + std::string(kShape) + "}}",
                    "test");
}

TEST(Families, TheHeadIsTiedAsTheOuterModelSays) {
  constexpr const char* kTied = R"("tie_word_embeddings": true, )";
  constexpr const char* kOwn = R"("tie_word_embeddings": false, )";
  EXPECT_TRUE(read(multi_modal(kTied, kOwn)).tied_head);
  EXPECT_FALSE(read(multi_modal(kOwn, kTied)).tied_head);
  EXPECT_TRUE(read(multi_modal("", kTied)).tied_head);
  EXPECT_FALSE(read(multi_modal("", "")).tied_head);
}

TEST(Families, AHeadThatIsNeitherTiedNorInTheFilesIsNone) {
  const auto tied_files = open_checkpoint(source_path("tests/goldens/models/mistral_full_tied"));
  const auto has_head = [&](const std::string& fields) {
    return read(config_with("mistral", fields), *tied_files).has_head;
  };
  EXPECT_FALSE(has_head(R"(, "tie_word_embeddings": false)"));
  EXPECT_FALSE(has_head(""));
  EXPECT_TRUE(has_head(R"(, "tie_word_embeddings": true)"));
  EXPECT_TRUE(read(config_with("mistral", "")).has_head);  // without files
}

TEST(Families, AttentionBesideStatesSeesWhatCameBefore) {
  constexpr std::string_view kMixed = R"(, "layer_types": ["linear_attention", "full_attention"])";
  const auto hybrid = [](std::string_view fields) {
    return read(config_with("qwen3_5_text", std::string(fields)));
  };
  EXPECT_TRUE(hybrid(kMixed).has_states());
  expect_error(ErrorCode::unsupported, {"is_causal: false isn't supported"},
               [&] { hybrid(std::string(kMixed) + R"(, "is_causal": false)"); });
}

TEST(Families, NemotronLayersHaveOneBranchEach) {
  const auto nemotron = [](const std::string& fields) {
    return read(config_with("nemotron_h", fields));
  };
  const DecoderConfig pattern = nemotron(R"(, "hybrid_override_pattern": "M-*E")");
  const DecoderConfig listed =
      nemotron(R"(, "layers_block_type": ["mamba", "mlp", "attention", "moe"])");
  EXPECT_EQ(pattern, listed);
  EXPECT_FALSE(pattern.layers[0].has_mlp);
  EXPECT_EQ(pattern.layers[1].mixer, MixerKind::none);
  EXPECT_TRUE(pattern.layers[3].is_mixture);
  EXPECT_EQ(cache_groups(pattern).size(), 3u);
  expect_error(ErrorCode::unsupported, {"hybrid_override_pattern: \"X\" isn't supported"},
               [&] { nemotron(R"(, "hybrid_override_pattern": "M*X")"); });
  const DecoderConfig latent =
      nemotron(R"(, "hybrid_override_pattern": "M*E", "moe_latent_size": 8)");
  EXPECT_EQ(latent.mixture->latent_size, 8);
  EXPECT_EQ(latent.mixture->routing.shared, SharedExpert::none);
}

TEST(Families, GraniteHybridsAreReadByEitherNameOfALayersKind) {
  const auto hybrid = [](const std::string& fields) {
    return read(config_with("granitemoehybrid", fields));
  };
  for (const char* types : {R"("layer_types": ["attention", "full_attention"])",
                            R"("layers_block_type": ["attention", "attention"])"}) {
    const DecoderConfig mixed = hybrid(", " + std::string(types));
    EXPECT_TRUE(mixed.layers[1].is_mixture);
    EXPECT_EQ(mixed.layers[1].rope_index, kNoRope);
    EXPECT_EQ(mixed.mixture->shared_size, 1024);
  }
  const DecoderConfig dense =
      hybrid(R"(, "layer_types": ["attention", "attention"], "num_local_experts": 0,
                "shared_intermediate_size": 24, "position_embedding_type": "rope")");
  EXPECT_FALSE(dense.mixture);
  EXPECT_EQ(dense.intermediate_size, 24);
  EXPECT_EQ(dense.layers[0].rope_index, 0);
  for (const char* types : {R"("layer_types": ["mamba", "attention"])",
                            R"("layers_block_type": ["linear_attention", "full_attention"])"}) {
    const DecoderConfig mamba = hybrid(", \"mamba_n_heads\": 4, " + std::string(types));
    EXPECT_EQ(mamba.layers[0].mixer, MixerKind::mamba2);
    EXPECT_EQ(mamba.layers[1].mixer, MixerKind::attention);
    EXPECT_EQ(mamba.mamba2->heads, 4);
  }
  EXPECT_EQ(cache_groups(hybrid(", \"mamba_n_heads\": 4")).size(), 2u);  // states, open rows
  expect_error(ErrorCode::unsupported, {"layer_types[1]", "\"moe\" isn't supported"},
               [&] { hybrid(R"(, "layer_types": ["attention", "moe"])"); });
  expect_error(ErrorCode::invalid, {"layer_types: 1 entries for 2 layers"},
               [&] { hybrid(R"(, "layer_types": ["attention"])"); });
}

}  // namespace
}  // namespace paceline
