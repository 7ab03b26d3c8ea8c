#include <gmock/gmock.h>

#include "tests/protocol/requests.h"

namespace paceline {
namespace {

using testing::ElementsAre;

TEST(ClassificationRequest, ReadsItsFields) {
  const ClassificationRequest plain = classification(R"({"input": "x"})");
  EXPECT_TRUE(plain.labels.empty());
  EXPECT_FALSE(plain.with_logits);
  EXPECT_FALSE(plain.with_token_id);
  EXPECT_EQ(plain.input.name("input", 0), "input");
  const ClassificationRequest request = classification(R"({
      "model": "m", "input": ["a", "b"], "labels": [" good", " bad"], "with_logits": true,
      "with_token_id": true, "temperature": 0, "seed": 3, "add_special_tokens": false,
      "user": "u"})");
  EXPECT_EQ(std::get<std::string>(request.input.prompts.at(1)), "b");
  EXPECT_EQ(request.input.name("input", 1), "input[1]");
  EXPECT_THAT(request.labels, ElementsAre(" good", " bad"));
  EXPECT_TRUE(request.with_logits);
  EXPECT_TRUE(request.with_token_id);
  EXPECT_FALSE(request.options.add_special_tokens);
  EXPECT_EQ(request.options.temperature, 0.0f);
  EXPECT_EQ(request.options.seed, 3u);
  EXPECT_EQ(request.common.model, "m");
}

TEST(ClassificationRequest, AWrongFieldIsNamed) {
  const struct {
    const char* members;
    const char* param;
    const char* code;
  } kCases[] = {
      {R"("labels": "good")", "labels", "invalid_value"},
      {R"("labels": ["a", ""])", "labels[1]", "invalid_value"},
      {R"("labels": [1])", "labels[0]", "invalid_value"},
      {R"("with_logits": 1)", "with_logits", "invalid_value"},
      {R"("max_tokens": 5)", "max_tokens", "unknown_parameter"},
      {R"("lables": [])", "lables", "unknown_parameter"},
  };
  for (const auto& [members, param, code] : kCases) {
    const ApiError error = refusal(classification, classification_body(members));
    EXPECT_EQ(error.field, param) << members;
    EXPECT_EQ(code_of(error), code) << members;
  }
  EXPECT_EQ(refusal(classification, "{}").field, "input");
}

}  // namespace
}  // namespace paceline
