#include "cli/config_text.h"

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

TEST(Toml, DottedKeysAreTables) {
  const auto entries = parse_toml("a.b = 1\nc = 2\na.\"d\".e = 3\n[a.f]\ng = { h = 4 }\n", "t");
  ASSERT_EQ(entries.size(), 4u);
  const char* const expected[] = {"a/b:1", "/c:2", "a.d/e:3", "a.f/g:5"};
  for (size_t i = 0; i < entries.size(); ++i) {
    const ConfigEntry& entry = entries[i];
    EXPECT_EQ(entry.table + "/" + entry.key + ":" + std::to_string(entry.line), expected[i]);
  }
}

TEST(Toml, ErrorsNameTheLineAndWhatWasFound) {
  EXPECT_EQ(
      error_of("a = 1\nb\n"),
      "t:2: Error while parsing key-value pair: expected '=', saw '\\n'; found \"b\", expected "
      "KEY = VALUE with texts in quotes");
  EXPECT_THAT(error_of("a = hello"), HasSubstr("found \"a = hello\", expected KEY = VALUE with"));
  EXPECT_THAT(error_of("a = 1 2"), HasSubstr("t:1: "));
  EXPECT_THAT(error_of("a = 1\na = 2"), HasSubstr("t:2: Error while parsing key-value pair: "
                                                  "cannot redefine existing integer 'a'"));
  EXPECT_THAT(error_of("[a]\nb = 1\n[a]\n"), HasSubstr("t:3: "));
  EXPECT_THAT(error_of("a = \"open\nb = 1"), HasSubstr("t:1: "));
  EXPECT_THAT(error_of("a = \"\\q\""), HasSubstr("unknown escape"));
  EXPECT_THAT(error_of("a = 18446744073709551615"), HasSubstr("not representable in 64 bits"));
  EXPECT_EQ(error_of("[a]\nx = 1\n [=]\n"), "t:3: expected a table's name after [");
  EXPECT_THAT(error_of("a = [1, 2"), HasSubstr("t:1"));
  EXPECT_THAT(error_of("a = [\n1, nan]"), HasSubstr("t:2: found nan, expected a number"));
  EXPECT_THAT(error_of("a = [\n1979-05-27]", ErrorCode::unsupported), HasSubstr("t:2: dates"));
  EXPECT_THAT(error_of("a = \"\xff\""), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of("a = " + std::string(1000, '[')), HasSubstr("t:1: "));
  std::string deep = "a";
  for (int i = 0; i < 200'000; ++i) deep += ".a";
  EXPECT_THAT(error_of("x = 1\n" + deep + " = 1"), HasSubstr("t:2: more than 1000 points"));
  EXPECT_THAT(error_of("x = { " + deep + " = 1 }"), HasSubstr("t:1: more than 1000 points"));
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
