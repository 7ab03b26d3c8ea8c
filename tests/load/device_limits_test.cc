// Models that a device's kernels don't take are refused by the field's name.
#include "load/device_limits.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace paceline {
namespace {

TEST(DeviceLimits, LatentAttentionNeedsValuesInKeys) {
  const DecoderConfig latent{.head_dim = 576,
                             .latent = LatentConfig{.rank = 512, .rope_dim = 64},
                             .layers = {LayerConfig{}}};
  check_device_takes(latent, {}, "config.json");
  expect_error(ErrorCode::unsupported,
               {"config.json: kv_lora_rank: multi-head latent attention", "--device cpu"},
               [&] { check_device_takes(latent, {.values_in_keys = false}, "config.json"); });
}

TEST(DeviceLimits, ScoresByDistanceNeedKernels) {
  const DecoderConfig encoder{.head_dim = 64,
                              .distance_scores = DistanceScoresConfig{.num_heads = 12},
                              .layers = {LayerConfig{}}};
  check_device_takes(encoder, {}, "config.json");
  expect_error(ErrorCode::unsupported, {"config.json: scores of attention", "--device cpu"},
               [&] { check_device_takes(encoder, {.position_scores = false}, "config.json"); });
}

TEST(DeviceLimits, ClippedHeadsNeedKernels) {
  const DecoderConfig olmo{.head_dim = 64, .clip_qkv = 8.0f, .layers = {LayerConfig{}}};
  check_device_takes(olmo, {}, "config.json");
  expect_error(ErrorCode::unsupported, {"config.json: clip_qkv: clipped queries", "--device cpu"},
               [&] { check_device_takes(olmo, {.clamp = false}, "config.json"); });
}

TEST(DeviceLimits, ChunksOfTheContextNeedKernels) {
  const DecoderConfig llama4{.head_dim = 128,
                             .layers = {LayerConfig{.window = 8192, .chunked = true}}};
  check_device_takes(llama4, {}, "config.json");
  expect_error(ErrorCode::unsupported, {"config.json: attention_chunk_size: ", "--device cpu"},
               [&] { check_device_takes(llama4, {.chunks = false}, "config.json"); });
}

TEST(DeviceLimits, SparseMixersNeedKernels) {
  DecoderConfig phimoe{.family = "phimoe", .head_dim = 128, .layers = {LayerConfig{}}};
  phimoe.mixture = MixtureConfig{.routing = {.score = ExpertScore::sparse_mixer}};
  check_device_takes(phimoe, {}, "config.json");
  expect_error(ErrorCode::unsupported, {"phimoe's choice of experts has no kernels"},
               [&] { check_device_takes(phimoe, {.sparse_mixer = false}, "config.json"); });
}

TEST(DeviceLimits, NormsOfValuesNeedMixedLayers) {
  const DecoderConfig mixed{
      .family = "gemma4", .head_dim = 8, .value_norm = true, .layers = {LayerConfig{}}};
  check_device_takes(mixed, {}, "config.json");
  expect_error(ErrorCode::unsupported,
               {"config.json: model_type: gemma4 has norms of values", "--device cpu"},
               [&] { check_device_takes(mixed, {.mixed_layers = false}, "config.json"); });
}

TEST(DeviceLimits, ChannelsThatDecayApartNeedKernels) {
  const DecoderConfig kimi{.delta_net = DeltaNetConfig{.key_dim = 8, .channel_decay = true},
                           .layers = {LayerConfig{.mixer = MixerKind::delta_net}}};
  check_device_takes(kimi, {}, "config.json");
  expect_error(ErrorCode::unsupported,
               {"config.json: ", "a decay for each channel", "--device cpu"},
               [&] { check_device_takes(kimi, {.channel_decay = false}, "config.json"); });
}

TEST(DeviceLimits, HeadsHaveAMostSize) {
  const DecoderConfig wide{.head_dim = 576, .layers = {LayerConfig{}}};
  expect_error(ErrorCode::unsupported, {"config.json: head_dim: found 576, expected at most 512"},
               [&] { check_device_takes(wide, {.head_dim = 512}, "config.json"); });
}

}  // namespace
}  // namespace paceline
