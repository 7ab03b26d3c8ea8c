#include "cli/option_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "paceline/error.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

OptionValue parse(std::string_view option, std::vector<std::string> texts) {
  return parse_option_value(*find_option(option), texts, "--" + std::string(option));
}

OptionValue read(std::string_view option, std::string_view json) {
  const Json value = parse_json(json, "test");
  return read_option_value(*find_option(option), JsonCursor(value, "").below(option, value));
}

template <class Call>
std::string error_message_of(Call&& call) {
  return error_message(ErrorCode::invalid, call);
}

TEST(ParseOptionValue, ReadsEachKind) {
  EXPECT_EQ(std::get<int64_t>(parse("max-tokens", {"17"})), 17);
  EXPECT_EQ(std::get<double>(parse("temperature", {"0.5"})), 0.5);
  EXPECT_EQ(std::get<uint64_t>(parse("seed", {"18446744073709551615"})), UINT64_MAX);
  EXPECT_EQ(std::get<bool>(parse("ignore-eos", {"true"})), true);
  EXPECT_EQ(std::get<bool>(parse("ignore-eos", {"off"})), false);
  EXPECT_EQ(std::get<std::string>(parse("dtype", {"float32"})), "float32");
  EXPECT_THAT(std::get<std::vector<std::string>>(parse("stop", {"a,b", ""})),
              ElementsAre("a,b", ""));
  EXPECT_THAT(std::get<std::vector<int32_t>>(parse("stop-token-ids", {"1,2", "3"})),
              ElementsAre(1, 2, 3));
  EXPECT_THAT((std::get<std::vector<std::vector<int32_t>>>(parse("prompt-ids", {"1,2", "[3 4]"}))),
              ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4)));
  EXPECT_THAT(
      (std::get<std::vector<std::pair<int32_t, float>>>(parse("logit-bias", {"5=-1.5", "6=2"}))),
      ElementsAre(Pair(5, -1.5f), Pair(6, 2.0f)));
  EXPECT_THAT((std::get<std::vector<std::pair<int32_t, float>>>(parse("logit-bias", {"5=false"}))),
              ElementsAre(Pair(5, -std::numeric_limits<float>::infinity())));
}

TEST(ParseOptionValue, NumbersByName) {
  EXPECT_THAT(std::get<NamedNumbers>(parse("rank-pattern", {"q_proj=4", "(?=x).*=16"})),
              ElementsAre(Pair("q_proj", 4), Pair("(?=x).*", 16)));
  EXPECT_THAT(std::get<NamedNumbers>(read("rank-pattern", R"({"b": 4, "a": 2})")),
              ElementsAre(Pair("b", 4), Pair("a", 2)));
  EXPECT_EQ(error_message_of([] { parse("rank-pattern", {"q_proj"}); }),
            "--rank-pattern: found \"q_proj\", expected NAME=NUMBER");
  EXPECT_THAT(error_message_of([] { parse("rank-pattern", {"q_proj=0"}); }),
              HasSubstr("from 1 to 1024"));
  EXPECT_THAT(error_message_of([] { read("rank-pattern", R"({"q_proj": "4"})"); }),
              HasSubstr("rank-pattern.q_proj: found"));
}

// For any option that has the dtype among its choices.
TEST(ParseOptionValue, TypesHaveShortNames) {
  for (const char* const option : {"dtype", "kv-cache-dtype"}) {
    for (const auto& [name, type] : {std::pair{"bf16", "bfloat16"}, std::pair{"f16", "float16"},
                                     std::pair{"f32", "float32"}, std::pair{"auto", "auto"}}) {
      EXPECT_EQ(std::get<std::string>(parse(option, {name})), type) << option;
      const std::string json = '"' + std::string(name) + '"';
      EXPECT_EQ(std::get<std::string>(read(option, json)), type) << option;
    }
  }
  EXPECT_EQ(std::get<std::string>(parse("activations", {"bf16"})), "bfloat16");
  EXPECT_EQ(error_message_of([] { parse("activations", {"f16"}); }),
            "--activations: found \"f16\", expected one of auto, int8, bfloat16, plain");
  EXPECT_THAT(error_message_of([] { parse("dtype", {"i32"}); }), HasSubstr("found \"i32\""));
}

TEST(ParseOptionValue, ReadsLists) {
  using Integers = std::vector<int64_t>;
  using Texts = std::vector<std::string>;
  EXPECT_EQ(std::get<Integers>(parse("prompt-tokens", {"128,512"})), Integers({128, 512}));
  EXPECT_EQ(std::get<Integers>(parse("prompt-tokens", {"1", "7"})), Integers({7}));
  EXPECT_EQ(std::get<Integers>(read("prompt-tokens", "[128, 512]")), Integers({128, 512}));
  EXPECT_EQ(std::get<Integers>(read("prompt-tokens", "64")), Integers({64}));
  using Numbers = std::vector<double>;
  EXPECT_EQ(std::get<Numbers>(parse("acceptance", {"0.5,1"})), Numbers({0.5, 1}));
  EXPECT_EQ(std::get<Numbers>(read("acceptance", "[0.5, 1]")), Numbers({0.5, 1}));
  EXPECT_EQ(std::get<Numbers>(read("acceptance", "0.5")), Numbers({0.5}));
  EXPECT_EQ(std::get<Texts>(parse("formats", {"bf16,q4"})), Texts({"bf16", "q4"}));
  EXPECT_EQ(std::get<Texts>(read("formats", R"(["q8"])")), Texts({"q8"}));
  EXPECT_EQ(std::get<Texts>(parse("formats", {"bfloat16,f32"})), Texts({"bf16", "f32"}));
  EXPECT_EQ(std::get<Texts>(read("formats", R"(["float16"])")), Texts({"f16"}));
  EXPECT_EQ(
      error_message_of([] { parse("prompt-tokens", {"128,,512"}); }),
      "--prompt-tokens: found \"\", expected integers from 1 to 1000000, separated by commas");
  EXPECT_EQ(error_message_of([] { parse("sequences", {"8,2000"}); }),
            "--sequences: found \"2000\", expected integers from 1 to 1024, separated by commas");
  EXPECT_EQ(error_message_of([] { parse("acceptance", {"0.5,1.5"}); }),
            "--acceptance: found \"1.5\", expected numbers from 0 to 1, separated by commas");
  EXPECT_EQ(error_message_of([] { parse("formats", {"bf16,q5"}); }),
            "--formats: found \"q5\", expected one of f32, f16, bf16, q8, q4; did you mean q8?");
  EXPECT_EQ(error_message_of([] { read("contexts", "[1, \"x\"]"); }),
            "contexts[1]: found \"x\", expected integers from 1 to 1000000, separated by commas");
}

TEST(ParseOptionValue, TheLastOfSeveralCounts) {
  EXPECT_EQ(std::get<int64_t>(parse("max-tokens", {"17", "18"})), 18);
}

TEST(ParseOptionValue, ErrorsNameFlagValueAndRange) {
  EXPECT_EQ(error_message_of([] { parse("top-p", {"3"}); }),
            "--top-p: found \"3\", expected a number from 0 to 1");
  EXPECT_EQ(error_message_of([] { parse("typical-p", {"0"}); }),
            "--typical-p: found \"0\", expected a number above 0 and at most 1");
  EXPECT_EQ(error_message_of([] { parse("temperature", {"nan"}); }),
            "--temperature: found \"nan\", expected a number from 0 to 2");
  EXPECT_EQ(error_message_of([] { parse("logprobs", {"21"}); }),
            "--logprobs: found \"21\", expected an integer from 0 to 20");
  EXPECT_EQ(error_message_of([] { parse("logprobs", {"1.5"}); }),
            "--logprobs: found \"1.5\", expected an integer from 0 to 20");
  EXPECT_EQ(error_message_of([] { parse("repetition-penalty", {"0"}); }),
            "--repetition-penalty: found \"0\", expected a number from 0.01 to 100");
  EXPECT_EQ(error_message_of([] { parse("dtype", {"bfloat"}); }),
            "--dtype: found \"bfloat\", expected one of auto, bfloat16, float16, float32; did you "
            "mean bfloat16?");
  EXPECT_EQ(error_message_of([] { parse("seed", {"-1"}); }),
            "--seed: found \"-1\", expected an integer from 0 to 2^64 - 1");
  EXPECT_THAT(error_message_of([] { parse("ignore-eos", {"maybe"}); }),
              HasSubstr("expected true or false"));
  EXPECT_THAT(error_message_of([] { parse("logit-bias", {"5"}); }), HasSubstr("expected ID=VALUE"));
  EXPECT_THAT(error_message_of([] { parse("logit-bias", {"5=inf"}); }), HasSubstr("finite"));
  EXPECT_THAT(error_message_of([] { parse("stop-token-ids", {"1,-2"}); }), HasSubstr("\"-2\""));
  EXPECT_THAT(error_message_of([] { parse("max-tokens", {std::string(1000, '9')}); }),
              HasSubstr("9\"..."));
}

TEST(ReadOptionValue, ReadsEachKind) {
  EXPECT_EQ(std::get<int64_t>(read("max-tokens", "17")), 17);
  EXPECT_EQ(std::get<int64_t>(read("max-tokens", "17.0")), 17);
  EXPECT_EQ(std::get<double>(read("temperature", "1")), 1.0);
  EXPECT_EQ(std::get<uint64_t>(read("seed", "18446744073709551615")), UINT64_MAX);
  EXPECT_EQ(std::get<uint64_t>(read("memory-limit", "\"4G\"")), uint64_t{4} << 30);
  EXPECT_EQ(std::get<uint64_t>(read("memory-limit", "4096")), 4096u);
  EXPECT_EQ(std::get<int64_t>(read("logprobs", "true")), 0);
  EXPECT_THAT(std::get<std::vector<std::string>>(read("stop", "\"a\"")), ElementsAre("a"));
  EXPECT_THAT(std::get<std::vector<std::string>>(read("stop", "[\"a\", \"b\"]")),
              ElementsAre("a", "b"));
  EXPECT_THAT((std::get<std::vector<std::vector<int32_t>>>(read("prompt-ids", "[[1], [2, 3]]"))),
              ElementsAre(ElementsAre(1), ElementsAre(2, 3)));
  EXPECT_THAT((std::get<std::vector<std::vector<int32_t>>>(read("prompt-ids", "[1, 2]"))),
              ElementsAre(ElementsAre(1, 2)));
  EXPECT_THAT(
      (std::get<std::vector<std::pair<int32_t, float>>>(read("logit-bias", R"({"5": -1.5})"))),
      ElementsAre(Pair(5, -1.5f)));
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (const char* form : {R"({"5": 2, "6": false})", "[[5, 2], [6, false]]"}) {
    EXPECT_THAT((std::get<std::vector<std::pair<int32_t, float>>>(read("logit-bias", form))),
                ElementsAre(Pair(5, 2.0f), Pair(6, kNever)));
  }
}

TEST(ReadOptionValue, TypeErrorsNameTheField) {
  EXPECT_EQ(error_message_of([] { read("max-tokens", "\"5\""); }),
            "max-tokens: found \"5\", expected an integer from 0 to 2147483647");
  EXPECT_EQ(error_message_of([] { read("temperature", "true"); }),
            "temperature: found true, expected a number from 0 to 2");
  EXPECT_EQ(error_message_of([] { read("temperature", "7"); }),
            "temperature: found 7, expected a number from 0 to 2");
  EXPECT_EQ(error_message_of([] { read("stop", "5"); }),
            "stop: found 5, expected a string or an array of strings");
  EXPECT_THAT(error_message_of([] { read("stop", "[\"a\", 5]"); }), HasSubstr("stop[1]"));
  EXPECT_THAT(error_message_of([] { read("stop-token-ids", "[1, 4294967296]"); }),
              HasSubstr("stop-token-ids[1]: found 4294967296"));
  EXPECT_THAT(error_message_of([] { read("logit-bias", R"({"x": 1})"); }), HasSubstr("\"x\""));
  EXPECT_THAT(error_message_of([] { read("logit-bias", R"({"1": true})"); }),
              HasSubstr("a number, or false for never"));
  EXPECT_THAT(error_message_of([] { read("logit-bias", "[[1]]"); }), HasSubstr("[token id, bias]"));
  EXPECT_THAT(error_message_of([] { read("seed", "-1"); }), HasSubstr("seed"));
}

TEST(ParseBytes, KnowsUnits) {
  EXPECT_EQ(parse_bytes("0", "x"), 0u);
  EXPECT_EQ(parse_bytes("65536", "x"), 65536u);
  EXPECT_EQ(parse_bytes("512K", "x"), 512u << 10);
  EXPECT_EQ(parse_bytes("512M", "x"), 512u << 20);
  EXPECT_EQ(parse_bytes("1.5G", "x"), uint64_t{3} << 29);
  EXPECT_EQ(parse_bytes("2TiB", "x"), uint64_t{2} << 40);
  for (const char* wrong : {"", "M", "5X", "5MB", "-5", "1e3", "5 M", "9999999999T", "1.2.3"}) {
    SCOPED_TRACE(wrong);
    expect_error(ErrorCode::invalid, {"x: ", wrong}, [&] { parse_bytes(wrong, "x"); });
  }
}

TEST(ParseTokenIds, TakesCommasBlanksAndBrackets) {
  EXPECT_THAT(parse_token_ids("", "x"), ElementsAre());
  EXPECT_THAT(parse_token_ids("[]", "x"), ElementsAre());
  EXPECT_THAT(parse_token_ids("[ 1, 2 ]\n", "x"), ElementsAre(1, 2));
  EXPECT_THAT(parse_token_ids("1 2\n3,4", "x"), ElementsAre(1, 2, 3, 4));
  const std::pair<const char*, const char*> cases[] = {
      {"1 two", "two"}, {"1 2147483648", "2147483648"}, {"1 ] 2", "]"}};
  for (const auto& [text, wrong] : cases) {
    SCOPED_TRACE(text);
    expect_error(ErrorCode::invalid, {"x", wrong},
                 [&, text = text] { parse_token_ids(text, "x"); });
  }
}

}  // namespace
}  // namespace paceline
