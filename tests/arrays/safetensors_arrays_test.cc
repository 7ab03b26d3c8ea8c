// Arrays saved in safetensors files and loaded again.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "paceline/array.h"
#include "tests/expect_error.h"
#include "tests/test_directory.h"

namespace paceline::arrays {
namespace {

// A file whose header is `header`, before `data`.
std::string file_of(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + data;
}

class SafetensorsOfArrays : public testing::Test {
 protected:
  TestDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "arrays.safetensors";
};

TEST_F(SafetensorsOfArrays, ComeBackAsTheyWere) {
  const NamedArrays saved = {
      {"a.weight", normal({3, 4}, {.seed = 1})},
      {"half", normal({5}, {.seed = 2}, 0.0f, 1.0f, DType::float16)},
      {"brain", normal({2, 2}, {.seed = 3}, 0.0f, 1.0f, DType::bfloat16)},
      {"ids", integers({-7, 1 << 30}, {2})},
      {"mask", mask({0, 1, 1}, {3})},
      {"scalar", full({}, 2.5f)},
      {"nothing", zeros({0, 4})},
      {"turned", transpose(normal({2, 3}, {.seed = 4}))},
      {"\xC3\xA4 \"quoted\"\n", ones({1})},
      {"", ones({1, 1, 1, 1, 1, 2})},
  };
  save_safetensors(path_, saved);
  const NamedArrays loaded = load_safetensors(path_);
  ASSERT_EQ(loaded.size(), saved.size());
  for (const auto& [name, array] : saved) {
    SCOPED_TRACE(name);
    const Array& found = loaded.at(name);
    EXPECT_EQ(found.shape(), array.shape());
    ASSERT_EQ(found.dtype(), array.dtype());
    if (array.dtype() == DType::int32) {
      EXPECT_EQ(found.to_vector<int32_t>(), array.to_vector<int32_t>());
    } else if (array.dtype() == DType::mask) {
      EXPECT_EQ(found.to_vector<int8_t>(), array.to_vector<int8_t>());
    } else {
      EXPECT_EQ(found.to_vector(), array.to_vector());
    }
  }
}

TEST_F(SafetensorsOfArrays, ReplaceAFileOfTheName) {
  save_safetensors(path_, {{"a", ones({4})}});
  save_safetensors(path_, {{"b", zeros({2})}});
  EXPECT_EQ(load_safetensors(path_).count("b"), 1u);
  EXPECT_EQ(load_safetensors(path_).size(), 1u);
  save_safetensors(path_, {});
  EXPECT_TRUE(load_safetensors(path_).empty());
}

TEST_F(SafetensorsOfArrays, RefuseWhatAFileCannotHave) {
  save_safetensors(path_, {{"kept", ones({4})}});
  expect_error(ErrorCode::invalid, {"__metadata__"}, [&] {
    save_safetensors(path_, {{"__metadata__", ones({1})}});
  });
  expect_error(ErrorCode::invalid, {"expected UTF-8"}, [&] {
    save_safetensors(path_, {{"\xFF", ones({1})}});
  });
  expect_error(ErrorCode::invalid, {"empty array", "\"a\""}, [&] {
    save_safetensors(path_, {{"a", Array()}});
  });
  EXPECT_EQ(load_safetensors(path_).count("kept"), 1u);
  expect_error(ErrorCode::invalid, {"nowhere"}, [&] {
    save_safetensors(directory_.path() / "nowhere" / "a", {{"a", ones({1})}});
  });
}

TEST_F(SafetensorsOfArrays, RefuseFilesThatAreNot) {
  expect_error(ErrorCode::not_found, {"arrays.safetensors"}, [&] { load_safetensors(path_); });
  const auto expect = [&](ErrorCode code, const std::vector<std::string>& parts,
                          const std::string& content) {
    directory_.write("arrays.safetensors", content);
    expect_error(code, parts, [&] { load_safetensors(path_); });
  };
  expect(ErrorCode::corrupt, {"header length"}, "short");
  expect(ErrorCode::corrupt, {"header"}, file_of("[]", ""));
  const auto one = [](const std::string& dtype, const std::string& shape, int bytes) {
    return R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[0,)" +
           std::to_string(bytes) + "]}}";
  };
  expect(ErrorCode::corrupt, {"\"x\"", "[2]"}, file_of(one("F32", "[2]", 4), "1234"));
  expect(ErrorCode::corrupt, {"truncated"}, file_of(one("F32", "[1]", 4), "12"));
  expect(ErrorCode::unsupported, {"F64"}, file_of(one("F64", "[1]", 8), "12345678"));
  expect(ErrorCode::unsupported, {"\"x\"", "int64"}, file_of(one("I64", "[1]", 8), "12345678"));
  expect(ErrorCode::unsupported, {"\"x\"", "int8", "mask"}, file_of(one("I8", "[1]", 1), "2"));
  expect(ErrorCode::unsupported, {"dimensions"}, file_of(one("F32", "[1,1,1,1,1,1,1]", 4), "1234"));
  expect(ErrorCode::exhausted, {"1099511627776"},
         file_of(one("F32", "[0,1000000000,1000000]", 0), ""));
}

}  // namespace
}  // namespace paceline::arrays
