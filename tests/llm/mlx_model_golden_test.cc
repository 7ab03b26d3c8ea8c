// Compares a model quantised by mlx, with overrides, with its dequantised copy
// (tools/goldens/make_mlx_goldens.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "paceline/llm.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"
#include "weights/mlx_checkpoint.h"
#include "weights/safetensors_writer.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const std::string kModel = source_path("tests/goldens/mlx/model");

Json read_json(const std::string& name) {
  return parse_json(read_text_file(kModel + "/" + name, 1 << 20), name);
}

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.raw()), tensor.size_bytes()};
}

std::string fnv1a(std::span<const std::byte> bytes) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const std::byte byte : bytes)
    hash = (hash ^ std::to_integer<uint64_t>(byte)) * 0x100000001B3;
  return fmt::format("{:016x}", hash);
}

class MlxModelGolden : public ::testing::Test {
 protected:
  // Writes plain numbers only, and a config without quantisation.
  void write_twin(Checkpoint& checkpoint) {
    SafetensorsWriter writer(twin_ / "model.safetensors");
    for (const CheckpointEntry& entry : checkpoint.entries()) {
      writer.add(entry.name, safetensors_dtype_name(entry.dtype), entry.shape);
    }
    for (const CheckpointEntry& entry : checkpoint.entries()) {
      writer.write(entry.name, bytes_of(checkpoint.read(entry.name, entry.shape)));
    }
    writer.finish();
    Json::Object config = read_json("config.json").as_object("config");
    std::erase_if(config,
                  [](const Json::Member& m) { return m.first.starts_with("quantization"); });
    NewFile file(twin_ / "config.json");
    file.append(to_json(Json(config)));
    file.commit();
  }

  TestDirectory temporary_;
  fs::path twin_ = temporary_.path();
};

std::vector<float> logits_of(const std::string& model) {
  LLM llm = LLM::load({.model = model, .activations = Activations::plain, .num_threads = 2});
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 40; ++i) prompt.push_back((i * 37 + 3) % 256);
  return llm.classify(Prompt(prompt), {.with_logits = true}).logits;
}

TEST_F(MlxModelGolden, EveryMatrixIsDequantisedAsMlxDoes) {
  Memory memory;
  ThreadPool threads(2);
  const auto source = open_checkpoint(kModel);
  MlxCheckpoint checkpoint(*source, *MlxQuantization::find(read_json("config.json"), "config.json"),
                           memory, threads);
  const Json hashes = read_json("golden.json");
  EXPECT_EQ(hashes.as_object("golden").size(), 22u);
  for (const auto& [name, hash] : hashes.as_object("golden")) {
    const auto shape = checkpoint.shape_of(name);
    ASSERT_TRUE(shape) << name;
    EXPECT_EQ(fnv1a(bytes_of(checkpoint.read(name, *shape))), hash.as_string(name)) << name;
    EXPECT_NE(checkpoint.read_grouped(name, *shape), nullptr) << name;
  }
  write_twin(checkpoint);
  const std::vector<float> found = logits_of(kModel), expected = logits_of(twin_.string());
  ASSERT_EQ(found.size(), 256u);
  ASSERT_EQ(expected.size(), found.size());
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace paceline
