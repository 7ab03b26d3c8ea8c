#include "weights/safetensors_writer.h"

#include <algorithm>
#include <array>

#include "base/mapped_file.h"
#include "tests/weights/written_files.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

template <class T, size_t N>
std::span<const std::byte> array_bytes(const std::array<T, N>& values) {
  return std::as_bytes(std::span(values));
}

void write_small_file(const fs::path& path) {
  const std::array<float, 6> matrix{1, 2, 3, 4, 5, 6};
  const std::array<uint16_t, 3> vector{0x3F80, 0x4000, 0x4040};
  SafetensorsWriter writer(path, "mlx");
  writer.add("z.weight", "F32", {2, 3});
  writer.add("empty", "F16", {0, 4});
  writer.add("a.\"quoted\"", "BF16", {3});
  EXPECT_EQ(writer.data_bytes(), 30u);
  writer.write("z.weight", array_bytes(matrix).first(5));  // pieces of any size
  writer.write("z.weight", array_bytes(matrix).subspan(5));
  writer.write("a.\"quoted\"", array_bytes(vector));
  EXPECT_FALSE(fs::exists(path));
  writer.finish();
}

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
  const TestDirectory directory;
  write_small_file(directory.path() / "model.safetensors");
  EXPECT_EQ(names_in(directory.path()), (std::vector<std::string>{"model.safetensors"}));
  const auto checkpoint = open_checkpoint(directory.path());
  ASSERT_EQ(checkpoint->entries().size(), 3u);
  const Tensor matrix = checkpoint->read("z.weight", {2, 3});
  for (int i = 0; i < 6; ++i) EXPECT_EQ(matrix.elements<float>()[i], static_cast<float>(i + 1));
  const Tensor vector = checkpoint->read("a.\"quoted\"", {3});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(to_float(vector.elements<BFloat16>()[i]), static_cast<float>(i + 1));
  }
  EXPECT_TRUE(checkpoint->read("empty", {0, 4}).empty());
}

TEST(SafetensorsWriter, TheSameCallsMakeTheSameAlignedFile) {
  const TestDirectory directory;
  write_small_file(directory.path() / "a");
  write_small_file(directory.path() / "b");
  const std::string text = read_text_file(directory.path() / "a", 1 << 20);
  EXPECT_EQ(text, read_text_file(directory.path() / "b", 1 << 20));
  EXPECT_EQ((text.size() - 30) % 8, 0u);
  EXPECT_NE(text.find(R"({"__metadata__":{"format":"mlx"},"z.weight")"), text.npos);
}

TEST(SafetensorsWriter, OtherDtypesHaveTheirSizes) {
  const TestDirectory directory;
  const std::array<uint32_t, 2> words{7, 0xFFFFFFFF};
  const std::array<uint8_t, 2> codes{1, 2};
  SafetensorsWriter writer(directory.path() / "f");
  writer.add("words", "U32", {2});
  writer.add("codes", "U8", {2});
  writer.write("words", array_bytes(words));
  writer.write("codes", array_bytes(codes));
  writer.finish();
  const std::string text = read_text_file(directory.path() / "f", 1 << 20);
  EXPECT_NE(text.find(R"("words":{"dtype":"U32","shape":[2],"data_offsets":[0,8]})"), text.npos);
  EXPECT_TRUE(text.ends_with(std::string("\xFF\xFF\xFF\xFF\1\2", 6)));
}

TEST(SafetensorsWriter, AFileWithoutTensorsIsOneToo) {
  const TestDirectory directory;
  const fs::path path = directory.path() / "none.safetensors";
  SafetensorsWriter(path).finish();
  const MappedFile file(path);
  EXPECT_TRUE(parse_safetensors_header(file.bytes(), "none").empty());
}

TEST(SafetensorsWriter, NothingIsLeftOfAFileThatWasNotFinished) {
  const TestDirectory directory;
  {
    SafetensorsWriter writer(directory.path() / "model.safetensors");
    writer.add("x", "F32", {1});
    writer.write("x", array_bytes(std::array<float, 1>{1}));
    EXPECT_FALSE(std::filesystem::exists(directory.path() / "model.safetensors"));
  }
  EXPECT_TRUE(names_in(directory.path()).empty());
}

TEST(SafetensorsWriter, NothingIsOverwritten) {
  const TestDirectory directory;
  directory.write("there", "mine");
  expect_error(ErrorCode::invalid, {"there: exists already"},
               [&] { SafetensorsWriter writer(directory.path() / "there"); });
  expect_error(ErrorCode::invalid, {"no/such: can't be made: No such file or directory"},
               [&] { SafetensorsWriter writer(directory.path() / "no/such"); });
  SafetensorsWriter late(directory.path() / "late");
  directory.write("late", "mine");
  expect_error(ErrorCode::invalid, {"late: exists already"}, [&] { late.finish(); });
  EXPECT_EQ(read_text_file(directory.path() / "late", 100), "mine");
}

TEST(SafetensorsWriter, ANameStandsOnceAndSizesHaveALimit) {
  const TestDirectory directory;
  SafetensorsWriter writer(directory.path() / "f");
  writer.add("x", "F32", {1});
  expect_error(ErrorCode::invalid, {"tensor \"x\" would occur twice"},
               [&] { writer.add("x", "F16", {1}); });
  expect_error(ErrorCode::invalid, {"tensor \"y\"", "2^63"}, [&] {
    writer.add("y", "F32", {int64_t{1} << 40, int64_t{1} << 40});
  });
  expect_error(ErrorCode::invalid, {"2^63"}, [&] { writer.add("y", "U8", {INT64_MAX}); });
}

}  // namespace
}  // namespace paceline
