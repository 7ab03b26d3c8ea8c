#include "sampling/sampling_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "base/error.h"

namespace paceline {
namespace {

constexpr int64_t kVocabSize = 100;

// "" when the options are accepted.
std::string complaint(const std::function<void(SamplingOptions&)>& change) {
  SamplingOptions options;
  change(options);
  try {
    check_sampling_options(options, kVocabSize);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "";
}

TEST(SamplingOptions, DefaultsAndBoundsAreAccepted) {
  EXPECT_EQ(complaint([](auto&) {}), "");
  EXPECT_EQ(complaint([](auto& o) { o.temperature = 0.0f; }), "");
  EXPECT_EQ(complaint([](auto& o) { o.temperature = 2.0f; }), "");
  EXPECT_EQ(complaint([](auto& o) { o.top_k = std::numeric_limits<int32_t>::max(); }), "");
  EXPECT_EQ(complaint([](auto& o) { o.top_p = 1e-30f; }), "");
  EXPECT_EQ(complaint([](auto& o) { o.min_p = 1.0f; }), "");
  EXPECT_EQ(complaint([](auto& o) { o.frequency_penalty = -2.0f; }), "");
  EXPECT_EQ(complaint([](auto& o) { o.presence_penalty = 2.0f; }), "");
  EXPECT_EQ(complaint([](auto& o) { o.num_top_logprobs = 20; }), "");
  EXPECT_EQ(complaint([](auto& o) { o.logit_bias = {{5, -INFINITY}}; }), "") << "never";
  EXPECT_EQ(complaint([](auto& o) { o.logprob_token_ids.assign(128, 99); }), "");
  EXPECT_EQ(complaint([](auto& o) { o.logit_bias = {{0, -100.0f}, {99, 100.0f}}; }), "");
}

TEST(SamplingOptions, MessagesNameFieldValueAndRange) {
  EXPECT_EQ(complaint([](auto& o) {
              o.logprob_token_ids = {0, 100};
            }),
            "logprob_token_ids: found 100, expected a token id in [0, 100)");
  EXPECT_EQ(complaint([](auto& o) { o.logprob_token_ids.assign(129, 0); }),
            "logprob_token_ids: found 129 ids, expected at most 128");
  EXPECT_EQ(complaint([](auto& o) { o.temperature = 2.5f; }),
            "temperature: found 2.5, expected a number from 0 to 2");
  EXPECT_EQ(complaint([](auto& o) { o.temperature = NAN; }),
            "temperature: found nan, expected a number from 0 to 2");
  EXPECT_EQ(complaint([](auto& o) { o.temperature = INFINITY; }),
            "temperature: found inf, expected a number from 0 to 2");
  EXPECT_EQ(complaint([](auto& o) { o.temperature = -0.5f; }),
            "temperature: found -0.5, expected a number from 0 to 2");
  EXPECT_EQ(complaint([](auto& o) { o.top_p = 0.0f; }),
            "top_p: found 0, expected a number above 0 and at most 1");
  EXPECT_EQ(complaint([](auto& o) { o.top_p = 1.5f; }),
            "top_p: found 1.5, expected a number above 0 and at most 1");
  EXPECT_EQ(complaint([](auto& o) { o.min_p = -1.0f; }),
            "min_p: found -1, expected a number from 0 to 1");
  EXPECT_EQ(complaint([](auto& o) { o.top_k = -2; }),
            "top_k: found -2, expected an integer from -1 to 2147483647");
  EXPECT_EQ(complaint([](auto& o) { o.repetition_penalty = 0.0f; }),
            "repetition_penalty: found 0, expected a number from 0.01 to 100");
  EXPECT_EQ(complaint([](auto& o) { o.repetition_penalty = INFINITY; }),
            "repetition_penalty: found inf, expected a number from 0.01 to 100");
  EXPECT_EQ(complaint([](auto& o) { o.frequency_penalty = 2.5f; }),
            "frequency_penalty: found 2.5, expected a number from -2 to 2");
  EXPECT_EQ(complaint([](auto& o) { o.presence_penalty = NAN; }),
            "presence_penalty: found nan, expected a number from -2 to 2");
  EXPECT_EQ(complaint([](auto& o) { o.num_top_logprobs = 21; }),
            "num_top_logprobs: found 21, expected an integer from 0 to 20");
  EXPECT_EQ(complaint([](auto& o) { o.num_top_logprobs = -1; }),
            "num_top_logprobs: found -1, expected an integer from 0 to 20");
}

TEST(SamplingOptions, LogitBiasIsCheckedEntryByEntry) {
  EXPECT_EQ(complaint([](auto& o) {
              o.logit_bias = {{1, 0.0f}, {100, 1.0f}};
            }),
            "logit_bias: found token id 100, expected one in [0, 100)");
  EXPECT_EQ(complaint([](auto& o) {
              o.logit_bias = {{-1, 1.0f}};
            }),
            "logit_bias: found token id -1, expected one in [0, 100)");
  EXPECT_EQ(complaint([](auto& o) {
              o.logit_bias = {{7, INFINITY}};
            }),
            "logit_bias[7]: found inf, expected a finite number or -inf");
  EXPECT_EQ(complaint([](auto& o) {
              o.logit_bias = {{7, 1.0f}, {3, 1.0f}, {7, 2.0f}};
            }),
            "logit_bias: found token id 7 twice, expected each id once");
  EXPECT_EQ(complaint([](auto& o) {
              o.logit_bias.assign(1025, {1, 0.0f});
            }),
            "logit_bias: found 1025 entries, expected at most 1024");
}

}  // namespace
}  // namespace paceline
