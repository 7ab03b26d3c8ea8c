#include "load/weights_key.h"
#include "tests/test_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <vector>

namespace paceline {
namespace {

namespace fs = std::filesystem;

class WeightsKeyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write("a", "first");
    write("b", "second");
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
  }
  std::vector<MappedFile> map(const std::vector<std::string>& names) const {
    std::vector<MappedFile> files;
    for (const std::string& name : names) files.emplace_back(directory_ / name);
    return files;
  }

  TestDirectory temporary_;
  fs::path directory_ = temporary_.path();
};

TEST_F(WeightsKeyTest, IsTheSameForTheSameAndAnotherForAnythingElse) {
  const auto both = map({"a", "b"}), one = map({"a"});
  const auto key = [](std::span<const MappedFile> files, std::string_view config, DType dtype,
                      std::string_view quantize, bool keeps) {
    return weights_key({.files = files,
                        .config = config,
                        .dtype = dtype,
                        .quantize = quantize,
                        .keeps_quantised = keeps});
  };
  const std::string usual = key(both, "{}", DType::bf16, "none", true);
  EXPECT_EQ(key(map({"a", "b"}), "{}", DType::bf16, "none", true), usual);
  std::set<std::string> keys = {usual};
  EXPECT_TRUE(keys.insert(key(one, "{}", DType::bf16, "none", true)).second);
  EXPECT_TRUE(keys.insert(key(both, "{} ", DType::bf16, "none", true)).second);
  EXPECT_TRUE(keys.insert(key(both, "{}", DType::f32, "none", true)).second);
  EXPECT_TRUE(keys.insert(key(both, "{}", DType::bf16, "q4", true)).second);
  EXPECT_TRUE(keys.insert(key(both, "{}", DType::bf16, "none", false)).second);
  std::set<std::string> names;
  for (const std::string& one_key : keys) {
    EXPECT_TRUE(names.insert(weights_file_name(one_key)).second);
    EXPECT_THAT(weights_file_name(one_key), ::testing::MatchesRegex("[0-9a-f]{32}[.]weights"));
  }
}

TEST_F(WeightsKeyTest, IsAsciiWhateverFilesAreCalled) {
  write("line\nend \xff\\", "third");
  const std::string key = weights_key({.files = map({"line\nend \xff\\"}), .config = "{}"});
  EXPECT_THAT(key, ::testing::HasSubstr("file line\\0aend\\20\\ff\\5c 5 "));
  for (const char c : key) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 0x7f));
}

TEST_F(WeightsKeyTest, NoticesFilesThatAreWrittenToOrReplaced) {
  const auto files = map({"a", "b"});
  EXPECT_TRUE(are_unchanged(files));
  ::usleep(20'000);  // more than a tick of the clock that files are stamped with
  write("b", "SECOND");
  EXPECT_FALSE(are_unchanged(files));
  EXPECT_TRUE(are_unchanged(map({"a", "b"})));
  const auto again = map({"a"});
  fs::remove(directory_ / "a");
  EXPECT_FALSE(are_unchanged(again));
}

}  // namespace
}  // namespace paceline
