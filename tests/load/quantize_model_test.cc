#include "load/quantize_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "base/json.h"
#include "base/mapped_file.h"
#include "load/loaded_model.h"
#include "models/decoder.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"
#include "weights/affine_quantizer.h"
#include "weights/dequantize.h"
#include "weights/expert_checkpoint.h"
#include "weights/mlx_checkpoint.h"
#include "weights/published_quantisation.h"
#include "weights/quantised_checkpoint.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class QuantizeModel : public ::testing::Test {
 protected:
  void SetUp() override {}

  QuantizeOptions options(AffineFormat format, const std::string& model = "llama_plain") const {
    return {.from = source_path("tests/goldens/models/" + model),
            .to = directory_ / "out",
            .format = format};
  }
  Json config() const {
    return parse_json(read_text_file(directory_ / "out/config.json", 1 << 20), "config.json");
  }
  std::vector<std::string> written() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_ / "out")) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  // Compares every tensor of the result, as a model reads it, with the quantised source.
  void expect_values_of(const QuantizeOptions& made) {
    const auto source = open_checkpoint(made.from), stored = open_checkpoint(made.to);
    const auto quantization = MlxQuantization::find(config(), "config.json");
    ASSERT_TRUE(quantization);
    MlxCheckpoint found(*stored, *quantization, memory_, threads_);
    ASSERT_EQ(found.entries().size(), source->entries().size());
    for (const CheckpointEntry& entry : source->entries()) {
      SCOPED_TRACE(entry.name);
      Tensor expected = source->read(entry.name, entry.shape);
      OwnedTensor values;
      if (found.read_grouped(entry.name, entry.shape) != nullptr) {
        const std::string module = entry.name.substr(0, entry.name.size() - 7);
        const AffineFormat format = *quantization->format_of(module);
        const OwnedAffineRows rows(expected, format, "test", memory_, threads_);
        values = dequantize(AffineRows(rows.tensors(), format), memory_, threads_);
        expected = values.view;
      }
      const Tensor read = found.read(entry.name, entry.shape);
      ASSERT_EQ(read.dtype(), expected.dtype());
      EXPECT_EQ(std::memcmp(read.raw(), expected.raw(), expected.size_bytes()), 0);
    }
  }

  TestDirectory temporary_;
  fs::path directory_ = temporary_.path();
  Memory memory_;
  ThreadPool threads_{2};
};

TEST_F(QuantizeModel, WritesADirectoryThatLoads) {
  const QuantizeOptions made = options({.bits = 4, .group_size = 32});
  uint64_t last_done = 0, last_all = 0;
  QuantizeOptions watched = made;
  watched.progress = [&](uint64_t done, uint64_t all) {
    EXPECT_GT(done, last_done);
    last_done = done;
    last_all = all;
  };
  const QuantizedSizes sizes = quantize_model(watched, threads_);
  EXPECT_EQ(last_done, last_all);
  EXPECT_EQ(sizes.bytes_before, last_all);
  EXPECT_EQ(sizes.bytes_before, static_cast<uint64_t>(sizes.parameters) * 4);
  // 4 bits, and two float32 for every 32 elements.
  const auto quantized = static_cast<uint64_t>(sizes.quantized_parameters);
  const auto plain = static_cast<uint64_t>(sizes.parameters) - quantized;
  EXPECT_EQ(sizes.bytes_after, quantized * 6 / 8 + plain * 4);
  EXPECT_NEAR(sizes.bits_per_weight(), 6.2, 0.2);
  expect_values_of(made);
  const auto model = load_model({.model = made.to.string()});
  EXPECT_EQ(model->decoder->num_parameters(), sizes.parameters);
  const std::vector<std::string> names = written();
  EXPECT_TRUE(std::ranges::find(names, "generation_config.json") != names.end());
  EXPECT_TRUE(std::ranges::find(names, "model.safetensors") != names.end());
  EXPECT_EQ(config().find("hidden_size")->as_int("hidden_size"), 32);
}

TEST_F(QuantizeModel, ReadsFloatsOf8Bits) {
  QuantizeOptions made = options({.bits = 8, .group_size = 32});
  made.from = source_path("tests/goldens/quantised/fp8_model");
  quantize_model(made, threads_);
  const auto quantization = MlxQuantization::find(config(), "config.json");
  ASSERT_TRUE(quantization);
  EXPECT_EQ(config().find("quantization_config")->find("quant_method"), nullptr);
  const auto source = open_checkpoint(made.from), stored = open_checkpoint(made.to);
  QuantisedCheckpoint plain(*source, *PublishedQuantisation::find(ModelFiles(made.from)), memory_,
                            threads_);
  MlxCheckpoint found(*stored, *quantization, memory_, threads_);
  ASSERT_EQ(found.entries().size(), plain.entries().size());
  const std::string name = "model.layers.1.mlp.down_proj.weight";
  const OwnedAffineRows rows(plain.read(name, {32, 64}), made.format, "test", memory_, threads_);
  const OwnedTensor expected =
      dequantize(AffineRows(rows.tensors(), made.format), memory_, threads_);
  const Tensor read = found.read(name, {32, 64});
  ASSERT_EQ(read.dtype(), DType::f32);
  EXPECT_EQ(std::memcmp(read.raw(), expected.view.raw(), read.size_bytes()), 0);
  EXPECT_EQ(load_model({.model = made.to.string()})->quantised_files, "");
}

// Of both spellings in the source; routers stay as they are.
TEST_F(QuantizeModel, ExpertsAreStackedAsMlxLmHasThem) {
  for (const std::string model :
       {"qwen3_moe_tied", "olmoe_grouped_stacked", "granitemoeshared_tied_stacked"}) {
    SCOPED_TRACE(model);
    fs::remove_all(directory_ / "out");
    const AffineFormat format{.bits = 4, .group_size = 32};
    quantize_model(options(format, model), threads_);
    const auto from = open_checkpoint(options(format, model).from);
    const auto stored = open_checkpoint(directory_ / "out");
    const bool is_granite = model.starts_with("granite");
    const std::string mlp = is_granite ? "model.layers.0.block_sparse_moe." : "model.layers.0.mlp.";
    const std::string router = mlp + (is_granite ? "router.weight" : "gate.weight");
    ASSERT_TRUE(from->shape_of(router));
    EXPECT_EQ(stored->shape_of(router), from->shape_of(router));
    EXPECT_FALSE(stored->contains(mlp + "experts.0.down_proj.weight"));
    const auto stack = stored->shape_of(mlp + "switch_mlp.up_proj.weight");
    ASSERT_TRUE(stack);
    EXPECT_EQ((*stack)[2], 4);
    MlxCheckpoint unpacked(*stored, *MlxQuantization::find(config(), "config.json"), memory_,
                           threads_);
    ExpertCheckpoint source(*from, memory_, threads_), found(unpacked, memory_, threads_);
    ASSERT_EQ(found.entries().size(), source.entries().size());
    for (const CheckpointEntry& entry : source.entries()) {
      if (entry.name.find(".experts.") == std::string::npos || entry.shape[1] != 32) continue;
      SCOPED_TRACE(entry.name);
      const OwnedAffineRows rows(source.read(entry.name, entry.shape), format, "test", memory_,
                                 threads_);
      const OwnedTensor expected =
          dequantize(AffineRows(rows.tensors(), format), memory_, threads_);
      ASSERT_NE(found.read_grouped(entry.name, entry.shape), nullptr);
      const Tensor read = found.read(entry.name, entry.shape);
      EXPECT_EQ(std::memcmp(read.raw(), expected.view.raw(), read.size_bytes()), 0);
    }
    EXPECT_NO_THROW(load_model({.model = directory_ / "out"}));
  }
}

// Names of mlx_lm/models/mixtral.py and gpt_oss.py, the latter with biases.
TEST_F(QuantizeModel, OtherNamesOfExpertsBecomeThoseOfMlxLm) {
  struct Expected {
    std::string model, stack;
    Extents words;
  };
  const std::vector<Expected> cases = {
      {"mixtral_plain", "block_sparse_moe.switch_mlp.up_proj.weight", {4, 24, 4}},
      {"gpt_oss_plain", "mlp.experts.up_proj.weight", {5, 12, 4}}};
  for (const Expected& expected : cases) {
    SCOPED_TRACE(expected.model);
    fs::remove_all(directory_ / "out");
    quantize_model(options({.bits = 4, .group_size = 32}, expected.model), threads_);
    const auto stored = open_checkpoint(directory_ / "out");
    EXPECT_EQ(stored->shape_of("model.layers.1." + expected.stack), expected.words);
    for (const CheckpointEntry& entry : stored->entries()) {
      EXPECT_EQ(entry.name.find(".experts.0."), entry.name.npos) << entry.name;
    }
    EXPECT_NO_THROW(load_model({.model = directory_ / "out"}));
  }
  const auto stored = open_checkpoint(directory_ / "out");
  EXPECT_EQ(stored->shape_of("model.layers.1.mlp.experts.up_proj.bias"), (Extents{5, 12}));
}

TEST_F(QuantizeModel, ARecipeWritesWhatDiffersFromTheUsualFormat) {
  QuantizeOptions made = options({.group_size = 32});
  made.recipe = "mixed_3_6";
  quantize_model(made, threads_);
  const Json written_config = config();
  const Json* const quantization = written_config.find("quantization");
  EXPECT_EQ(quantization->find("bits")->as_int("bits"), 3);
  EXPECT_EQ(quantization->find("lm_head")->find("bits")->as_int("bits"), 6);
  EXPECT_EQ(quantization->find("model.layers.2.mlp.down_proj")->find("bits")->as_int("bits"), 6);
  EXPECT_EQ(quantization->find("model.layers.0.mlp.down_proj"), nullptr);
  EXPECT_NE(written_config.find("quantization_config"), nullptr);
  expect_values_of(made);
}

TEST_F(QuantizeModel, ShardsHaveAnIndex) {
  QuantizeOptions made = options({.bits = 8, .group_size = 32}, "qwen3_untied_linear_sharded");
  made.max_shard_bytes = 20'000;
  quantize_model(made, threads_);
  const std::vector<std::string> names = written();
  EXPECT_TRUE(std::ranges::find(names, "model.safetensors.index.json") != names.end());
  EXPECT_TRUE(std::ranges::any_of(
      names, [](const std::string& name) { return name.starts_with("model-00002-of-0000"); }));
  for (const std::string& name : names) {
    if (!name.ends_with(".safetensors")) continue;
    EXPECT_LT(fs::file_size(made.to / name), 25'000u) << name;
  }
  expect_values_of(made);
  load_model({.model = made.to.string()});
}

TEST_F(QuantizeModel, MatricesWithoutWholeGroupsStay) {
  const QuantizeOptions made = options({.bits = 4, .group_size = 64});  // down_proj only
  const QuantizedSizes sizes = quantize_model(made, threads_);
  EXPECT_EQ(sizes.quantized_parameters, 3 * 64 * 32);
  load_model({.model = made.to.string()});
}

TEST_F(QuantizeModel, RefusalsLeaveNothing) {
  expect_error(ErrorCode::invalid, {"none of its matrices has rows of whole groups of 128"},
               [&] { quantize_model(options({.bits = 4, .group_size = 128}), threads_); });
  QuantizeOptions again = options({.bits = 4, .group_size = 32});
  again.from = source_path("tests/goldens/mlx/model");
  expect_error(ErrorCode::invalid, {"quantised already"}, [&] { quantize_model(again, threads_); });
  again.from = source_path("tests/goldens/quantised/gptq");  // said in quantize_config.json
  expect_error(ErrorCode::invalid, {"quantised/gptq", "quantised already", "gptq: 1 matrix"},
               [&] { quantize_model(again, threads_); });
  QuantizeOptions unknown = options({.bits = 4, .group_size = 32});
  unknown.recipe = "mixed_1_2";
  expect_error(ErrorCode::invalid, {"\"mixed_1_2\"", "mixed_2_6"},
               [&] { quantize_model(unknown, threads_); });
  QuantizeOptions stopped = options({.bits = 4, .group_size = 32});
  stopped.progress = [](uint64_t, uint64_t) { throw Error(ErrorCode::cancelled, "interrupted"); };
  expect_error(ErrorCode::cancelled, {"interrupted"}, [&] { quantize_model(stopped, threads_); });
  EXPECT_TRUE(fs::is_empty(directory_));
  fs::create_directory(directory_ / "out");
  expect_error(ErrorCode::invalid, {"out: exists already"},
               [&] { quantize_model(options({.bits = 4, .group_size = 32}), threads_); });
  EXPECT_TRUE(fs::is_empty(directory_ / "out"));
}

}  // namespace
}  // namespace paceline
