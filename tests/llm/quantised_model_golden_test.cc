// Models in published formats compute what their dequantised copies do
// (tools/goldens/make_quantised_goldens.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "paceline/llm.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"
#include "weights/published_quantisation.h"
#include "weights/quantised_checkpoint.h"
#include "weights/safetensors_writer.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::string quantised_model(const std::string& name) {
  return source_path("tests/goldens/quantised/" + name);
}

// Writes a model with plain numbers only, and a config without quantisation.
void write_plain_twin(const fs::path& model, const fs::path& twin) {
  Memory memory;
  ThreadPool threads(2);
  const auto source = open_checkpoint(model);
  QuantisedCheckpoint checkpoint(*source, *PublishedQuantisation::find(ModelFiles(model)), memory,
                                 threads);
  SafetensorsWriter writer(twin / "model.safetensors");
  for (const CheckpointEntry& entry : checkpoint.entries()) {
    writer.add(entry.name, safetensors_dtype_name(entry.dtype), entry.shape);
  }
  for (const CheckpointEntry& entry : checkpoint.entries()) {
    writer.write(entry.name, checkpoint.read(entry.name, entry.shape).bytes());
  }
  writer.finish();
  const std::string text = read_text_file(model / "config.json", 1 << 20);
  Json::Object config = parse_json(text, "config.json").as_object("config");
  std::erase_if(config, [](const Json::Member& m) { return m.first == "quantization_config"; });
  NewFile file(twin / "config.json");
  file.append(to_json(Json(config)));
  file.commit();
}

struct Logits {
  std::vector<float> values;
  ModelInfo model;
};

Logits logits_with(const std::string& model, Activations activations,
                   LoadQuantization quantize = LoadQuantization::none) {
  LLM llm = LLM::load(
      {.model = model, .quantize = quantize, .activations = activations, .num_threads = 2});
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 40; ++i) prompt.push_back((i * 37 + 3) % 256);
  return {llm.classify(Prompt(prompt), {.with_logits = true}).logits, llm.model_info()};
}

// Their distance by the length of `expected`.
double relative_distance(const std::vector<float>& found, const std::vector<float>& expected) {
  double difference = 0, length = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(found[i] - expected[i], 2);
    length += std::pow(expected[i], 2);
  }
  return std::sqrt(difference / length);
}

class QuantisedModelGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(QuantisedModelGolden, ComputesWhatItsPlainTwinDoes) {
  const std::string model = quantised_model(GetParam());
  const TestDirectory twin;
  write_plain_twin(model, twin.path());
  const Logits found = logits_with(model, Activations::plain),
               expected = logits_with(twin.path(), Activations::plain);
  ASSERT_EQ(expected.values.size(), 256u);
  ASSERT_EQ(found.values.size(), expected.values.size());
  EXPECT_EQ(std::memcmp(found.values.data(), expected.values.data(), 256 * sizeof(float)), 0);
  EXPECT_TRUE(found.model.quantised_files.starts_with(GetParam().substr(0, 3)));
  EXPECT_TRUE(expected.model.quantised_files.empty());
}

INSTANTIATE_TEST_SUITE_P(Models, QuantisedModelGolden, ::testing::Values("gptq_model", "fp8_model"),
                         [](const auto& param) { return param.param; });

TEST(QuantisedModels, StayPackedWhereKernelsReadThem) {
  const std::string model = quantised_model("gptq_model");
  const Logits packed = logits_with(model, Activations::bfloat16),
               plain = logits_with(model, Activations::plain);
  EXPECT_LT(relative_distance(packed.values, plain.values), 0.02);
  // The codes of the layers, the plain embedding and head, and the matrix in another order.
  EXPECT_NE(packed.model.weight_format.find("q4x32"), std::string::npos);
  EXPECT_LT(packed.model.weight_bytes, plain.model.weight_bytes * 3 / 4);
  EXPECT_NE(packed.model.quantised_files.find("packed (4 bits in groups of 32)"),
            std::string::npos);
}

TEST(QuantisedModels, ReorderedMatricesAreCachedWithTheirOrder) {
  const TestDirectory cache;
  const std::string model = quantised_model("gptq_model");
  const auto load = [&](const std::string& weights_cache) {
    LLM llm = LLM::load({.model = model,
                         .activations = Activations::int8,
                         .weights_cache = weights_cache,
                         .num_threads = 2});
    const Prompt prompt(std::vector<int32_t>{1, 5, 9, 30, 200, 7});
    return llm.classify(prompt, {.with_logits = true}).logits;
  };
  const std::vector<float> expected = load({});
  for (int i = 0; i < 2; ++i) {
    const std::vector<float> found = load(cache.path());
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0) << i;
  }
}

// A copy of a golden model as bfloat16.
void write_in_bfloat16(const std::string& model, const fs::path& to) {
  fs::copy_file(fs::path(model) / "model.safetensors", to / "model.safetensors");
  std::string config = read_text_file(fs::path(model) / "config.json", 1 << 20);
  const std::string dtype = "\"dtype\": \"float32\"";
  const size_t at = config.find(dtype);
  ASSERT_NE(at, config.npos);
  NewFile file(to / "config.json");
  file.append(config.replace(at, dtype.size(), "\"dtype\": \"bfloat16\""));
  file.commit();
}

TEST(QuantisedModels, OfFloatsInBfloat16KeepTheirCodesAndTheBitsOfTheirNumbers) {
  const TestDirectory model, twin, cache;
  write_in_bfloat16(quantised_model("fp8_model"), model.path());
  write_plain_twin(model.path(), twin.path());
  const auto load = [](const fs::path& path, Activations activations,
                       const std::string& weights_cache = {}) {
    LLM llm = LLM::load({.model = path.string(),
                         .dtype = DataType::bfloat16,
                         .activations = activations,
                         .weights_cache = weights_cache,
                         .num_threads = 2});
    return Logits{
        llm.classify(Prompt(std::vector<int32_t>{1, 5, 9, 30, 200, 7}), {.with_logits = true})
            .logits,
        llm.model_info()};
  };
  const Logits expected = load(twin.path(), Activations::plain);
  for (const Logits& found :
       {load(model.path(), Activations::automatic), load(model.path(), Activations::plain),
        load(model.path(), Activations::automatic, cache.path()),
        load(model.path(), Activations::automatic, cache.path())}) {
    ASSERT_EQ(found.values.size(), expected.values.size());
    EXPECT_EQ(std::memcmp(found.values.data(), expected.values.data(),
                          expected.values.size() * sizeof(float)),
              0);
  }
  const Logits kept = load(model.path(), Activations::int8);
  EXPECT_NE(kept.model.weight_format.find("float8_e4m3"), std::string::npos);
  EXPECT_NE(kept.model.quantised_files.find("kept (float8_e4m3"), std::string::npos);
  EXPECT_LT(kept.model.weight_bytes, expected.model.weight_bytes);
}

TEST(QuantisedModels, OfFloatsMayBeQuantisedAgainAndPackedOnesMayNot) {
  const std::string model = quantised_model("fp8_model");
  const TestDirectory twin;
  write_plain_twin(model, twin.path());
  const Logits found = logits_with(model, Activations::int8, LoadQuantization::q8);
  const Logits expected = logits_with(twin.path(), Activations::int8, LoadQuantization::q8);
  ASSERT_EQ(found.values.size(), 256u);
  EXPECT_EQ(std::memcmp(found.values.data(), expected.values.data(), 256 * sizeof(float)), 0);
  EXPECT_EQ(found.model.weight_format.find("float32"), std::string::npos);
  expect_error(ErrorCode::invalid, {"is quantised already", "--quantize"}, [] {
    logits_with(quantised_model("gptq_model"), Activations::plain, LoadQuantization::q4);
  });
}

}  // namespace
}  // namespace paceline
