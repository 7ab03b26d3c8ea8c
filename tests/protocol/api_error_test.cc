#include "protocol/api_error.h"

#include <gtest/gtest.h>

#include "engine/context_error.h"

namespace paceline {
namespace {

TEST(ApiError, TheObjectHasFourKeys) {
  EXPECT_EQ(error_json(api_error(RequestError("n", ErrorReason::invalid_value, "n: found \"x\""))),
            R"({"error":{"message":"n: found \"x\"","type":"invalid_request_error","param":"n",)"
            R"("code":"invalid_value"}})");
  EXPECT_EQ(error_json({ErrorReason::internal_error, "m"}),
            R"({"error":{"message":"m","type":"server_error","param":null,)"
            R"("code":"internal_error"}})");
}

// openai-python retries after 408, 409, 429 and everything from 500 on.
TEST(ApiError, AReasonHasItsStatusTypeAndCode) {
  const ErrorKind& kind = openai_kind(ErrorReason::context_length_exceeded);
  EXPECT_EQ(kind.status, 400);
  EXPECT_EQ(kind.type, "invalid_request_error");
  EXPECT_EQ(kind.code, "context_length_exceeded");
  EXPECT_EQ(openai_kind(ErrorReason::missing_parameter).code, "missing_required_parameter");
  EXPECT_EQ(openai_kind(ErrorReason::slow_request).status, 408);
  EXPECT_EQ(openai_kind(ErrorReason::request_timeout).status, 504);
  EXPECT_EQ(openai_kind(ErrorReason::slow_request).code,
            openai_kind(ErrorReason::request_timeout).code);
  EXPECT_EQ(openai_kind(ErrorReason::queue_full).type, "rate_limit_error");
  EXPECT_EQ(openai_kind(ErrorReason::host_not_allowed).type, "permission_error");
}

TEST(ApiError, TheFieldIsTheOneThatTheErrorNames) {
  EXPECT_EQ(api_error(RequestError("prompt[1][3]", ErrorReason::invalid_value, "m")).field,
            "prompt[1][3]");
  EXPECT_EQ(api_error(RequestError("", ErrorReason::not_enabled, "m")).field, std::nullopt);
  EXPECT_EQ(api_error(Error(ErrorCode::invalid, "prompt: m")).field, std::nullopt);
  const ApiError queued =
      api_error(ErrorInfo{.code = ErrorCode::invalid, .message = "m", .field = "guided_regex"});
  EXPECT_EQ(queued.field, "guided_regex");
  EXPECT_EQ(queued.reason, ErrorReason::invalid_value);
  EXPECT_EQ(api_error(ErrorInfo{.code = ErrorCode::numerical, .message = "m"}).field, std::nullopt);
}

TEST(ApiError, EveryCodeHasAStatus) {
  const struct {
    ErrorCode code;
    int status;
    const char* type;
  } kCases[] = {{ErrorCode::invalid, 400, "invalid_request_error"},
                {ErrorCode::not_found, 404, "invalid_request_error"},
                {ErrorCode::unsupported, 501, "not_supported_error"},
                {ErrorCode::exhausted, 503, "server_error"},
                {ErrorCode::corrupt, 500, "server_error"},
                {ErrorCode::numerical, 500, "server_error"},
                {ErrorCode::cancelled, 499, "server_error"},
                {ErrorCode::internal, 500, "server_error"}};
  for (const auto& [code, status, type] : kCases) {
    const ApiError error = api_error(Error(code, "m"));
    EXPECT_EQ(openai_kind(error.reason).status, status);
    EXPECT_EQ(openai_kind(error.reason).type, type);
    EXPECT_EQ(error.message, "m");
  }
}

TEST(ApiError, ARequestThatDoesNotFitHasTheWordsAndTheCodeThatClientsLookFor) {
  const auto excess = [](const char* field) {
    return ContextExcess{.field = field,
                         .capacity = 8,
                         .prompt_tokens = 9,
                         .output_tokens = 4,
                         .limit = "--max-model-len"};
  };
  const ApiError chat = api_error(context_error(ErrorCode::invalid, excess("messages")));
  EXPECT_EQ(chat.reason, ErrorReason::context_length_exceeded);
  EXPECT_EQ(chat.field, "messages");
  EXPECT_EQ(chat.message,
            "This model's maximum context length is 8 tokens. However, you requested 13 tokens (9 "
            "in the messages, 4 in the completion). Please reduce the length of the messages or "
            "completion. (context_length_exceeded; field: messages; limit: --max-model-len)");
  const ApiError prompt = api_error(context_error(ErrorCode::exhausted, excess("prompt[1]")));
  EXPECT_EQ(prompt.reason, ErrorReason::context_length_exceeded);
  EXPECT_EQ(prompt.field, "prompt[1]");
  EXPECT_EQ(prompt.message,
            "This model's maximum context length is 8 tokens, however you requested 13 tokens (9 "
            "in your prompt; 4 for the completion). Please reduce your prompt; or completion "
            "length. (context_length_exceeded; field: prompt[1]; limit: --max-model-len)");
  ContextExcess by_bytes = excess("input");
  by_bytes.prompt_tokens.reset();
  by_bytes.output_tokens = 0;
  EXPECT_NE(
      api_error(context_error(ErrorCode::invalid, by_bytes)).message.find("more than 8 tokens"),
      std::string::npos);
}

}  // namespace
}  // namespace paceline
