// Typed access to a GGUF file's metadata, against a model of it.
#include "weights/gguf_metadata.h"

#include <map>

#include "base/random.h"
#include "tests/test_scale.h"
#include "tests/weights/gguf_writer.h"
#include "tests/weights/written_files.h"
#include "weights/gguf_parse.h"

namespace paceline {
namespace {

// A file with these keys, and its parsed metadata.
struct MetadataRead {
  explicit MetadataRead(const GgufWriter& writer)
      : content(writer.file()), metadata(parse_gguf(as_bytes_of(content), "m.gguf").metadata) {}
  std::string content;
  GgufMetadata metadata;
};

TEST(GgufMetadata, WhatIsNotThereIsNothing) {
  const MetadataRead read(GgufWriter().number("a", 1));
  EXPECT_FALSE(read.metadata.contains("b"));
  EXPECT_FALSE(read.metadata.is_array("b"));
  EXPECT_EQ(read.metadata.integer("b"), std::nullopt);
  EXPECT_EQ(read.metadata.number("b"), std::nullopt);
  EXPECT_EQ(read.metadata.boolean("b"), std::nullopt);
  EXPECT_EQ(read.metadata.string("b"), std::nullopt);
  EXPECT_EQ(read.metadata.strings("b"), std::nullopt);
  EXPECT_EQ(read.metadata.integers("b"), std::nullopt);
  EXPECT_EQ(read.metadata.numbers("b"), std::nullopt);
}

TEST(GgufMetadata, AnotherTypeNamesFileKeyFoundAndExpected) {
  const MetadataRead read(GgufWriter()
                              .number("int", 1)
                              .number("float", 1.0f)
                              .boolean("bool", true)
                              .string("string", "x")
                              .strings("strings", {"x"})
                              .numbers<float>("floats", {1})
                              .numbers<int32_t>("ints", {1}));
  const GgufMetadata& m = read.metadata;
  const auto expect_wrong = [&](const std::string& key, const std::string& expected,
                                const std::string& found, auto&& getter) {
    expect_error(ErrorCode::corrupt,
                 {"m.gguf: metadata \"" + key + "\": expected " + expected + ", found " + found},
                 [&] { getter(key); });
  };
  const auto integer = [&](std::string_view key) { m.integer(key); };
  const auto number = [&](std::string_view key) { m.number(key); };
  const auto boolean = [&](std::string_view key) { m.boolean(key); };
  const auto string = [&](std::string_view key) { m.string(key); };
  const auto strings = [&](std::string_view key) { m.strings(key); };
  const auto integers = [&](std::string_view key) { m.integers(key); };
  const auto numbers = [&](std::string_view key) { m.numbers(key); };
  expect_wrong("float", "an integer", "float32", integer);
  expect_wrong("bool", "an integer", "bool", integer);
  expect_wrong("string", "an integer", "string", integer);
  expect_wrong("ints", "an integer", "array of int32", integer);
  expect_wrong("bool", "a number", "bool", number);
  expect_wrong("string", "a number", "string", number);
  expect_wrong("int", "a bool", "int32", boolean);
  expect_wrong("strings", "a string", "array of string", string);
  expect_wrong("int", "a string", "int32", string);
  expect_wrong("string", "an array of strings", "string", strings);
  expect_wrong("ints", "an array of strings", "array of int32", strings);
  expect_wrong("int", "an array of integers", "int32", integers);
  expect_wrong("floats", "an array of integers", "array of float32", integers);
  expect_wrong("strings", "an array of integers", "array of string", integers);
  expect_wrong("float", "an array of numbers", "float32", numbers);
  expect_wrong("strings", "an array of numbers", "array of string", numbers);
  EXPECT_EQ(m.numbers("ints"), (std::vector<float>{1}));
}

TEST(GgufMetadata, IntegersBeyond63BitsAreRefused) {
  const uint64_t most = INT64_MAX;
  const MetadataRead read(GgufWriter()
                              .number("fits", most)
                              .number("beyond", most + 1)
                              .numbers<uint64_t>("array", {0, most + 1}));
  EXPECT_EQ(read.metadata.integer("fits"), INT64_MAX);
  EXPECT_EQ(read.metadata.number("beyond"), 0x1p63);
  expect_error(ErrorCode::corrupt, {"\"beyond\": expected an integer below 2^63, found uint64"},
               [&] { read.metadata.integer("beyond"); });
  expect_error(ErrorCode::corrupt, {"\"array\"", "below 2^63, found array of uint64"},
               [&] { read.metadata.integers("array"); });
}

// Keys of every type with random values, read back against a map of them.
class RandomMetadata {
 public:
  RandomMetadata(uint64_t seed, uint64_t round) : seed_(seed), round_(round) {
    const uint32_t count = draw() % 20;
    for (uint32_t i = 0; i < count; ++i)
      add(std::to_string(draw() % 1000) + "." + std::to_string(i));
  }

  void expect_read_back() const {
    const MetadataRead read(writer_);
    EXPECT_EQ(read.metadata.values().size(),
              integers_.size() + strings_.size() + string_arrays_.size() + integer_arrays_.size());
    for (const auto& [key, value] : integers_) EXPECT_EQ(read.metadata.integer(key), value);
    for (const auto& [key, value] : strings_) EXPECT_EQ(read.metadata.string(key), value);
    for (const auto& [key, values] : string_arrays_) {
      const std::vector<std::string_view> views(values.begin(), values.end());
      EXPECT_EQ(read.metadata.strings(key), views);
    }
    for (const auto& [key, values] : integer_arrays_) {
      EXPECT_EQ(read.metadata.integers(key), values);
    }
  }

 private:
  uint32_t draw() { return philox4x32(seed_, round_, next_++)[0]; }
  std::string draw_string() {
    std::string text(draw() % 40, '\0');
    for (char& c : text) c = static_cast<char>(draw() % 256);
    return text;
  }
  template <class T>
  void add_integer(const std::string& key) {
    const T value = static_cast<T>(draw());
    writer_.number(key, value);
    integers_[key] = value;
  }
  void add(const std::string& key) {
    switch (draw() % 9) {
      case 0:
        return add_integer<uint8_t>(key);
      case 1:
        return add_integer<int8_t>(key);
      case 2:
        return add_integer<uint16_t>(key);
      case 3:
        return add_integer<int16_t>(key);
      case 4:
        return add_integer<uint32_t>(key);
      case 5:
        return add_integer<int64_t>(key);
      case 6:
        writer_.string(key, strings_[key] = draw_string());
        return;
      case 7: {
        auto& values = string_arrays_[key];
        for (uint32_t left = draw() % 6; left > 0; --left) values.push_back(draw_string());
        writer_.strings(key, values);
        return;
      }
      default: {
        std::vector<int16_t> values;
        for (uint32_t left = draw() % 6; left > 0; --left) {
          values.push_back(static_cast<int16_t>(draw()));
        }
        integer_arrays_[key].assign(values.begin(), values.end());
        writer_.numbers(key, values);
      }
    }
  }

  uint64_t seed_, round_;
  uint64_t next_ = 0;
  GgufWriter writer_;
  std::map<std::string, int64_t> integers_;
  std::map<std::string, std::string> strings_;
  std::map<std::string, std::vector<std::string>> string_arrays_;
  std::map<std::string, std::vector<int64_t>> integer_arrays_;
};

TEST(GgufMetadata, RandomValuesReadBack) {
  const int rounds = scaled(500, 50'000);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    RandomMetadata(61, static_cast<uint64_t>(round)).expect_read_back();
  }
}

}  // namespace
}  // namespace paceline
