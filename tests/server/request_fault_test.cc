#include "server/server_errors.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/context_error.h"
#include "tests/server/served_fixture.h"
#include "text/decision_prompt.h"
#include "text/make_request.h"

namespace paceline {
namespace {

TEST(RequestFault, AnAdapterThatWasJustUnloadedIsAModelThatIsNotThere) {
  const ApiError error = fault_of_request(RequestError(
      "model", ErrorReason::model_not_found, "lora: \"x\" is no adapter", ErrorCode::not_found));
  EXPECT_EQ(error.field, "model");
  EXPECT_EQ(error.reason, ErrorReason::model_not_found);
}

TEST(RequestFault, AFileThatIsMissingIsNotFound) {
  const ApiError error = fault_of_request(Error(ErrorCode::not_found, "a.json: no such file"));
  EXPECT_EQ(error.reason, ErrorReason::not_found);
}

class WithoutTokenizer : public testing::ServedTest {};

TEST_F(WithoutTokenizer, WhatTheModelLacksIsNotSupported) {
  serve();
  const auto reason = [](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      return fault_of_request(error).reason;
    }
    return ErrorReason::internal_error;
  };
  EXPECT_EQ(reason([&] { encode_prompt(model(), std::string("text"), "prompt", {}); }),
            ErrorReason::feature_disabled);
  EXPECT_EQ(reason([&] { DecisionPrompt(model(), "text", "input"); }),
            ErrorReason::feature_disabled);
}

TEST(RequestFault, WhatIsTooMuchIsTheRequestsOwn) {
  const auto reason = [](const Error& thrown) { return fault_of_request(thrown).reason; };
  EXPECT_EQ(reason(context_error(ErrorCode::exhausted, {.field = "prompt",
                                                        .capacity = 8,
                                                        .prompt_tokens = 9,
                                                        .limit = "--kv-cache-memory-bytes"})),
            ErrorReason::context_length_exceeded);
  EXPECT_EQ(reason(Error(ErrorCode::exhausted, "the constraint is too large")),
            ErrorReason::request_too_complex);
}

}  // namespace
}  // namespace paceline
