#include "protocol/request_reader.h"

#include <gmock/gmock.h>

#include "tests/protocol/requests.h"

namespace paceline {
namespace {

std::string array_of(size_t count) {
  std::string json = "[0";
  for (size_t i = 1; i < count; ++i) json += ",0";
  return json + "]";
}

std::string object_of(size_t count) {
  std::string json = "{";
  for (size_t i = 0; i < count; ++i) json += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  return json + "}";
}

TEST(RequestBody, TooManyValuesAreNotParsed) {
  EXPECT_NO_THROW(parse_request_body(array_of(kMaxValues)));
  const ApiError values = refusal(parse_request_body, array_of(kMaxValues + 1));
  EXPECT_THAT(values.message, testing::HasSubstr("values, expected at most"));
  EXPECT_EQ(values.field, std::nullopt);
  EXPECT_NO_THROW(parse_request_body(object_of(kMaxMembers)));
  EXPECT_THAT(refusal(parse_request_body, object_of(kMaxMembers + 1)).message,
              testing::HasSubstr("members of objects, expected at most"));
}

TEST(RequestBody, WhatIsInAStringDoesNotCount) {
  const std::string text(2 * kMaxValues, ',');
  EXPECT_NO_THROW(parse_request_body("[\"" + text + "\"]"));
  EXPECT_NO_THROW(parse_request_body("[\"\\\"" + text + "\\\\\"]"));
  EXPECT_EQ(code_of(refusal(parse_request_body, "[\"\\\\\"" + text + "]")), "invalid_value");
}

TEST(RequestBody, WhatComesAfterAStringCounts) {
  for (const char* text : {"", "x", "xy", "\\\"", "\\\\", "x\\\""}) {
    const std::string body = "[\"" + std::string(text) + "\"," + array_of(kMaxValues).substr(1);
    EXPECT_THAT(refusal(parse_request_body, body).message,
                testing::HasSubstr("values, expected at most"))
        << text;
  }
}

TEST(RequestBody, WhatIsNoJsonIsRefused) {
  for (const char* body : {"", "{", "\"", "\"\\", "{\"a\": 1, \"a\": 2}", "[1] 2"}) {
    const ApiError error = refusal(parse_request_body, body);
    EXPECT_EQ(code_of(error), "invalid_value") << body;
    EXPECT_EQ(error.field, std::nullopt) << body;
  }
}

}  // namespace
}  // namespace paceline
