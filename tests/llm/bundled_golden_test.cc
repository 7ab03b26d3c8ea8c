// Compares the bundled model in bfloat16 with transformers in float32, over 255 positions of
// held-out text.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include "base/json.h"
#include "base/mapped_file.h"
#include "paceline/llm.h"
#include "tests/source_path.h"

namespace paceline {
namespace {

// Where float32 prefers its first choice by more than this margin, ours must be the same.
constexpr double kSureMargin = 0.05;

struct Row {
  std::vector<int32_t> ids;      // the eight likeliest next tokens
  std::vector<double> logprobs;  // theirs
};

struct Golden {
  std::vector<int32_t> input_ids;
  std::vector<Row> rows;
};

Golden read_golden(const std::string& path) {
  const Json json = parse_json(read_text_file(path, 1 << 20), path);
  Golden golden;
  for (const Json& id : json.find("input_ids")->as_array("input_ids")) {
    golden.input_ids.push_back(static_cast<int32_t>(id.as_int("input_ids")));
  }
  const auto& ids = json.find("top_ids")->as_array("top_ids");
  const auto& logprobs = json.find("top_logprobs")->as_array("top_logprobs");
  for (size_t i = 0; i < ids.size(); ++i) {
    Row row;
    for (const Json& id : ids[i].as_array("top_ids")) {
      row.ids.push_back(static_cast<int32_t>(id.as_int("top_ids")));
    }
    for (const Json& logprob : logprobs[i].as_array("top_logprobs")) {
      row.logprobs.push_back(logprob.as_double("top_logprobs"));
    }
    golden.rows.push_back(std::move(row));
  }
  return golden;
}

TEST(BundledModelGolden, Bfloat16StaysCloseToTransformersInFloat32) {
  const std::string model = source_path("models/paceline-10m");
  ASSERT_TRUE(std::filesystem::exists(model + "/model.safetensors"));
  const Golden golden = read_golden(source_path("tests/goldens/bundled/paceline-10m.json"));
  LLM llm = LLM::load({.model = model, .max_num_seqs = 1, .num_threads = 2});
  const std::vector<Logprob> scored = llm.score(golden.input_ids, {.num_top_logprobs = 20});
  ASSERT_EQ(scored.size(), golden.input_ids.size());

  double divergence = 0;
  int same_first = 0;
  const auto rows = scored.size() - 1;
  for (size_t i = 0; i < rows; ++i) {
    const Row& expected = golden.rows[i];
    std::map<int32_t, double> found;
    for (const TopLogprob& top : scored[i + 1].top)
      found[top.id] = static_cast<double>(top.logprob);
    // The divergence over the eight likeliest tokens.
    for (size_t t = 0; t < expected.ids.size(); ++t) {
      ASSERT_TRUE(found.contains(expected.ids[t])) << "row " << i;
      divergence +=
          std::exp(expected.logprobs[t]) * (expected.logprobs[t] - found[expected.ids[t]]);
    }
    const bool same = scored[i + 1].top[0].id == expected.ids[0];
    same_first += same ? 1 : 0;
    const bool is_sure = expected.logprobs[0] - expected.logprobs[1] > kSureMargin;
    EXPECT_TRUE(same || !is_sure) << i;
  }
  EXPECT_LT(std::abs(divergence) / static_cast<double>(rows), 1e-3);
  EXPECT_GT(same_first, static_cast<int>(0.985 * static_cast<double>(rows)));
}

}  // namespace
}  // namespace paceline
