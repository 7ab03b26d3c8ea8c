#include "engine/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/request_error.h"

namespace paceline {
namespace {

constexpr int64_t kVocabSize = 10;

// Of the error, whose message begins with it; empty: the request is right.
std::string field_at_fault(GenerateRequest& request) {
  try {
    check_request(request, EngineLimits{}, kVocabSize);
  } catch (const RequestError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith(error.field() + ": "));
    EXPECT_EQ(error.reason(), ErrorReason::invalid_value);
    return error.field();
  }
  return "";
}

TEST(Request, AnErrorNamesTheFieldAtFault) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const struct {
    std::string field;
    std::function<void(GenerateRequest&)> spoil;
  } kCases[] = {
      {"", [](GenerateRequest&) {}},
      {"prompt[1]", [](GenerateRequest& r) { r.prompt.clear(); }},
      {"prompt[1][2]",
       [](GenerateRequest& r) {
         r.prompt.assign({1, 2, 10});
       }},
      {"max_tokens", [](GenerateRequest& r) { r.max_tokens = -1; }},
      {"min_tokens", [](GenerateRequest& r) { r.min_tokens = 5; }},
      {"n", [](GenerateRequest& r) { r.n = 0; }},
      {"n", [](GenerateRequest& r) { r.n = 2, r.max_tokens = 0; }},
      {"stop[1]",
       [](GenerateRequest& r) {
         r.stop_strings = {"a", ""};
       }},
      {"stop_token_ids[0]", [](GenerateRequest& r) { r.stop_token_ids = {-1}; }},
      {"allowed_token_ids[0]", [](GenerateRequest& r) { r.allowed_token_ids = {10}; }},
      {"labels[0]", [](GenerateRequest& r) { r.columns = {10}; }},
      {"temperature", [](GenerateRequest& r) { r.sampling.temperature = -1; }},
      {"logit_bias",
       [](GenerateRequest& r) {
         r.sampling.logit_bias = {{10, 1.0f}};
       }},
      {"logit_bias[3]",
       [&](GenerateRequest& r) {
         r.sampling.logit_bias = {{3, nan}};
       }},
      {"logprob_token_ids", [](GenerateRequest& r) { r.sampling.logprob_token_ids = {10}; }},
  };
  for (const auto& [field, spoil] : kCases) {
    GenerateRequest request{.prompt = {1, 2}, .prompt_name = "prompt[1]", .max_tokens = 4};
    spoil(request);
    EXPECT_EQ(field_at_fault(request), field);
  }
}

}  // namespace
}  // namespace paceline
