// Stacked experts are read one by one, from plain and packed files.
#include "weights/expert_checkpoint.h"

#include <numeric>
#include <optional>

#include "tests/weights/opened_checkpoint.h"
#include "weights/mlx_checkpoint.h"
#include "weights/quantizing_checkpoint.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

std::vector<float> counting_up(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

using ExpertCheckpointTest = OpenedCheckpoint<ExpertCheckpoint>;

// Two experts with gates and ups [3, 4] and downs [4, 3].
std::vector<FileTensor> stacked() {
  return {{"model.layers.0.mlp.experts.gate_up_proj", "F32", {2, 6, 4}, bytes_of(counting_up(48))},
          {"model.layers.0.mlp.experts.down_proj", "F32", {2, 4, 3}, bytes_of(counting_up(24))},
          {"model.embed_tokens.weight", "F32", {2, 2}, bytes_of(counting_up(4))}};
}

TEST_F(ExpertCheckpointTest, ShowsEachExpertsMatrices) {
  const ExpertCheckpoint& checkpoint = open(stacked());
  std::vector<std::string> names;
  for (const CheckpointEntry& entry : checkpoint.entries()) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"model.embed_tokens.weight",
                                             "model.layers.0.mlp.experts.0.down_proj.weight",
                                             "model.layers.0.mlp.experts.0.gate_proj.weight",
                                             "model.layers.0.mlp.experts.0.up_proj.weight",
                                             "model.layers.0.mlp.experts.1.down_proj.weight",
                                             "model.layers.0.mlp.experts.1.gate_proj.weight",
                                             "model.layers.0.mlp.experts.1.up_proj.weight"}));
  EXPECT_EQ(checkpoint.shape_of(names[2]), (Extents{3, 4}));
  EXPECT_FALSE(checkpoint.contains("model.layers.0.mlp.experts.2.up_proj.weight"));
}

TEST_F(ExpertCheckpointTest, ReadsTheRowsOfAnExpert) {
  ExpertCheckpoint& checkpoint = open(stacked());
  const Tensor up = checkpoint.read("model.layers.0.mlp.experts.1.up_proj.weight", {3, 4});
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(up.elements<float>()[i], static_cast<float>(36 + i));
  const Tensor down = checkpoint.read("model.layers.0.mlp.experts.1.down_proj.weight", {4, 3});
  EXPECT_EQ(down.elements<float>()[0], 12.0f);
  EXPECT_EQ(checkpoint.read("model.embed_tokens.weight", {2, 2}).elements<float>()[3], 3.0f);
}

TEST_F(ExpertCheckpointTest, ARowReaderFindsUnreadExperts) {
  WeightReader weights(open(stacked()));
  weights.read("embed_tokens.weight", {2, 2});
  for (const char* const name :
       {"layers.0.mlp.experts.0.gate_proj.weight", "layers.0.mlp.experts.0.up_proj.weight",
        "layers.0.mlp.experts.1.gate_proj.weight", "layers.0.mlp.experts.1.up_proj.weight"}) {
    weights.read(name, {3, 4});
    weights.release(name);
  }
  EXPECT_EQ(weights.num_elements_read(), 4 + 48);
  expect_error(ErrorCode::corrupt, {"2 tensors", "experts.0.down_proj", "experts.1.down_proj"},
               [&] { weights.expect_all_read(); });
}

TEST_F(ExpertCheckpointTest, RefusesOtherShapesAndStacksThatCantBeDivided) {
  expect_error(ErrorCode::corrupt, {"down_proj", "[2, 4, 3]", "[4, 3]", "[4, 5]"}, [&] {
    open(stacked()).read("model.layers.0.mlp.experts.0.down_proj.weight", {4, 5});
  });
  expect_error(ErrorCode::corrupt, {"gate_up_proj", "[2, 5, 4]", "2 projections"}, [&] {
    open({{"a.experts.gate_up_proj", "F32", {2, 5, 4}, bytes_of(counting_up(40))}});
  });
  expect_error(ErrorCode::corrupt, {"both hold", "experts.0.gate_proj"}, [&] {
    open({{"a.experts.gate_up_proj", "F32", {1, 2, 2}, bytes_of(counting_up(4))},
          {"a.switch_mlp.gate_proj.weight", "F32", {1, 1, 2}, bytes_of(counting_up(2))}});
  });
}

TEST_F(ExpertCheckpointTest, LeavesOtherTensorsAlone) {
  const ExpertCheckpoint& checkpoint =
      open({{"a.experts.down_proj", "F32", {2, 2}, bytes_of(counting_up(4))},
            {"b.experts.down_proj", "F32", {0, 2, 2}, ""},
            {"c.weight", "F32", {1, 2, 2}, bytes_of(counting_up(4))}});
  EXPECT_EQ(checkpoint.entries().size(), 3u);
  EXPECT_EQ(checkpoint.shape_of("c.weight"), (Extents{1, 2, 2}));
}

TEST_F(ExpertCheckpointTest, ReadsStacksThatMlxPacked) {
  // Codes i % 16 in rows of 32, scale e + 1 and bias e of expert e.
  const std::vector<uint32_t> row = {0x76543210, 0xFEDCBA98, 0x76543210, 0xFEDCBA98};
  std::vector<uint32_t> words;
  for (int i = 0; i < 6; ++i) words.insert(words.end(), row.begin(), row.end());
  directory_.write("model.safetensors",
                   safetensors_file(std::vector<FileTensor>{
                       {"a.switch_mlp.up_proj.weight", "U32", {2, 3, 4}, bytes_of(words)},
                       {"a.switch_mlp.up_proj.scales",
                        "F32",
                        {2, 3, 1},
                        bytes_of(std::vector<float>{1, 1, 1, 2, 2, 2})},
                       {"a.switch_mlp.up_proj.biases",
                        "F32",
                        {2, 3, 1},
                        bytes_of(std::vector<float>{0, 0, 0, 1, 1, 1})}}));
  source_ = open_checkpoint(directory_.path());
  const Json config = parse_json(R"({"quantization": {"bits": 4, "group_size": 32}})", "test");
  MlxCheckpoint unpacked(*source_, *MlxQuantization::find(config, "test"), memory_, threads_);
  ExpertCheckpoint checkpoint(unpacked, memory_, threads_);
  const std::string name = "a.experts.1.up_proj.weight";
  const auto rows = checkpoint.read_grouped(name, {3, 32});
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->num_rows(), 3);
  const Tensor values = checkpoint.read(name, {3, 32});
  for (int64_t i = 0; i < 96; ++i) {
    EXPECT_EQ(values.elements<float>()[i], 2.0f * static_cast<float>(i % 16) + 1.0f) << i;
  }
  EXPECT_EQ(unpacked.read("a.switch_mlp.up_proj.weight", {2, 3, 32}).shape(), (Extents{2, 3, 32}));
  checkpoint.release(name);
}

TEST_F(ExpertCheckpointTest, ExpertsAreQuantisedAndWhatIsReadAsStoredIsNot) {
  Checkpoint& stacks = open({{"a.experts.down_proj", "F32", {2, 3, 64}, bytes_of(counting_up(384))},
                             {"a.gate.weight", "F32", {2, 64}, bytes_of(counting_up(128))}});
  QuantizingCheckpoint checkpoint(stacks, LoadQuantization::q4, memory_, threads_);
  const auto rows = checkpoint.read_grouped("a.experts.1.down_proj.weight", {3, 64});
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->grouping().bits, 4);
  EXPECT_NE(checkpoint.read("a.gate.weight", {2, 64}).elements<float>()[1], 1.0f);
  EXPECT_EQ(checkpoint.read_as_stored("a.gate.weight", {2, 64}).elements<float>()[1], 1.0f);
  ExpertCheckpoint above(checkpoint, memory_, threads_);
  EXPECT_EQ(above.read_as_stored("a.gate.weight", {2, 64}).elements<float>()[1], 1.0f);
}

TEST_F(ExpertCheckpointTest, AStackBesideAnExpertOfItsOwnIsRefused) {
  std::vector<FileTensor> tensors = stacked();
  tensors.push_back(
      {"model.layers.0.mlp.experts.1.up_proj.weight", "F32", {3, 4}, bytes_of(counting_up(12))});
  expect_error(ErrorCode::corrupt, {"experts.gate_up_proj", "both hold", "experts.1.up_proj"},
               [&] { open(tensors); });
}

}  // namespace
}  // namespace paceline
