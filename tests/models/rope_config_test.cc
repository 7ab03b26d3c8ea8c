#include <gtest/gtest.h>

#include <string>

#include "models/hf_config.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

RopeConfig rope_of(const std::string& scaling) {
  const Json json = parse_json(R"({"rope_theta": 500.0, "rope_scaling": )" + scaling + "}", "test");
  return read_rope(HfConfig(json, "config.json"), {});
}

TEST(RopeConfigs, longrope_with_one_list_of_factors_divides_each_frequency) {
  const RopeConfig rope = rope_of(
      R"({"rope_type": "longrope", "short_factor": [1, 2.5], "long_factor": [1, 2.5],
          "attention_factor": 1.25})");
  EXPECT_EQ(rope.scaling, RopeScaling::by_frequency);
  EXPECT_EQ(rope.theta, 500.0);
  EXPECT_EQ(rope.frequency_divisors, (std::vector<float>{1.0f, 2.5f}));
  EXPECT_EQ(rope.attention_factor, 1.25);
}

TEST(RopeConfigs, other_longropes_are_refused) {
  expect_error(ErrorCode::unsupported, {"short_factor: differs from long_factor"}, [] {
    rope_of(R"({"rope_type": "longrope", "short_factor": [1], "long_factor": [2],
                "attention_factor": 1})");
  });
  expect_error(ErrorCode::invalid, {"long_factor[1]: expected a positive number"}, [] {
    rope_of(R"({"rope_type": "longrope", "short_factor": [1, 1], "long_factor": [1, 0],
                "attention_factor": 1})");
  });
  expect_error(ErrorCode::invalid, {"long_factor: missing"},
               [] { rope_of(R"({"rope_type": "longrope", "attention_factor": 1})"); });
  expect_error(ErrorCode::invalid, {"attention_factor: missing"}, [] {
    rope_of(R"({"rope_type": "longrope", "short_factor": [1], "long_factor": [1]})");
  });
}

}  // namespace
}  // namespace paceline
