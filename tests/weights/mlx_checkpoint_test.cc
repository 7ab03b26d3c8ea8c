#include "weights/mlx_checkpoint.h"

#include <fmt/format.h>

#include <array>
#include <random>

#include "tests/test_scale.h"
#include "tests/weights/opened_checkpoint.h"
#include "weights/safetensors_writer.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

MlxQuantization quantization(const std::string& fields) {
  const std::string config = "{\"quantization\": {" + fields + "}}";
  return *MlxQuantization::find(parse_json(config, "config.json"), "config.json");
}

const std::string kFourBits = R"("bits": 4, "group_size": 32)";

// A 1 x 64 matrix in two groups: code i % 16 of element i; scales 1 and 2, biases -8 and 0.
std::vector<FileTensor> small_tensors() {
  std::vector<uint32_t> words;
  for (int i = 0; i < 4; ++i) words.insert(words.end(), {0x76543210, 0xFEDCBA98});
  return {{"a.weight", "U32", {1, 8}, bytes_of(words)},
          {"a.scales", "F32", {1, 2}, bytes_of(std::vector<float>{1, 2})},
          {"a.biases", "F32", {1, 2}, bytes_of(std::vector<float>{-8, 0})},
          {"norm.weight", "F32", {2}, bytes_of(std::vector<float>{3, 4})}};
}

class MlxCheckpointTest : public OpenedCheckpoint<MlxCheckpoint> {
 protected:
  MlxCheckpoint& open(const std::vector<FileTensor>& tensors,
                      const std::string& fields = kFourBits) {
    return OpenedCheckpoint::open(tensors, quantization(fields));
  }

  void expect_corrupt(const std::vector<FileTensor>& tensors, const std::vector<std::string>& parts,
                      const std::string& fields = kFourBits) {
    expect_error(ErrorCode::corrupt, parts, [&] { open(tensors, fields); });
  }
};

TEST_F(MlxCheckpointTest, ShowsPlainNamesAndShapes) {
  const MlxCheckpoint& checkpoint = open(small_tensors());
  EXPECT_EQ(checkpoint.files().size(), 1u);
  ASSERT_EQ(checkpoint.entries().size(), 2u);
  EXPECT_EQ(checkpoint.entries()[0].name, "a.weight");
  EXPECT_EQ(checkpoint.entries()[0].dtype, DType::f32);
  EXPECT_EQ(checkpoint.entries()[0].shape, (Extents{1, 64}));
  EXPECT_EQ(checkpoint.entries()[1].name, "norm.weight");
  EXPECT_TRUE(checkpoint.contains("a.weight"));
  EXPECT_FALSE(checkpoint.contains("a.scales"));
  EXPECT_EQ(checkpoint.shape_of("a.weight"), (Extents{1, 64}));
  EXPECT_EQ(checkpoint.shape_of("a.biases"), std::nullopt);
}

TEST_F(MlxCheckpointTest, ReadsCodesAndNumbers) {
  MlxCheckpoint& checkpoint = open(small_tensors());
  const auto rows = checkpoint.read_grouped("a.weight", {1, 64});
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->grouping(), (Grouping{.bits = 4, .group_size = 32, .zero_point = {}}));
  std::array<uint8_t, 64> codes{};
  std::array<float, 2> scales{}, offsets{};
  rows->read_codes(0, codes, scales, offsets);
  EXPECT_EQ(scales, (std::array<float, 2>{1, 2}));
  EXPECT_EQ(offsets, (std::array<float, 2>{-8, 0}));
  const Tensor values = checkpoint.read("a.weight", {1, 64});
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(codes[i], i % 16);
    const auto code = static_cast<float>(i % 16);
    EXPECT_EQ(values.elements<float>()[i], i < 32 ? code - 8 : 2 * code);
  }
  EXPECT_EQ(checkpoint.read_grouped("norm.weight", {2}), nullptr);
  EXPECT_EQ(checkpoint.read("norm.weight", {2}).elements<float>()[1], 4);
}

TEST_F(MlxCheckpointTest, GivesMemoryBackWhenATensorIsReleased) {
  MlxCheckpoint& checkpoint = open(small_tensors());
  const size_t before = memory_.stats().active_bytes;
  const void* const first = checkpoint.read("a.weight", {1, 64}).raw();
  EXPECT_EQ(checkpoint.read("a.weight", {1, 64}).raw(), first);
  EXPECT_GT(memory_.stats().active_bytes, before);
  checkpoint.release("a.weight");
  EXPECT_EQ(memory_.stats().active_bytes, before);
}

TEST_F(MlxCheckpointTest, AnotherShapeIsRefused) {
  MlxCheckpoint& checkpoint = open(small_tensors());
  for (const bool grouped : {false, true}) {
    expect_error(ErrorCode::corrupt, {"\"a.weight\" has shape [1, 64]", "needs [2, 64]"}, [&] {
      grouped ? void(checkpoint.read_grouped("a.weight", {2, 64}))
              : void(checkpoint.read("a.weight", {2, 64}));
    });
  }
}

TEST_F(MlxCheckpointTest, APartThatIsMissingOrOtherThanExpectedIsNamed) {
  auto tensors = small_tensors();
  tensors.erase(tensors.begin() + 1);
  expect_corrupt(tensors, {"\"a.scales\": is missing", "\"a.weight\" needs it"});
  tensors = small_tensors();
  tensors.erase(tensors.begin() + 2);
  expect_corrupt(tensors, {"\"a.biases\": is missing"});
  tensors = small_tensors();
  tensors[1].shape = {2, 1};
  expect_corrupt(tensors, {"\"a.scales\": has shape [2, 1], expected [1, 2] beside \"a.weight\"",
                           "4 bits in groups of 32"});
  tensors = small_tensors();
  tensors[2].dtype = "BF16";
  tensors[2].bytes.resize(4);
  expect_corrupt(tensors, {"\"a.biases\": holds bfloat16, expected float32 as the scales"});
  tensors = small_tensors();
  tensors[1].dtype = "U32";
  expect_corrupt(tensors, {"\"a.scales\": holds uint32, expected float32, float16 or bfloat16"});
}

TEST_F(MlxCheckpointTest, BitsThatTheShapesDenyAreRefused) {
  expect_corrupt(small_tensors(), {"\"a.scales\": has shape [1, 2], expected [1, 4]"},
                 R"("bits": 2, "group_size": 32)");
  expect_corrupt(small_tensors(), {"\"a.weight\": rows of 8 words, expected whole groups (3 bits"},
                 R"("bits": 3, "group_size": 32)");
  expect_corrupt(small_tensors(), {"\"a.weight\": rows of 8 words", "in groups of 128"},
                 R"("bits": 4, "group_size": 128)");
  auto tensors = small_tensors();
  tensors[0].shape = {8};
  expect_corrupt(tensors, {"\"a.weight\": packed words of shape [8], expected [rows, words]"});
  tensors[0] = {"a.weight", "U32", {0, 8}, ""};
  expect_corrupt(tensors, {"packed words of shape [0, 8]"});
}

TEST_F(MlxCheckpointTest, ConfigAndFileAgreeOnWhatIsPacked) {
  expect_corrupt(small_tensors(), {"\"a.weight\": holds packed uint32, but is not quantised"},
                 kFourBits + R"(, "a": false)");
  auto tensors = small_tensors();
  tensors[0] = {"a.weight", "F32", {1, 8}, std::string(32, '\0')};
  expect_corrupt(tensors, {"\"a.weight\": holds float32, expected packed uint32"});
}

// Any dtypes, shapes and config give an Error, or matrices that can be read.
TEST_F(MlxCheckpointTest, AnyPartsAreAMatrixOrAnError) {
  std::mt19937 random(7);
  const auto one_of = [&](const auto& values) { return values[random() % std::size(values)]; };
  int num_read = 0, num_refused = 0;
  const int rounds = scaled(300, 30000);
  for (int round = 0; round < rounds; ++round) {
    auto tensors = small_tensors();
    for (size_t i = 0; i < 3; ++i) {
      FileTensor& tensor = tensors[i];
      if (random() % 8 == 0) tensor.dtype = one_of(std::array{"F32", "BF16", "U32"});
      if (random() % 8 == 0) tensor.shape.back() = one_of(std::array<uint64_t, 4>{0, 1, 4, 16});
      if (random() % 16 == 0) tensor.shape.pop_back();
      uint64_t bytes = tensor.dtype == "BF16" ? 2 : 4;
      for (const uint64_t size : tensor.shape) bytes *= size;
      tensor.bytes.resize(bytes);
    }
    const int bits = one_of(std::array{4, 4, 4, 2, 8}), group = one_of(std::array{32, 32, 64});
    try {
      Checkpoint& checkpoint =
          open(tensors, fmt::format(R"("bits": {}, "group_size": {})", bits, group));
      for (const CheckpointEntry& entry : checkpoint.entries()) {
        EXPECT_EQ(checkpoint.read(entry.name, entry.shape).shape(), entry.shape);
      }
      ++num_read;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.what();
      ++num_refused;
    }
  }
  EXPECT_GT(num_read, rounds / 20);
  EXPECT_GT(num_refused, rounds / 20);
}

TEST_F(MlxCheckpointTest, PackedWordsAreNoWeightsOfAPlainModel) {
  directory_.write("model.safetensors", safetensors_file(std::vector<FileTensor>{
                                            {"model.a.weight", "U32", {2}, std::string(8, 'x')}}));
  source_ = open_checkpoint(directory_.path());
  WeightReader reader(*source_);
  expect_error(ErrorCode::unsupported, {"\"model.a.weight\" holds uint32", "`quantization`"},
               [&] { reader.read("a.weight", {2}); });
}

}  // namespace
}  // namespace paceline
