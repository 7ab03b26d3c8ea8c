#include "cli/text_wrap.h"

#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <vector>

#include "base/random.h"
#include "base/utf8.h"

namespace paceline {
namespace {

std::string wrapped(std::string_view text, int64_t columns) {
  TextWrap wrap;
  const std::string shown = wrap.add(text, columns);
  return shown + wrap.finish();
}

// The same text in pieces of a character.
std::string wrapped_by_character(std::string_view text, int64_t columns) {
  TextWrap wrap;
  std::string shown;
  while (!text.empty()) {
    const size_t size = decode_utf8(text).size;
    shown += wrap.add(text.substr(0, size), columns);
    text.remove_prefix(size);
  }
  return shown + wrap.finish();
}

TEST(TextWrap, AWordThatDoesNotFitBeginsALine) {
  EXPECT_EQ(wrapped("The old house by the river", 10), "The old\nhouse by\nthe river");
  EXPECT_EQ(wrapped("1234567890 x", 10), "1234567890\nx");
  EXPECT_EQ(wrapped("12345678 9 x", 10), "12345678 9\nx");
  EXPECT_EQ(wrapped("one\ntwo three", 9), "one\ntwo three");
  EXPECT_EQ(wrapped("one   four", 8), "one\nfour") << "no blanks begin a broken line";
}

TEST(TextWrap, IndentsAndTabsTakeTheirColumns) {
  EXPECT_EQ(wrapped("  - one two\n  - six", 9), "  - one\ntwo\n  - six");
  EXPECT_EQ(wrapped("a\tb cd", 10), "a\tb\ncd");
}

TEST(TextWrap, WideCharactersTakeTwoColumnsAndPartAnywhere) {
  EXPECT_EQ(columns_of(U'a'), 1);
  EXPECT_EQ(columns_of(U'\u65e5'), 2);
  EXPECT_EQ(columns_of(U'\u0301'), 0);
  EXPECT_EQ(wrapped("\u65e5\u672c\u8a9e\u6587", 5), "\u65e5\u672c\n\u8a9e\u6587");
  EXPECT_EQ(wrapped("ab\u65e5\u672ccd", 6), "ab\u65e5\u672c\ncd");
  EXPECT_EQ(wrapped("cafe\u0301 au", 7), "cafe\u0301 au") << "a mark takes no column";
}

TEST(TextWrap, AWordLongerThanALineIsLeftToTheTerminal) {
  EXPECT_EQ(wrapped("see https://example.org/a now", 10), "see\nhttps://example.org/a now");
  EXPECT_EQ(wrapped("0123456789abcdef ghi jkl", 10), "0123456789abcdef ghi\njkl");
}

TEST(TextWrap, CodeInAFenceStaysAsItIs) {
  const std::string code = "```py\nreturn one + two + three\n```\n";
  EXPECT_EQ(wrapped(code, 10), code);
  EXPECT_EQ(wrapped(code + "after the block", 10), code + "after the\nblock");
}

TEST(TextWrap, WithoutAWidthNothingChanges) {
  for (const std::string_view text : {"a  b \n\n c\t d ", "", "  ", "\u65e5 x"}) {
    EXPECT_EQ(wrapped(text, 0), text);
    EXPECT_EQ(wrapped_by_character(text, 0), text);
  }
  TextWrap wrap;
  EXPECT_EQ(wrap.add("one two", 20), "one");
  EXPECT_EQ(wrap.add(" three", 0), " two three") << "the width is no longer known";
}

TEST(TextWrap, AnUnfinishedWordIsKeptUntilItEnds) {
  TextWrap wrap;
  EXPECT_EQ(wrap.add("one tw", 20), "one");
  EXPECT_EQ(wrap.add("o", 20), "");
  EXPECT_EQ(wrap.add(" three", 20), " two");
  EXPECT_EQ(wrap.finish(), " three");
}

// Words of a text, whatever is between them.
std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string random_text(uint64_t seed) {
  std::string text;
  uint64_t index = 0;
  const auto draw = [&](double most) {
    return static_cast<size_t>(uniform_draw(seed, index++) * most);
  };
  for (int word = 0; word < 40; ++word) {
    for (size_t size = 1 + draw(11); size > 0; --size) text += draw(8) == 0 ? "\u00e9" : "x";
    text += draw(10) == 0 ? "\n" : std::string(1 + draw(2), ' ');
  }
  return text;
}

TEST(TextWrap, RandomTextsKeepTheirWordsAndFitTheirLines) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const std::string text = random_text(seed);
    const auto columns = static_cast<int64_t>(12 + seed % 30);
    const std::string shown = wrapped(text, columns);
    EXPECT_EQ(shown, wrapped_by_character(text, columns));
    EXPECT_EQ(words_of(shown), words_of(text));
    int64_t at = 0;
    for (std::string_view rest = shown; !rest.empty();) {
      const DecodedCodePoint next = decode_utf8(rest);
      at = next.code_point == U'\n' ? 0 : at + columns_of(next.code_point);
      ASSERT_LE(at, columns) << shown;
      rest.remove_prefix(next.size);
    }
  }
}

}  // namespace
}  // namespace paceline
