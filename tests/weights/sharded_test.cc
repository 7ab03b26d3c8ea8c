#include "tests/weights/written_files.h"
#include "weights/checkpoint.h"

namespace paceline {
namespace {

const FileTensor kFirst{"first", "F32", {2}, bytes_of<float>({1, 2})};
const FileTensor kSecond{"second", "F32", {1, 2}, bytes_of<float>({3, 4})};
const FileTensor kThird{"third", "BF16", {2}, bytes_of<uint16_t>({0x3F80, 0x4000})};

const std::string kIndex = "model.safetensors.index.json";

float value_at(const Tensor& tensor, int64_t index) {
  return with_float_dtype(tensor.dtype(),
                          [&]<class T>() { return to_float(tensor.elements<T>()[index]); });
}

TEST(OpenCheckpoint, ReadsASingleFile) {
  const TestDirectory directory;
  directory.write("model.safetensors", safetensors_file({kThird, kFirst}));
  const auto checkpoint = open_checkpoint(directory.path());
  EXPECT_EQ(checkpoint->origin(), directory.path().string());
  ASSERT_EQ(checkpoint->entries().size(), 2u);
  EXPECT_EQ(checkpoint->entries()[0].name, "first");
  EXPECT_EQ(checkpoint->entries()[1].dtype, DType::bf16);
  EXPECT_TRUE(checkpoint->contains("third"));
  EXPECT_FALSE(checkpoint->contains("thir"));
  EXPECT_FALSE(checkpoint->contains(""));
  EXPECT_EQ(checkpoint->shape_of("first"), (Extents{2}));
  EXPECT_EQ(checkpoint->shape_of("fourth"), std::nullopt);
  const Tensor tensor = checkpoint->read("third", {2});
  EXPECT_TRUE(tensor.is_contiguous());
  EXPECT_EQ(value_at(tensor, 0), 1.0f);
  EXPECT_EQ(value_at(tensor, 1), 2.0f);
}

TEST(OpenCheckpoint, ReadSaysWhatIsMissingOrMisshapen) {
  const TestDirectory directory;
  directory.write("model.safetensors", safetensors_file({kFirst}));
  const auto checkpoint = open_checkpoint(directory.path());
  expect_error(ErrorCode::not_found,
               {directory.path().string(), "tensor \"model.norm.weight\" of shape [7] is missing"},
               [&] { checkpoint->read("model.norm.weight", {7}); });
  expect_error(ErrorCode::corrupt,
               {(directory.path() / "model.safetensors").string(),
                "tensor \"first\" has shape [2], but config.json needs [2, 1]"},
               [&] {
                 checkpoint->read("first", {2, 1});
               });
}

TEST(OpenCheckpoint, ReleasedTensorsCanBeReadAgain) {
  const TestDirectory directory;
  constexpr uint64_t kCount = 100'000;  // many pages
  const std::vector<float> values(kCount, 2.5f);
  directory.write("model.safetensors",
                  safetensors_file({{"large", "F32", {kCount}, bytes_of(values)}, kFirst}));
  const auto checkpoint = open_checkpoint(directory.path());
  const Extents shape{int64_t{kCount}};
  for (int round = 0; round < 2; ++round) {
    const Tensor tensor = checkpoint->read("large", shape);
    EXPECT_EQ(value_at(tensor, 0), 2.5f);
    EXPECT_EQ(value_at(tensor, int64_t{kCount} - 1), 2.5f);
    checkpoint->release("large");
  }
  checkpoint->release("of that name there is none");
  EXPECT_EQ(value_at(checkpoint->read("first", {2}), 1), 2.0f);
}

TEST(OpenCheckpoint, TensorsNotAlignedInTheFileAreAlignedWhenRead) {
  for (size_t padding = 0; padding < 8; ++padding) {
    const TestDirectory directory;
    directory.write("model.safetensors", safetensors_file({kThird, kFirst, kSecond}, padding));
    const auto checkpoint = open_checkpoint(directory.path());
    for (int round = 0; round < 2; ++round) {
      const Tensor first = checkpoint->read("first", {2});
      const Tensor second = checkpoint->read("second", {1, 2});
      EXPECT_EQ(reinterpret_cast<uintptr_t>(first.raw()) % 4, 0u);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(second.raw()) % 4, 0u);
      EXPECT_EQ(checkpoint->read("first", {2}).raw(), first.raw());
      EXPECT_EQ(value_at(first, 0), 1.0f);
      EXPECT_EQ(value_at(second, 1), 4.0f);
      EXPECT_EQ(value_at(checkpoint->read("third", {2}), 1), 2.0f);
      checkpoint->release("first");
      EXPECT_EQ(value_at(second, 0), 3.0f);
      checkpoint->release("second");
    }
  }
}

TEST(OpenCheckpoint, ReadsTheShardsOfAnIndex) {
  const TestDirectory directory;
  // "third" isn't in the map: a file may hold more than its index says.
  directory.write("a.safetensors", safetensors_file({kSecond}));
  directory.write("b.safetensors", safetensors_file({kFirst, kThird}));
  directory.write("not-of-the-index.safetensors", "garbage");
  directory.write(kIndex, R"({"weight_map":{"first":"b.safetensors","second":"a.safetensors"}})");
  const auto checkpoint = open_checkpoint(directory.path());
  ASSERT_EQ(checkpoint->entries().size(), 3u);
  EXPECT_EQ(value_at(checkpoint->read("first", {2}), 0), 1.0f);
  EXPECT_EQ(value_at(checkpoint->read("second", {1, 2}), 0), 3.0f);
}

TEST(OpenCheckpoint, ASingleFileIsPreferredToAnIndex) {
  const TestDirectory directory;
  directory.write("model.safetensors", safetensors_file({kFirst}));
  directory.write(kIndex, "garbage");
  EXPECT_EQ(open_checkpoint(directory.path())->entries().size(), 1u);
}

TEST(OpenCheckpoint, AMissingShardIsNamed) {
  const TestDirectory directory;
  directory.write("a.safetensors", safetensors_file({kFirst}));
  directory.write(kIndex, R"({"weight_map":{"first":"a.safetensors","second":"b.safetensors"}})");
  expect_error(ErrorCode::not_found, {kIndex, "\"b.safetensors\" of tensor \"second\" is missing"},
               [&] { open_checkpoint(directory.path()); });
}

TEST(OpenCheckpoint, ATensorThatIsNotInItsShardIsNamed) {
  const TestDirectory directory;
  directory.write("a.safetensors", safetensors_file({kFirst}));
  directory.write("b.safetensors", safetensors_file({kSecond}));
  directory.write(kIndex, R"({"weight_map":{"first":"a.safetensors","second":"b.safetensors",)"
                          R"("other":"b.safetensors"}})");
  expect_error(ErrorCode::corrupt, {kIndex, "tensor \"other\" isn't in b.safetensors"},
               [&] { open_checkpoint(directory.path()); });
  directory.write(kIndex, R"({"weight_map":{"first":"a.safetensors","second":"a.safetensors",)"
                          R"("z":"b.safetensors"}})");
  expect_error(ErrorCode::corrupt,
               {kIndex, "tensor \"second\" isn't in a.safetensors; it is in b.safetensors"},
               [&] { open_checkpoint(directory.path()); });
}

TEST(OpenCheckpoint, ATensorInTwoFilesIsNamed) {
  const TestDirectory directory;
  directory.write("a.safetensors", safetensors_file({kFirst, kSecond}));
  directory.write("b.safetensors", safetensors_file({kThird, kSecond}));
  const std::vector<std::string> parts = {
      "tensor \"second\" is both in a.safetensors and in b.safetensors", directory.path().string()};
  expect_error(ErrorCode::corrupt, parts, [&] { open_checkpoint(directory.path()); });
  directory.write(kIndex, R"({"weight_map":{"first":"a.safetensors","third":"b.safetensors"}})");
  expect_error(ErrorCode::corrupt, parts, [&] { open_checkpoint(directory.path()); });
}

TEST(OpenCheckpoint, ACorruptShardIsNamed) {
  const TestDirectory directory;
  directory.write("a.safetensors", safetensors_file({kFirst}));
  directory.write("b.safetensors", safetensors_file({kSecond}).substr(0, 40));
  directory.write(kIndex, R"({"weight_map":{"first":"a.safetensors","second":"b.safetensors"}})");
  expect_error(ErrorCode::corrupt, {(directory.path() / "b.safetensors").string(), "header length"},
               [&] { open_checkpoint(directory.path()); });
}

TEST(OpenCheckpoint, AnIndexCannotNameFilesElsewhere) {
  const TestDirectory directory;
  std::filesystem::create_directory(directory.path() / "inner");
  directory.write("a.safetensors", safetensors_file({kFirst}));
  directory.write("inner/" + kIndex, R"({"weight_map":{"first":"../a.safetensors"}})");
  expect_error(ErrorCode::corrupt, {kIndex, "\"first\"", "\"../a.safetensors\""},
               [&] { open_checkpoint(directory.path() / "inner"); });
}

TEST(OpenCheckpoint, ReadsAllFilesWhenThereIsNoIndex) {
  const TestDirectory directory;
  directory.write("x.safetensors", safetensors_file({kSecond}));
  directory.write("y.safetensors", safetensors_file({kFirst}));
  directory.write("notes.txt", "not weights");
  const auto checkpoint = open_checkpoint(directory.path());
  ASSERT_EQ(checkpoint->entries().size(), 2u);
  EXPECT_EQ(checkpoint->entries()[0].name, "first");
  EXPECT_EQ(value_at(checkpoint->read("first", {2}), 1), 2.0f);
}

TEST(OpenCheckpoint, NamesPyTorchFilesAndWhatToDoAboutThem) {
  for (const char* const name :
       {"pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "consolidated.00.pth"}) {
    const TestDirectory directory;
    directory.write("config.json", "{}");
    directory.write("training_args.bin", "x");
    directory.write(name, "x");
    expect_error(ErrorCode::unsupported, {directory.path().string(), name, "safetensors"},
                 [&] { open_checkpoint(directory.path()); });
  }
}

TEST(OpenCheckpoint, SaysWhenThereAreNoWeights) {
  const TestDirectory directory;
  directory.write("config.json", "{}");
  directory.write("training_args.bin", "x");
  expect_error(ErrorCode::not_found, {directory.path().string(), "no weights", "*.safetensors"},
               [&] { open_checkpoint(directory.path()); });
  expect_error(ErrorCode::not_found, {"nowhere", "can't be listed"},
               [&] { open_checkpoint(directory.path() / "nowhere"); });
  expect_error(ErrorCode::not_found, {"config.json", "can't be listed"},
               [&] { open_checkpoint(directory.path() / "config.json"); });
}

TEST(OpenCheckpoint, ALinkToNothingIsNamed) {
  const TestDirectory directory;
  std::filesystem::create_symlink("../blobs/gone", directory.path() / "model.safetensors");
  expect_error(ErrorCode::not_found, {(directory.path() / "model.safetensors").string()},
               [&] { open_checkpoint(directory.path()); });
}

TEST(UnreadWeights, AreTheShardsOfAnIndexBesideOneFile) {
  const TestDirectory directory;
  EXPECT_FALSE(unread_weights(directory.path()));
  directory.write("model.safetensors.index.json", "{}");
  EXPECT_FALSE(unread_weights(directory.path()));
  directory.write("model.safetensors", "");
  const auto note = unread_weights(directory.path());
  ASSERT_TRUE(note);
  EXPECT_NE(note->find("model.safetensors is read, model.safetensors.index.json and the shards"),
            std::string::npos);
}

}  // namespace
}  // namespace paceline
