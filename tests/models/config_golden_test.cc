// Compares spellings of config.json with transformers' results (tests/goldens/configs).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "kernels/backend.h"
#include "models/family.h"
#include "paceline/error.h"
#include "tests/source_path.h"
#include "weights/checkpoint.h"

namespace paceline::testing {
namespace {

std::vector<Json> config_goldens() {
  std::ifstream file(source_path("tests/goldens/configs/configs.jsonl"));
  std::vector<Json> goldens;
  for (std::string line; std::getline(file, line);) goldens.push_back(parse_json(line, "golden"));
  return goldens;
}

const Json& member(const Json& object, std::string_view key) {
  const Json* const found = object.find(key);
  if (found == nullptr) throw Error(ErrorCode::corrupt, std::string(key) + " isn't in the golden");
  return *found;
}

double number_in(const Json& object, std::string_view key) {
  return member(object, key).as_double(key);
}

DecoderConfig config_of(const Json& golden) {
  Memory memory;
  const auto weights = make_dummy_checkpoint(DType::f32, 0, memory);
  return read_decoder_config(member(golden, "config"), WeightReader(*weights), "config.json");
}

// The table of angles at several positions has the cosines and sines of the golden's frequencies.
void expect_rope(const DecoderConfig& config, const RopeConfig& rope, const Json& golden) {
  std::vector<double> frequencies;
  for (const Json& item : member(golden, "frequencies").as_array("frequencies")) {
    frequencies.push_back(item.as_double("frequencies"));
  }
  ASSERT_EQ(config.rotary_dim, 2 * static_cast<int64_t>(frequencies.size()));
  const double factor = number_in(golden, "attention_factor");
  constexpr std::array<int32_t, 3> kPositions = {1, 37, 4000};
  Memory memory;
  const auto backend = make_reference_backend();
  const auto num_floats = static_cast<int64_t>(kPositions.size()) * config.rotary_dim;
  Scratch scratch(memory, scratch_bytes(DType::f32, num_floats));
  const Tensor table =
      Rope(rope, config.rotary_dim, *backend).table(*backend, kPositions, {}, scratch);
  const auto* angles = table.elements<float>();
  for (const int32_t position : kPositions) {
    for (const double frequency : frequencies) {
      const double angle = position * frequency;
      const double tolerance = factor * (1e-6 + 5e-7 * angle);
      EXPECT_NEAR(static_cast<double>(*angles++), factor * std::cos(angle), tolerance);
      EXPECT_NEAR(static_cast<double>(*angles++), factor * std::sin(angle), tolerance);
    }
  }
}

void expect_ropes(const DecoderConfig& config, const Json& golden) {
  const Json& ropes = member(golden, "ropes");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const bool own_rope = config.layers[i].rope_index == 1;
    const Json* const rope = ropes.find(own_rope ? "sliding_attention" : "full_attention");
    ASSERT_NE(rope, nullptr) << "layer " << i;
    expect_rope(config, config.ropes[static_cast<size_t>(config.layers[i].rope_index)], *rope);
  }
}

void expect_computed(const DecoderConfig& config, const Json& golden) {
  EXPECT_EQ(config.head_dim, member(golden, "head_dim").as_int("head_dim"));
  EXPECT_EQ(config.num_kv_heads, member(golden, "num_kv_heads").as_int("num_kv_heads"));
  EXPECT_EQ(config.max_position, member(golden, "max_position").as_int("max_position"));
  EXPECT_EQ(config.norm_eps, static_cast<float>(number_in(golden, "norm_eps")));
  EXPECT_FLOAT_EQ(config.attention_scale, static_cast<float>(number_in(golden, "attention_scale")));
  EXPECT_EQ(config.attention_soft_cap, static_cast<float>(number_in(golden, "attention_soft_cap")));
  EXPECT_EQ(config.final_soft_cap, static_cast<float>(number_in(golden, "final_soft_cap")));
  EXPECT_EQ(config.qkv_bias, member(golden, "qkv_bias").as_bool("qkv_bias"));
  EXPECT_EQ(config.output_bias, member(golden, "output_bias").as_bool("output_bias"));
  EXPECT_EQ(config.tied_head, member(golden, "tied_head").as_bool("tied_head"));
  const Json::Array& windows = member(golden, "windows").as_array("windows");
  ASSERT_EQ(config.layers.size(), windows.size());
  for (size_t i = 0; i < windows.size(); ++i) {
    EXPECT_EQ(config.layers[i].window, windows[i].as_int("windows")) << "layer " << i;
  }
  expect_ropes(config, golden);
}

TEST(ConfigGoldens, EverySpellingIsReadAsTransformersReadsIt) {
  const std::vector<Json> goldens = config_goldens();
  ASSERT_GT(goldens.size(), 70u);
  for (const Json& golden : goldens) {
    SCOPED_TRACE(member(golden, "name").as_string("name"));
    const bool fails = golden.find("fails") != nullptr;
    try {
      const DecoderConfig config = config_of(golden);
      EXPECT_FALSE(fails) << "transformers refuses it";
      if (!fails) expect_computed(config, member(golden, "computed"));
    } catch (const Error& error) {
      EXPECT_TRUE(fails) << error.what();
    }
  }
}

}  // namespace
}  // namespace paceline::testing
