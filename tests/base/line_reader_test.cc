#include "base/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "paceline/error.h"
#include "tests/expect_error.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LineReaderTest : public testing::Test {
 protected:
  std::vector<Line> lines_of(std::string_view text) {
    std::ofstream(path_, std::ios::binary) << text;
    LineReader reader(path_);
    std::vector<Line> lines;
    while (auto line = reader.next()) lines.push_back(*line);
    return lines;
  }

  std::vector<std::string> texts_of(std::string_view text) {
    std::vector<std::string> texts;
    for (const Line& line : lines_of(text)) texts.push_back(line.text);
    return texts;
  }

  TestDirectory temporary_;
  std::string path_ = temporary_.path() / "lines.txt";
};

TEST_F(LineReaderTest, SplitsAtLineEnds) {
  EXPECT_THAT(texts_of(""), IsEmpty());
  EXPECT_THAT(texts_of("a"), ElementsAre("a"));
  EXPECT_THAT(texts_of("a\n"), ElementsAre("a"));
  EXPECT_THAT(texts_of("a\n\nb\r\nc"), ElementsAre("a", "", "b", "c"));
}

TEST_F(LineReaderTest, NumbersLines) {
  const auto lines = lines_of("a\n\nb");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[2].number, 3);
}

TEST_F(LineReaderTest, LinesMayCrossReads) {
  const std::string long_line(200'000, 'x');
  EXPECT_THAT(texts_of("a\n" + long_line + "\nb\n"), ElementsAre("a", long_line, "b"));
}

TEST_F(LineReaderTest, CutsLinesBeyondTheLimitAndGoesOn) {
  const std::string at_limit(kMaxLineBytes, 'x');
  const auto lines = lines_of(at_limit + "\n" + at_limit + "yyy\nb\n" + at_limit + "z");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_FALSE(lines[0].is_too_long);
  EXPECT_EQ(lines[0].text.size(), kMaxLineBytes);
  EXPECT_TRUE(lines[1].is_too_long);
  EXPECT_EQ(lines[2].text, "b");
  EXPECT_FALSE(lines[2].is_too_long);
  EXPECT_TRUE(lines[3].is_too_long);
}

TEST_F(LineReaderTest, KnowsHowFarItIs) {
  std::ofstream(path_) << "abc\nabc\nabcdefg\n";
  LineReader reader(path_);
  EXPECT_EQ(reader.share_read(), 0.0);
  reader.next();
  EXPECT_EQ(reader.share_read(), 0.25);
  reader.next();
  EXPECT_EQ(reader.share_read(), 0.5);
  reader.next();
  EXPECT_EQ(reader.share_read(), 1.0);
}

TEST_F(LineReaderTest, MissingFileIsNamed) {
  expect_error(ErrorCode::not_found, {"/nonexistent/items.jsonl"},
               [] { LineReader reader("/nonexistent/items.jsonl"); });
}

}  // namespace
}  // namespace paceline
