#include "cli/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "paceline/error.h"
#include "tests/expect_error.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

using testing::HasSubstr;

Json value_of(std::string_view text) {
  const auto entries = parse_toml("x = " + std::string(text) + "\n", "t");
  return entries.at(0).value;
}

std::string error_of(std::string_view text, ErrorCode code = ErrorCode::invalid) {
  return error_message(code, [&] { parse_toml(text, "t"); });
}

TEST(Toml, ReadsTablesKeysAndLines) {
  const auto entries = parse_toml(
      "# a comment\n"
      "top = 1\r\n"
      "\n"
      "[ generate ]  # another\n"
      "  max-tokens = 2 # and one\n"
      "\"quoted key\" = 3\n"
      "'literal' = 4",
      "t");
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].table, "");
  EXPECT_EQ(entries[0].key, "top");
  EXPECT_EQ(entries[0].line, 2);
  EXPECT_EQ(entries[1].table, "generate");
  EXPECT_EQ(entries[1].key, "max-tokens");
  EXPECT_EQ(entries[1].line, 5);
  EXPECT_EQ(entries[2].key, "quoted key");
  EXPECT_EQ(entries[3].key, "literal");
  EXPECT_EQ(entries[3].value.as_int("x"), 4);
}

TEST(Toml, ReadsNumbers) {
  EXPECT_EQ(value_of("+1_000").as_int("x"), 1000);
  EXPECT_EQ(value_of("-7").as_int("x"), -7);
  EXPECT_EQ(value_of("0xfF").as_int("x"), 255);
  EXPECT_EQ(value_of("0o17").as_int("x"), 15);
  EXPECT_EQ(value_of("0b101").as_int("x"), 5);
  EXPECT_EQ(value_of("18446744073709551615").as_uint("x"), UINT64_MAX);
  EXPECT_EQ(value_of("0.5").as_double("x"), 0.5);
  EXPECT_EQ(value_of("-1.5e-3").as_double("x"), -1.5e-3);
  EXPECT_EQ(value_of("true").as_bool("x"), true);
}

TEST(Toml, ReadsStrings) {
  EXPECT_EQ(value_of(R"("a\tb\n\"\\ \u00e9 \U0001F600")").as_string("x"), "a\tb\n\"\\ é 😀");
  EXPECT_EQ(value_of(R"('a\tb "c"')").as_string("x"), R"(a\tb "c")");
  EXPECT_EQ(value_of("\"\"\"\nline\n  \"quoted\" \\\n    joined\"\"\"").as_string("x"),
            "line\n  \"quoted\" joined");
  EXPECT_EQ(value_of("\"\"\"a \\  \r\n\n  # b\"\"\"").as_string("x"), "a # b");
  EXPECT_EQ(value_of("\"\"\"\"\"two\"\"\"\"\"").as_string("x"), "\"\"two\"\"");
  EXPECT_EQ(value_of("'''\nraw\\n'''").as_string("x"), "raw\\n");
  EXPECT_EQ(value_of("\"\"").as_string("x"), "");
  EXPECT_EQ(value_of("'# no comment'").as_string("x"), "# no comment");
}

TEST(Toml, ReadsArraysAndInlineTables) {
  const Json array = value_of("[ \"a\", # comment\n  'b',\n]");
  ASSERT_EQ(array.as_array("x").size(), 2u);
  EXPECT_EQ(array.as_array("x")[1].as_string("x"), "b");
  EXPECT_EQ(value_of("[[1, 2], []]").as_array("x").size(), 2u);
  const Json table = value_of("{ a = 1, \"b c\" = [2] }");
  EXPECT_EQ(table.find("a")->as_int("x"), 1);
  EXPECT_EQ(table.find("b c")->as_array("x").size(), 1u);
}

TEST(Toml, ErrorsNameTheLine) {
  EXPECT_EQ(error_of("a = 1\nb\n"), "t:2: expected = after b");
  EXPECT_THAT(error_of("a = hello"),
              HasSubstr("t:1: expected a value, found hello (a string needs quotes)"));
  EXPECT_THAT(error_of("a = 1 2"), HasSubstr("expected the end of the line"));
  EXPECT_THAT(error_of("a = 1\na = 2"), HasSubstr("t:2: the key a is set twice"));
  EXPECT_THAT(error_of("a = \"open\nb = 1"), HasSubstr("the string has no end"));
  EXPECT_THAT(error_of("a = \"\\q\""), HasSubstr("unknown escape"));
  EXPECT_THAT(error_of("a = \"x\\\ny\""), HasSubstr("unknown escape"));
  EXPECT_THAT(error_of("a = \"\"\"x\"\"\"\"\"\""), HasSubstr("expected the end of the line"));
  EXPECT_THAT(error_of("a = 0x-1"), HasSubstr("expected a value, found 0x-1"));
  EXPECT_THAT(error_of("a = \"\\uD800\""), HasSubstr("not a code point"));
  EXPECT_THAT(error_of("a = [1, 2"), HasSubstr("t:1"));
  EXPECT_THAT(error_of("[a\nb = 1"), HasSubstr("expected ]"));
  EXPECT_THAT(error_of("a.b = 1", ErrorCode::unsupported), HasSubstr("dotted keys"));
  EXPECT_THAT(error_of("[[a]]", ErrorCode::unsupported), HasSubstr("arrays of tables"));
  EXPECT_THAT(error_of("a = 1979-05-27", ErrorCode::unsupported), HasSubstr("dates"));
  EXPECT_THAT(error_of("a = \"\xff\""), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of("a = " + std::string(1000, '[')), HasSubstr("too deeply"));
}

// For any bytes the parser returns entries or throws an Error.
TEST(Toml, SurvivesMutations) {
  const std::string seed_text =
      "a = 1\n[generate]\nstop = [\"x\\n\", '''y''', \"\"\"z\\\n \"\"\"]\nb = { c = -0x1F, d = 1e5 "
      "}\n";
  std::mt19937 random(7);
  int parsed = 0;
  const int num_rounds = scaled(20'000, 2'000'000);
  for (int round = 0; round < num_rounds; ++round) {
    std::string text = seed_text;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = "[]{}\"'\\=,.#\n ax0-+\xC3"[random() % 20];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, seed_text, random() % seed_text.size(), random() % 12);
          break;
      }
      if (text.empty()) text = " ";
    }
    const std::string error = error_text([&] { parse_toml(text, "t"); });
    EXPECT_TRUE(error.empty() || error.starts_with("invalid: t:") ||
                error.starts_with("unsupported: t:"))
        << error;
    parsed += error.empty() ? 1 : 0;
  }
  EXPECT_GT(parsed, 0);
}

}  // namespace
}  // namespace paceline
