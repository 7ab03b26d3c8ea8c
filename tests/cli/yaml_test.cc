#include "cli/config_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "paceline/error.h"
#include "tests/expect_error.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Json yaml_value(std::string_view text) {
  return parse_yaml("x: " + std::string(text) + "\n", "y").at(0).value;
}

std::string yaml_error(std::string_view text, ErrorCode code = ErrorCode::invalid) {
  return error_message(code, [&] { parse_yaml(text, "y"); });
}

// "table/key:line" of every entry.
std::vector<std::string> places_of(std::string_view text) {
  std::vector<std::string> places;
  for (const ConfigEntry& entry : parse_yaml(text, "y")) {
    places.push_back(entry.table + "/" + entry.key + ":" + std::to_string(entry.line));
  }
  return places;
}

TEST(Yaml, ReadsNestedMappingsWithTheirLines) {
  EXPECT_THAT(places_of("---\n"
                        "# a comment\n"
                        "model: a  # another\r\n"
                        "\n"
                        "lora_parameters:\n"
                        "    # inside\n"
                        "    rank: 8\n"
                        "    'scale': 20.0\n"
                        "optimizer_config:\n"
                        "  adamw:\n"
                        "    eps: 1e-6\n"
                        "  muon:\n"
                        "    momentum: 0.9\n"
                        "\"seed\" : 0\n"
                        "layers\\.[01]\\..*: 4\n"
                        "last:"),
              ElementsAre("/model:3", "lora_parameters/rank:7", "lora_parameters/scale:8",
                          "optimizer_config.adamw/eps:11", "optimizer_config.muon/momentum:13",
                          "/seed:14", "/layers\\.[01]\\..*:15", "/last:16"));
  EXPECT_TRUE(parse_yaml("", "y").empty());
  EXPECT_TRUE(parse_yaml("\xEF\xBB\xBF# nothing\n\n", "y").empty());
}

TEST(Yaml, ReadsScalarsAsPyYamlDoes) {
  EXPECT_EQ(yaml_value("12").as_int("x"), 12);
  EXPECT_EQ(yaml_value("-1").as_int("x"), -1);
  EXPECT_EQ(yaml_value("+1_000").as_int("x"), 1000);
  EXPECT_EQ(yaml_value("0x1F").as_int("x"), 31);
  EXPECT_EQ(yaml_value("18446744073709551615").as_uint("x"), UINT64_MAX);
  EXPECT_EQ(yaml_value("1e-5").as_double("x"), 1e-5);
  EXPECT_EQ(yaml_value("20.0").as_double("x"), 20.0);
  EXPECT_EQ(yaml_value(".5").as_double("x"), 0.5);
  EXPECT_EQ(yaml_value("-.inf").as_double("x"), -HUGE_VAL);
  for (const char* yes : {"true", "True", "yes", "on"}) EXPECT_TRUE(yaml_value(yes).as_bool("x"));
  for (const char* no : {"false", "FALSE", "no", "off"}) EXPECT_FALSE(yaml_value(no).as_bool("x"));
  for (const char* null : {"", "~", "null", "# none"})
    EXPECT_TRUE(yaml_value(null).is_null()) << null;
  for (const char* text : {"adapters", "mlx-community/Llama-3.2-1B", "a b:c", "1.2.3", "e5",
                           "12:30:00", "2024-01-01", "C#", "nan", "inf", "0x", "1e"}) {
    const Json value = yaml_value(text);
    ASSERT_TRUE(value.is_string()) << text;
    EXPECT_EQ(value.as_string("x"), text);
  }
}

TEST(Yaml, ReadsStringsInQuotes) {
  EXPECT_EQ(yaml_value("'it''s # no comment: \\n'").as_string("x"), "it's # no comment: \\n");
  EXPECT_EQ(yaml_value("''").as_string("x"), "");
  EXPECT_EQ(yaml_value("\"a\\n\\\"\\u00e9\\x41\"  # c").as_string("x"),
            "a\n\"\xC3\xA9"
            "A");
}

TEST(Yaml, ReadsLists) {
  const auto texts = [](const Json& list) {
    std::vector<std::string> items;
    for (const Json& item : list.as_array("x")) items.push_back(item.as_string("x"));
    return items;
  };
  EXPECT_THAT(texts(yaml_value("[\"self_attn.q_proj\", v_proj]")),
              ElementsAre("self_attn.q_proj", "v_proj"));
  EXPECT_THAT(texts(yaml_value("[a,  # one\n  b,\n\n]")), ElementsAre("a", "b"));
  EXPECT_THAT(texts(yaml_value("\n- a\n- 'b'")), ElementsAre("a", "b"));
  EXPECT_THAT(texts(yaml_value("\n   - a  # one\n\n   - b\ny: 1")), ElementsAre("a", "b"));
  EXPECT_TRUE(yaml_value("[]").as_array("x").empty());
  EXPECT_EQ(yaml_value("[[1, 2], [3]]").as_array("x")[0].as_array("x")[1].as_int("x"), 2);
  const Json members = yaml_value("{q_proj: 16, 'v_proj': 4, none: }");
  EXPECT_EQ(members.find("q_proj")->as_int("x"), 16);
  EXPECT_EQ(members.find("v_proj")->as_int("x"), 4);
  EXPECT_TRUE(members.find("none")->is_null());
}

TEST(Yaml, ReadsTextsOfSeveralLinesAndMappingsInLists) {
  EXPECT_EQ(yaml_value("|\n  a\n  b").as_string("x"), "a\nb\n");
  EXPECT_EQ(yaml_value(">\n  a\n  b").as_string("x"), "a b\n");
  const Json list = yaml_value("\n- a: 1\n  b: 2\n- - c");
  EXPECT_EQ(list.as_array("x")[0].find("b")->as_int("x"), 2);
  EXPECT_EQ(list.as_array("x")[1].as_array("x")[0].as_string("x"), "c");
}

TEST(Yaml, WhatIsMalformedIsNamedWithItsLine) {
  EXPECT_EQ(yaml_error("a: 1\na: 2"), "y:2: the key a is set twice");
  EXPECT_EQ(yaml_error("a:\n  b: 1\n  b: 2"), "y:3: the key b is set twice");
  EXPECT_EQ(yaml_error("a: {b: 1, b: 2}"), "y:1: the key b is set twice");
  EXPECT_EQ(yaml_error("a: 1\n  b: 2"), "y:2: mapping values are not allowed in this context");
  EXPECT_THAT(yaml_error("a:\n    b: 2\n  c: 1"), HasSubstr("y:3: did not find expected key"));
  EXPECT_THAT(yaml_error("a:\n\tb: 1"), HasSubstr("y:2: found character that cannot start"));
  EXPECT_THAT(yaml_error("a: 1\nonly words\n"), HasSubstr("y:3: could not find expected ':'"));
  EXPECT_EQ(yaml_error("a:1"), "y:1: expected KEY: VALUE");
  EXPECT_EQ(yaml_error("- a"), "y:1: expected KEY: VALUE");
  EXPECT_EQ(yaml_error("[a]: 1"), "y:1: expected a key that is a text");
  EXPECT_THAT(yaml_error("a: [1, 2"), HasSubstr("did not find expected ',' or ']'"));
  EXPECT_THAT(yaml_error("a: \"\\q\""), HasSubstr("y:1: found unknown escape character"));
  EXPECT_EQ(yaml_error("a: 010"),
            "y:1: found \"010\": write a number without leading zeros, or a text in quotes");
  EXPECT_THAT(yaml_error("a: @b"), HasSubstr("y:1: found character that cannot start"));
  EXPECT_THAT(yaml_error("a: \xFF"), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(yaml_error("a: 1\nb: \x01"), HasSubstr("control characters are not allowed"));
  EXPECT_THAT(yaml_error("a: " + std::string(100, '[')), HasSubstr("nested too deeply"));
}

TEST(Yaml, WhatIsNotSupportedIsNamedWithItsLine) {
  const auto refusal = [](std::string_view text) {
    return yaml_error(text, ErrorCode::unsupported);
  };
  EXPECT_EQ(refusal("a: &b 1"), "y:1: anchors and aliases are not supported here");
  EXPECT_EQ(refusal("a: 1\nb: [*b]"), "y:2: anchors and aliases are not supported here");
  EXPECT_EQ(refusal("*a : 1"), "y:1: anchors and aliases are not supported here");
  EXPECT_EQ(refusal("a: !!str b"), "y:1: tags are not supported here");
  EXPECT_EQ(refusal("a:\n  <<: 1"), "y:2: merge keys are not supported here");
  EXPECT_EQ(refusal("%YAML 1.2\n---\na: 1"), "y:1: directives are not supported here");
  EXPECT_EQ(refusal("a: 1\n---\nb: 1"), "y:2: several documents are not supported here");
}

// Whatever the bytes, parsing ends, in entries with ascending lines or in an error with a line.
TEST(Yaml, RandomTextIsReadOrRefused) {
  constexpr std::string_view kPieces[] = {
      "a",  "b: ", ":",  " ",   "\n",  "  ", "- ", "[",    "]", "{",    "}",    ",",   "'",
      "\"", "#",   "\t", "---", "1e5", "\\", "|",  "\r\n", "~", "\n  ", "\n- ", "x:\n"};
  std::mt19937 random(7);
  for (int i = 0; i < scaled(20'000, 400'000); ++i) {
    std::string text;
    for (size_t n = random() % 24; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
    try {
      int last = 0;
      for (const ConfigEntry& entry : parse_yaml(text, "y")) {
        EXPECT_GE(entry.line, last) << text;
        last = entry.line;
      }
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("y:")) << text;
    }
  }
}

}  // namespace
}  // namespace paceline
