#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "models/rope_fields.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

RopeConfig rope_of(const std::string& scaling) {
  const Json json = parse_json(R"({"rope_theta": 500.0, "rope_scaling": )" + scaling + "}", "test");
  DecoderConfig decoder;
  decoder.head_dim = 4;
  decoder.max_position = 2048;
  read_ropes(HfConfig(JsonCursor(json, "config.json")), {{}}, decoder);
  return decoder.ropes.at(0);
}

TEST(RopeConfigs, LongropeWithOneListOfFactorsDividesEachFrequency) {
  const RopeConfig rope = rope_of(
      R"({"rope_type": "longrope", "short_factor": [1, 2.5], "long_factor": [1, 2.5],
          "attention_factor": 1.25})");
  EXPECT_EQ(rope.scaling, RopeScaling::by_frequency);
  EXPECT_EQ(rope.theta, 500.0);
  EXPECT_EQ(rope.frequency_divisors, (std::vector<float>{1.0f, 2.5f}));
  EXPECT_EQ(rope.attention_factor, 1.25);
}

TEST(RopeConfigs, TheFactorOfLongropesAnglesComesFromTheContexts) {
  const auto factor_of = [](const std::string& more) {
    return rope_of(R"({"rope_type": "longrope", "short_factor": [1, 1], "long_factor": [1, 1])" +
                   more + "}")
        .attention_factor;
  };
  EXPECT_EQ(factor_of(""), 1.0);  // the context isn't stretched
  EXPECT_DOUBLE_EQ(factor_of(R"(, "original_max_position_embeddings": 128)"),
                   std::sqrt(1.0 + std::log(16.0) / std::log(128.0)));
  EXPECT_DOUBLE_EQ(factor_of(R"(, "original_max_position_embeddings": 128, "factor": 4)"),
                   std::sqrt(1.0 + std::log(4.0) / std::log(128.0)));
}

TEST(RopeConfigs, LongropeWithTwoListsIsStretchedBeyondTheOriginalContext) {
  const RopeConfig rope = rope_of(
      R"({"rope_type": "longrope", "short_factor": [1, 2], "long_factor": [3, 4],
          "attention_factor": 1.25, "original_max_position_embeddings": 100})");
  EXPECT_EQ(rope.frequency_divisors, (std::vector<float>{1.0f, 2.0f}));
  EXPECT_EQ(rope.long_divisors, (std::vector<float>{3.0f, 4.0f}));
  EXPECT_EQ(rope.stretched_length(100), 0);
  EXPECT_EQ(rope.stretched_length(101), 101);
  EXPECT_EQ(rope.stretched_length(5000), 101);  // all long sequences have one set
}

TEST(RopeConfigs, DynamicIsStretchedToEachLengthBeyondTheContext) {
  const RopeConfig rope = rope_of(R"({"type": "dynamic", "factor": 3})");
  EXPECT_EQ(rope.scaling, RopeScaling::dynamic);
  EXPECT_EQ(rope.factor, 3.0);
  EXPECT_EQ(rope.stretched_length(2048), 0);
  EXPECT_EQ(rope.stretched_length(2049), 2049);
  EXPECT_EQ(rope.stretched_length(5000), 5000);
  expect_error(ErrorCode::invalid, {"factor: missing"}, [] { rope_of(R"({"type": "dynamic"})"); });
}

TEST(RopeConfigs, OtherLongropesAreRefused) {
  expect_error(ErrorCode::invalid, {"long_factor[1]: found 0, expected a number from 1e-06 to"},
               [] {
                 rope_of(R"({"rope_type": "longrope", "short_factor": [1, 1], "long_factor": [1, 0],
                "attention_factor": 1})");
               });
  expect_error(ErrorCode::invalid, {"long_factor: missing"},
               [] { rope_of(R"({"rope_type": "longrope", "attention_factor": 1})"); });
  expect_error(ErrorCode::invalid, {"long_factor: 1 factors, expected 2"}, [] {
    rope_of(R"({"rope_type": "longrope", "short_factor": [1], "long_factor": [1],
                "attention_factor": 1})");
  });
  expect_error(ErrorCode::invalid, {"original_max_position_embeddings: 1, longrope"}, [] {
    rope_of(R"({"rope_type": "longrope", "short_factor": [1, 1], "long_factor": [1, 1],
                "original_max_position_embeddings": 1})");
  });
}

DecoderConfig decoder_of(const std::string& fields) {
  const Json json = parse_json(fields, "test");
  DecoderConfig decoder;
  decoder.head_dim = 16;
  decoder.max_position = 2048;
  read_ropes(HfConfig(JsonCursor(json, "config.json")), {{.rotates_part = true}}, decoder);
  return decoder;
}

TEST(RopeConfigs, APartOfAHeadRotatesWhereverTheFieldStands) {
  EXPECT_EQ(decoder_of("{}").rotary_dim, 16);
  EXPECT_EQ(decoder_of(R"({"partial_rotary_factor": 0.5})").rotary_dim, 8);
  EXPECT_EQ(decoder_of(R"({"rope_parameters": {"partial_rotary_factor": 0.25}})").rotary_dim, 4);
  EXPECT_EQ(decoder_of(R"({"rope_scaling": {"partial_rotary_factor": 0.25},
                           "partial_rotary_factor": 0.5})")
                .rotary_dim,
            4);
  // An odd number of elements is stretched by one; the exponents keep it.
  const DecoderConfig odd = decoder_of(R"({"partial_rotary_factor": 0.2})");
  EXPECT_EQ(odd.rotary_dim, 4);
  EXPECT_EQ(odd.ropes[0].exponent_divisor, 3);
  for (const char* const share : {"1.5", "1073741824", "-0.5", "0", "0.1"}) {
    SCOPED_TRACE(share);
    expect_error(ErrorCode::invalid, {"partial_rotary_factor"}, [&] {
      decoder_of(R"({"rope_parameters": {"partial_rotary_factor": )" + std::string(share) + "}}");
    });
  }
}

TEST(RopeConfigs, TheTopLevelSOriginalContextIsThatOfOneRopeForAllLayers) {
  const std::string fields = R"({"original_max_position_embeddings": 512, "rope_scaling": {
      "type": "yarn", "factor": 4, "original_max_position_embeddings": 64}})";
  const Json json = parse_json(fields, "test");
  EXPECT_EQ(decoder_of(fields).ropes[0].original_max_position, 512.0);
  DecoderConfig decoder;
  decoder.head_dim = 16;
  decoder.max_position = 2048;
  read_ropes(HfConfig(JsonCursor(json, "config.json")),
             {{}, {.layer_type = "sliding_attention", .scaled = false}}, decoder);
  EXPECT_EQ(decoder.ropes[0].original_max_position, 64.0);
}

TEST(RopeConfigs, TwoKindsOfLayersNeedAnObjectEach) {
  const auto read = [](const std::string& fields) {
    const Json json = parse_json(fields, "test");
    DecoderConfig decoder;
    decoder.head_dim = 16;
    decoder.max_position = 2048;
    read_ropes(HfConfig(JsonCursor(json, "config.json")),
               {{.rotates_part = true},
                {.layer_type = "sliding_attention", .head_dim = 24, .rotates_part = true}},
               decoder);
    return decoder;
  };
  expect_error(ErrorCode::invalid, {"rope_parameters", "sliding_attention"},
               [&] { read(R"({"rope_parameters": {"rope_theta": 500}})"); });
  expect_error(ErrorCode::invalid, {"rope_scaling", "rope_parameters"}, [&] {
    read(R"({"rope_parameters": {"full_attention": {"rope_theta": 500}},
             "rope_scaling": {"type": "linear", "factor": 2}})");
  });
  const DecoderConfig mixed = read(R"({"rope_parameters": {"full_attention": {},
      "sliding_attention": {"partial_rotary_factor": 0.5}}})");
  EXPECT_EQ(mixed.rotary_dim_of(mixed.ropes[0]), 16);
  EXPECT_EQ(mixed.rotary_dim_of(mixed.ropes[1]), 12);
}

}  // namespace
}  // namespace paceline
