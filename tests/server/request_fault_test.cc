#include "server/request_fault.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/request_error.h"

namespace paceline {
namespace {

TEST(RequestFault, AnAdapterThatWasJustUnloadedIsAModelThatIsNotThere) {
  const ApiError error = fault_of_request(AdapterError("lora: \"x\" is no adapter, expected y"));
  EXPECT_EQ(error.status, 404);
  EXPECT_EQ(error.param, "model");
  EXPECT_EQ(error.code, "model_not_found");
}

TEST(RequestFault, WhatTheModelLacksIsNotSupported) {
  const ApiError error = fault_of_request(Error(ErrorCode::not_found, "m: has no tokenizer.json"));
  EXPECT_EQ(error.status, 501);
  EXPECT_EQ(error.code, "feature_disabled");
}

TEST(RequestFault, WhatIsTooMuchIsTheRequestsOwn) {
  const auto code = [](const Error& thrown) {
    const ApiError error = fault_of_request(thrown);
    EXPECT_EQ(error.status, 400);
    return error.code;
  };
  EXPECT_EQ(code(ContextError(ErrorCode::exhausted, {.field = "prompt",
                                                     .capacity = 8,
                                                     .prompt_tokens = 9,
                                                     .limit = "--kv-cache-memory-bytes"})),
            "context_length_exceeded");
  EXPECT_EQ(code(Error(ErrorCode::exhausted, "the constraint is too large")),
            "request_too_complex");
}

}  // namespace
}  // namespace paceline
