#include "cli/line_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paceline/error.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

constexpr std::string_view kOwn[] = {"prompt", "prompt_ids"};
constexpr std::string_view kOptions[] = {"max_tokens", "stop", "temperature"};

Json line(std::string_view text) { return parse_json(text, "line"); }

template <class Call>
std::string message_of(Call&& call) {
  return error_message(ErrorCode::invalid, call);
}

TEST(LineFields, UnknownFieldsAreErrorsWithASuggestion) {
  EXPECT_NO_THROW(check_line_keys(line(R"({"prompt": "a", "stop": "b"})"), {kOwn, kOptions}));
  EXPECT_EQ(message_of([] {
              check_line_keys(line(R"({"promt": "a"})"), {kOwn, kOptions});
            }),
            "unknown field promt; did you mean prompt?");
  EXPECT_EQ(message_of([] {
              check_line_keys(line(R"({"logprobs": 1})"), {kOwn, kOptions});
            }),
            "unknown field logprobs");
}

TEST(LineFields, OptionFieldsOverwriteSettingsAndNullsDont) {
  Settings settings;
  settings.generate.temperature = 0.5f;
  settings.generate.max_tokens = 1;
  apply_option_fields(line(R"({"max_tokens": 9, "temperature": null, "stop": ["x"]})"), kOptions,
                      settings);
  EXPECT_EQ(settings.generate.max_tokens, 9);
  EXPECT_EQ(settings.generate.temperature, 0.5f);
  EXPECT_THAT(settings.generate.stop, testing::ElementsAre("x"));
}

TEST(LineFields, WrongOptionFieldsAreNamed) {
  Settings settings;
  EXPECT_EQ(
      message_of([&] { apply_option_fields(line(R"({"max_tokens": "9"})"), kOptions, settings); }),
      "max_tokens: found \"9\", expected an integer from 0 to 2147483647");
}

TEST(LineFields, PromptIsOneOfTwoFields) {
  const auto prompt = [](std::string_view text) {
    return read_prompt(line(text), "prompt", "prompt_ids");
  };
  EXPECT_EQ(std::get<std::string>(prompt(R"({"prompt": "a"})")), "a");
  EXPECT_THAT(std::get<std::vector<int32_t>>(prompt(R"({"prompt_ids": [1, 2], "prompt": null})")),
              testing::ElementsAre(1, 2));
  EXPECT_EQ(message_of([&] { prompt("{}"); }), "found neither prompt nor prompt_ids");
  EXPECT_EQ(message_of([&] { prompt(R"({"prompt": "a", "prompt_ids": [1]})"); }),
            "found both prompt and prompt_ids, expected one of them");
  EXPECT_EQ(message_of([&] { prompt(R"({"prompt": 5})"); }), "prompt: found 5, expected a string");
  EXPECT_EQ(message_of([&] { prompt(R"({"prompt_ids": [1, -2]})"); }),
            "prompt_ids[1]: found -2, expected a token id, an integer from 0 on");
}

}  // namespace
}  // namespace paceline
