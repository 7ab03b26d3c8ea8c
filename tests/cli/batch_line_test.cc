#include "cli/batch_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_writer.h"

namespace paceline {
namespace {

using testing::HasSubstr;

BatchLine read(std::string text) { return read_batch_line({.number = 7, .text = std::move(text)}); }

TEST(BatchLine, IsARequestWithAName) {
  const BatchLine line = read(
      R"({"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"n": 1}})");
  EXPECT_FALSE(line.error);
  EXPECT_EQ(line.number, 7);
  EXPECT_EQ(line.custom_id, "a");
  EXPECT_EQ(line.dialect, &kChatDialect);
  EXPECT_EQ(to_json(line.body), R"({"n":1})");
}

TEST(BatchLine, WhatIsWrongIsToldWithTheNumber) {
  const struct {
    const char* text;
    const char* code;
    const char* message;
    const char* custom_id;
  } kCases[] = {
      {"x", "invalid_json_line", "line 7: not valid JSON", ""},
      {"[]", "invalid_value", "line 7: the request: found an array, expected an object", ""},
      {"{}", "missing_required_parameter", "line 7: custom_id: missing", ""},
      {R"({"custom_id": ""})", "invalid_value", "line 7: custom_id: found \"\", expected", ""},
      {R"({"custom_id": 5})", "invalid_value", "line 7: custom_id: found 5, expected a string", ""},
      {R"({"custom_id": "a", "method": "GET"})", "invalid_method",
       "line 7: method: found \"GET\", expected POST", "a"},
      {R"({"custom_id": "a", "url": "/v1/images"})", "invalid_url",
       "line 7: url: found \"/v1/images\", expected /v1/completions", "a"},
      {R"({"custom_id": "a", "method": "POST", "url": "/v1/classify"})",
       "missing_required_parameter", "line 7: body: missing", "a"},
      {R"({"custom_id": "a", "body": []})", "invalid_value", "line 7: body: found an array", "a"},
      {R"({"custom_id": "a", "bdy": {}})", "unknown_parameter",
       "line 7: unknown field bdy; did you mean body?", "a"},
      {R"({"custom_id": "a", "custom_id": "b"})", "invalid_json_line",
       "line 7: the key \"custom_id\" occurs twice", ""},
  };
  for (const auto& [text, code, message, custom_id] : kCases) {
    const BatchLine line = read(text);
    ASSERT_TRUE(line.error) << text;
    EXPECT_EQ(line.error->code, code) << text;
    EXPECT_THAT(line.error->message, HasSubstr(message));
    EXPECT_EQ(line.custom_id, custom_id);
  }
}

TEST(BatchLine, LengthsAreBounded) {
  const BatchLine line = read_batch_line({.number = 2, .text = "{}", .is_too_long = true});
  EXPECT_EQ(line.error->message, "line 2: longer than 8388608 bytes, the most a line may have");
  EXPECT_FALSE(read(R"({"custom_id": ")" + std::string(512, 'a') +
                    R"(", "method": "POST", "url": "/v1/classify", "body": {}})")
                   .error);
  EXPECT_TRUE(read(R"({"custom_id": ")" + std::string(513, 'a') +
                   R"(", "method": "POST", "url": "/v1/classify", "body": {}})")
                  .error);
}

TEST(BatchLine, RecordsHaveTheFieldsOfTheApi) {
  const Json answer = parse_json(batch_response_record("a\"b", 200, R"({"x":1})"), "record");
  EXPECT_TRUE(answer.find("id")->as_string("id").starts_with("batch_req_"));
  EXPECT_EQ(answer.find("custom_id")->as_string("custom_id"), "a\"b");
  EXPECT_TRUE(answer.find("error")->is_null());
  const Json& response = *answer.find("response");
  EXPECT_EQ(response.find("status_code")->as_int("status_code"), 200);
  EXPECT_TRUE(response.find("request_id")->as_string("request_id").starts_with("req_"));
  EXPECT_EQ(to_json(*response.find("body")), R"({"x":1})");

  BatchLine line = read("x");
  const Json error = parse_json(batch_error_record(line), "record");
  EXPECT_TRUE(error.find("custom_id")->is_null());
  EXPECT_TRUE(error.find("response")->is_null());
  EXPECT_EQ(error.find("error")->find("line")->as_int("line"), 7);
  EXPECT_EQ(error.find("error")->find("code")->as_string("code"), "invalid_json_line");
  EXPECT_TRUE(batch_error_record(line).ends_with("}\n"));
}

}  // namespace
}  // namespace paceline
