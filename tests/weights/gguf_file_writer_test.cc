// What GgufFileWriter writes is what parse_gguf() reads.
#include "weights/gguf_file_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/expect_error.h"
#include "tests/weights/written_files.h"
#include "weights/gguf_file.h"

namespace paceline {
namespace {

TEST(GgufFileWriter, KeysAndTensorsReadBack) {
  const TestDirectory directory;
  GgufHeader header;
  header.add_string("general.architecture", "llama");
  header.add_size("a.size", 7);
  header.add_integer("an.integer", -3);
  header.add_number("a.number", 0.5f);
  header.add_boolean("a.flag", true);
  header.add_strings("strings", std::array<std::string, 3>{"a", "", "\u00e9"});
  header.add_integers("integers", std::array<int32_t, 2>{-1, 5});
  header.add_booleans("flags", {true, false});
  header.add_numbers("numbers", std::array<float, 2>{1.5f, -2.0f});
  header.add_tensor("first", GgufType::f32, {3}, "model");
  header.add_tensor("second", GgufType::bf16, {2, 5}, "model");
  const std::array<float, 3> first = {1, 2, 3};
  std::array<std::byte, 20> second{};
  second.fill(std::byte{7});
  const auto path = directory.path() / "model.gguf";
  {
    GgufFileWriter writer(path, header);
    writer.write(std::as_bytes(std::span(first)));
    writer.write(std::span(second).first(9));
    writer.write(std::span(second).subspan(9));
    writer.finish();
  }
  const GgufFile file(path);
  const GgufMetadata& metadata = file.metadata();
  EXPECT_EQ(metadata.string("general.architecture"), "llama");
  EXPECT_EQ(metadata.integer("a.size"), 7);
  EXPECT_EQ(metadata.integer("an.integer"), -3);
  EXPECT_EQ(metadata.number("a.number"), 0.5);
  EXPECT_EQ(metadata.boolean("a.flag"), true);
  EXPECT_EQ(metadata.strings("strings"), (std::vector<std::string_view>{"a", "", "\u00e9"}));
  EXPECT_EQ(metadata.integers("integers"), (std::vector<int64_t>{-1, 5}));
  EXPECT_EQ(metadata.integers("flags"), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(metadata.numbers("numbers"), (std::vector<float>{1.5f, -2.0f}));
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.find_tensor("second")->extents, (Extents{2, 5}));
  EXPECT_EQ(std::memcmp(file.find_tensor("first")->bytes.data(), first.data(), 12), 0);
  EXPECT_EQ(std::memcmp(file.find_tensor("second")->bytes.data(), second.data(), 20), 0);
  GgufHeader copy;
  for (const GgufValue& value : metadata.values()) copy.add_copy(value);
  EXPECT_TRUE(copy.has_key("strings"));
  EXPECT_EQ(copy.bytes().size() % 32, 0u);
}

}  // namespace
}  // namespace paceline
